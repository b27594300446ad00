/** Making the keys that follow the first one of a journal. */
import type { Buffer } from 'node:buffer'
import { isForbidden, type Files } from '../journal/files.ts'
import { makeWhole } from './whole-file.ts'
import { Failure, systemCode } from '../errors.ts'
import { KEY_BYTES, readKeyFile, type Keyring } from '../journal/keys.ts'

/**
 * Appends a new key to those of a key file, which a link may lead to, durably and at once or not at all; rejects with
 * `key-unwritable`, having changed nothing, where its folder may not be written.
 */
export async function addKey(files: Files, path: string, random: (bytes: number) => Buffer): Promise<Keyring> {
  const replaces = files.stat(path)
  const before = files.read(path).toString('latin1').trimEnd()
  const text = `${before}\n${random(KEY_BYTES).toString('hex')}\n`
  try {
    await makeWhole(files, files.real(path), file => file.write(text), { replaces })
  } catch (error) {
    // What Node's permission model refuses, the same command may do without it.
    if (!isForbidden(error) || systemCode(error) === 'ERR_ACCESS_DENIED') throw error
    const how = 'append one as its owner (openssl rand -hex 32 >> FILE), and start the service again'
    throw new Failure('key-unwritable', `${path}: ${systemCode(error)}; ${how}`, { cause: error })
  }
  return readKeyFile(files, path)!
}
