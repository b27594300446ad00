import type { Buffer } from 'node:buffer'
import { isForbidden, type Files } from '../../journal/files.ts'
import { makeWhole } from './whole-file.ts'
import { Failure, systemCode } from '../../errors.ts'
import { KEY_BYTES, readKeyFile, type Keyring } from '../../journal/keys.ts'

/**
 * Appends the key durably, or not at all. Rejects with `key-unwritable` if the folder is not
 * writable.
 */
export async function addKey(
  files: Files,
  path: string,
  random: (bytes: number) => Buffer
): Promise<Keyring> {
  // before it is read: a key that another rotation adds meanwhile is not overwritten
  const replaces = files.stat(path)
  const before = files.read(path).toString('latin1').trimEnd()
  const text = `${before}\n${random(KEY_BYTES).toString('hex')}\n`
  try {
    await makeWhole(files, files.real(path), file => file.write(text), { replaces })
  } catch (error) {
    // Without Node's permission model, the same command may succeed.
    if (!isForbidden(error) || systemCode(error) === 'ERR_ACCESS_DENIED') throw error
    const how =
      'append one as its owner (openssl rand -hex 32 >> FILE), and start the service again'
    throw new Failure('key-unwritable', `${path}: ${systemCode(error)}; ${how}`, { cause: error })
  }
  return readKeyFile(files, path)!
}
