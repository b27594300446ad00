/**
 * The key file: one key a line, 64 hexadecimal digits, the newest last. The newest seals; every one opens what it
 * sealed, so that keys can be rotated while old lines stay readable.
 */
import { Buffer } from 'node:buffer'
import { createSecretKey, hash, type KeyObject } from 'node:crypto'
import { dirname } from 'node:path'
import { Failure, systemCode } from '../errors.ts'
import { createWhole, type Files } from './files.ts'

/** A key and the name that the journal's lines call it by: the first 8 hexadecimal digits of its SHA-256. */
export interface Key {
  readonly name: string
  readonly secret: KeyObject
}

/** The keys of a key file. */
export interface Keyring {
  readonly newest: Key
  /** The names of all keys, the newest last. */
  readonly names: readonly string[]
  find(name: string): Key | undefined
}

/** What a line's key is found by. */
export type KeyFinder = Pick<Keyring, 'find'>

const KEY_BYTES = 32

function nameOf(secret: Buffer): string { return hash('sha256', secret, 'hex').slice(0, 8) }

/** Makes a keyring of keys, the newest last; there must be one. */
export function keyring(secrets: readonly Buffer[]): Keyring {
  const keys = new Map<string, Key>()
  for (const secret of secrets) {
    const name = nameOf(secret)
    keys.set(name, { name, secret: createSecretKey(secret) })
  }
  const last = secrets.at(-1)
  const newest = last && keys.get(nameOf(last))
  if (newest === undefined) throw new Error('a keyring needs a key')
  return { newest, names: [...keys.keys()], find: name => keys.get(name) }
}

/** Reads a key file; undefined if there is none, a `key-invalid` failure if it is not one. */
export function readKeyFile(files: Files, path: string): Keyring | undefined {
  let text: string
  try {
    if (files.stat(path) === undefined) return undefined
    text = files.read(path).toString('latin1')
  } catch (error) {
    throw new Failure('folder-unusable', `${path}: ${systemCode(error)}`, { cause: error })
  }
  const lines = text.replace(/\n$/, '').split('\n')
  lines.forEach((line, i) => {
    if (!/^[0-9a-f]{64}$/.test(line)) {
      throw new Failure('key-invalid', `${path}, line ${i + 1}: a key is 64 hexadecimal digits in lower case`)
    }
  })
  return keyring(lines.map(line => Buffer.from(line, 'hex')))
}

/**
 * Puts a new key behind those of a key file, durably and at once or not at all; throws, having changed nothing, where
 * the runtime does not let the folder be synced.
 */
export function addKey(files: Files, path: string, random: (bytes: number) => Buffer): Keyring {
  files.syncFolder(dirname(path))
  const before = files.read(path).toString('latin1').trimEnd()
  replace(files, path, `${before}\n${random(KEY_BYTES).toString('hex')}\n`)
  files.syncFolder(dirname(path))
  return readKeyFile(files, path)!
}

/** Makes a key file with one new key, durably; `random` gives bytes that nobody can foresee. */
export function createKeyFile(files: Files, path: string, random: (bytes: number) => Buffer): Keyring {
  if (files.stat(path) !== undefined) throw new Failure('key-invalid', `${path} was just made by another process`)
  const secret = random(KEY_BYTES)
  replace(files, path, `${secret.toString('hex')}\n`)
  return keyring([secret])
}

function replace(files: Files, path: string, text: string): void {
  const fresh = `${path}.new`
  if (files.stat(fresh) !== undefined) files.remove(fresh) // of an attempt that a crash ended
  createWhole(files, fresh, [text])
  files.rename(fresh, path)
}
