/**
 * Making keys: the first one of a journal, and those that follow it. Loaded with the journal: a process of root
 * that has become a folder's owner may be unable to enter the folder of the program by the time it makes one.
 */
import type { Buffer } from 'node:buffer'
import { dirname } from 'node:path'
import { isForbidden } from './durable.ts'
import type { Files } from './files.ts'
import { makeWhole } from './whole-file.ts'
import { Failure, systemCode } from '../errors.ts'
import { readKeyFile, type Keyring } from './keys.ts'

const KEY_BYTES = 32
const MAX_TRIES = 10

/**
 * Makes a key file with one new key, durably but for its name, or reads the one that another process has made
 * meanwhile.
 */
export async function createKeyFile(
  files: Files, path: string, random: (bytes: number) => Buffer
): Promise<Keyring> {
  const text = `${random(KEY_BYTES).toString('hex')}\n`
  for (let tries = 1; ; tries++) {
    try {
      await makeWhole(files, path, file => file.write(text), { leavesNames: true })
      return readKeyFile(files, path)!
    } catch (error) {
      const found = readKeyFile(files, path)
      if (found !== undefined) return found
      // Another process that has just read a key file took this one's part for a leftover.
      const isRace = systemCode(error) === 'ENOENT' && files.stat(dirname(path)) !== undefined
      if (!isRace || tries === MAX_TRIES) throw error
    }
  }
}

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
