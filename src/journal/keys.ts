/**
 * The key file: one key a line, 64 hexadecimal digits, the newest last. The newest seals; every one opens what it
 * sealed, so that keys can be rotated while old lines stay readable.
 */
import { Buffer } from 'node:buffer'
import { createSecretKey, hash, type KeyObject } from 'node:crypto'
import { Failure } from '../errors.ts'
import { fileFault, type Files } from '../disk/files.ts'

/** A key and the name that the journal's lines call it by: the first 8 hexadecimal digits of its SHA-256. */
export interface Key {
  readonly name: string
  readonly secret: KeyObject
}

export interface Keyring {
  readonly newest: Key
  /** The names of all keys, the newest last. */
  readonly names: readonly string[]
  find(name: string): Key | undefined
}

export type KeyFinder = Pick<Keyring, 'find'>

function nameOf(secret: Buffer): string { return hash('sha256', secret, 'hex').slice(0, 8) }

/** Makes a keyring of keys, the newest last; there must be one. */
export function keyring(secrets: readonly Buffer[]): Keyring {
  const last = secrets.at(-1)
  if (last === undefined) throw new Error('a keyring needs a key')
  const keys = new Map<string, Key>()
  for (const secret of secrets) keys.set(nameOf(secret), { name: nameOf(secret), secret: createSecretKey(secret) })
  return { newest: keys.get(nameOf(last))!, names: [...keys.keys()], find: name => keys.get(name) }
}

/** Reads a key file; undefined if there is none, a `key-invalid` failure if it is not one. */
export function readKeyFile(files: Files, path: string): Keyring | undefined {
  let text: string
  try {
    if (files.stat(path) === undefined) return undefined
    text = files.read(path).toString('latin1')
  } catch (error) {
    throw new Failure('folder-unusable', fileFault(files, error, path), { cause: error })
  }
  const lines = text.replace(/\n$/, '').split('\n')
  lines.forEach((line, i) => {
    if (!/^[0-9a-f]{64}$/.test(line)) {
      throw new Failure('key-invalid', `${path}, line ${i + 1}: a key is 64 hexadecimal digits in lower case`)
    }
  })
  return keyring(lines.map(line => Buffer.from(line, 'hex')))
}
