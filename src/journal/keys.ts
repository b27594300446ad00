/**
 * The key file: one key a line, 64 hexadecimal digits, the newest last. The newest seals; the
 * others keep old lines readable.
 */
import { Buffer } from 'node:buffer'
import { createSecretKey, hash, hkdfSync, type KeyObject } from 'node:crypto'
import { Failure, systemCode } from '../errors.ts'
import { fileFault, isSameFile, type Files, type FileStat } from './files.ts'

/** `name`: the first 8 hexadecimal digits of its SHA-256. */
export interface Key {
  readonly name: string
  readonly secret: KeyObject
}

/** The keys of a journal. */
export interface Keyring {
  readonly newest: Key
  readonly names: readonly string[]
  find(name: string): Key | undefined
}

export type KeyFinder = Pick<Keyring, 'find'> & Partial<Pick<Keyring, 'names'>>

/** The length of a key. */
export const KEY_BYTES = 32

/** At least one, the newest last. */
export function keyring(secrets: readonly Uint8Array[]): Keyring {
  const all = secrets.map(key => ({
    name: hash('sha256', key, 'hex').slice(0, 8),
    secret: createSecretKey(key)
  }))
  const newest = all.at(-1)
  if (newest === undefined) throw new Error('a keyring needs a key')
  const byName = new Map(all.map(key => [key.name, key]))
  return { newest, names: all.map(({ name }) => name), find: name => byName.get(name) }
}

/** In hexadecimal. It is derived from the key of the first record, so it survives rotations. */
export function tagKeyOf({ secret }: Key): string {
  return Buffer.from(hkdfSync('sha256', secret, '', 'tags of entries', KEY_BYTES)).toString('hex')
}

/** Undefined if there is none. Throws `key-invalid` or `folder-unusable`. */
export function readKeyFile(files: Files, path: string): Keyring | undefined {
  let lines: readonly string[]
  try {
    if (files.stat(path) === undefined) return undefined
    lines = files.read(path).toString('latin1').replace(/\n$/, '').split('\n')
  } catch (error) {
    const code = systemCode(error) === 'EISDIR' ? 'key-invalid' : 'folder-unusable'
    throw new Failure(code, fileFault(files, error, path), { cause: error })
  }
  const wrong = lines.findIndex(line => !/^[0-9a-f]{64}$/.test(line))
  if (wrong < 0) return keyring(lines.map(line => Buffer.from(line, 'hex')))
  throw new Failure(
    'key-invalid',
    `${path}, line ${wrong + 1}: a key is 64 hexadecimal digits in lower case`
  )
}

/** As `readKeyFile`, for the journal at `path`. Throws `key-missing` if there is none. */
export function neededKeys(files: Files, keyFile: string, path: string): Keyring {
  const keys = readKeyFile(files, keyFile)
  if (keys === undefined) throw keyMissing(path, keyFile)
  return keys
}

export function keyMissing(path: string, keyFile: string): Failure {
  return new Failure('key-missing', `${path} needs ${keyFile}; is KEY_FILE right?`)
}

/**
 * Gives a function that looks at the file, and says why the next start would lack a key. Keys that
 * sealed no line may leave the file.
 */
export function watchKeys(
  files: Files,
  path: string,
  needed: ReadonlySet<string>
): () => string | undefined {
  const faultOf = (found: Keyring | undefined): string | undefined => {
    const missing = [...needed].filter(name => found?.find(name) === undefined)
    const what = `${missing.length === 1 ? 'key' : 'the keys'} ${missing.join(', ')}`
    return missing.length === 0
      ? undefined
      : `${path} no longer holds ${what}; put back the file that does`
  }
  /** Undefined: the next look reads the file in any case. */
  let lastRead: { readonly stat: FileStat; readonly fault: string | undefined } | undefined
  return () => {
    try {
      const stat = files.stat(path)
      if (lastRead !== undefined && isUnchanged(stat, lastRead.stat)) return lastRead.fault
      const fault = faultOf(readKeyFile(files, path))
      lastRead = stat && { stat, fault }
      return fault
    } catch (error) {
      lastRead = undefined
      return error instanceof Failure ? error.message : fileFault(files, error, path)
    }
  }
}

function isUnchanged(stat: FileStat | undefined, before: FileStat): boolean {
  return isSameFile(stat, before) && stat?.ctimeMs === before.ctimeMs && stat.size === before.size
}
