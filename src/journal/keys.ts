/**
 * The key file: one key a line, 64 hexadecimal digits, the newest last. The newest seals; every one opens what it
 * sealed, so that keys can be rotated while old lines stay readable.
 */
import { Buffer } from 'node:buffer'
import { createSecretKey, hash, hkdfSync, type KeyObject } from 'node:crypto'
import { Failure, systemCode } from '../errors.ts'
import { fileFault, isSameFile, type Files, type FileStat } from './files.ts'

/** A key and the name that the journal's lines call it by: the first 8 hexadecimal digits of its SHA-256. */
export interface Key {
  readonly name: string
  readonly secret: KeyObject
}

export interface Keyring {
  readonly newest: Key
  /** The names of all keys, in the order of the file's lines: the newest last, and twice what is there twice. */
  readonly names: readonly string[]
  find(name: string): Key | undefined
}

export type KeyFinder = Pick<Keyring, 'find'> & Partial<Pick<Keyring, 'names'>>

export const KEY_BYTES = 32

function nameOf(secret: Buffer): string { return hash('sha256', secret, 'hex').slice(0, 8) }

/** Makes a keyring of keys, the newest last; there must be one. */
export function keyring(secrets: readonly Buffer[]): Keyring {
  const last = secrets.at(-1)
  if (last === undefined) throw new Error('a keyring needs a key')
  const keys = new Map<string, Key>()
  for (const secret of secrets) keys.set(nameOf(secret), { name: nameOf(secret), secret: createSecretKey(secret) })
  return { newest: keys.get(nameOf(last))!, names: secrets.map(nameOf), find: name => keys.get(name) }
}

/** The key of entries' tags, which the key gives that sealed a journal's first record: it stays when keys rotate. */
export function tagKeyOf({ secret }: Key): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'tags of entries', KEY_BYTES))
}

/** Reads a key file; undefined if there is none, a `key-invalid` failure if it is not one. */
export function readKeyFile(files: Files, path: string): Keyring | undefined {
  let bytes: Buffer | undefined
  try {
    bytes = files.stat(path) && files.read(path)
  } catch (error) {
    const code = systemCode(error) === 'EISDIR' ? 'key-invalid' : 'folder-unusable'
    throw new Failure(code, fileFault(files, error, path), { cause: error })
  }
  return bytes && parseKeys(bytes, path)
}

function parseKeys(bytes: Buffer, path: string): Keyring {
  const lines = bytes.toString('latin1').replace(/\n$/, '').split('\n')
  lines.forEach((line, i) => {
    if (!/^[0-9a-f]{64}$/.test(line)) {
      throw new Failure('key-invalid', `${path}, line ${i + 1}: a key is 64 hexadecimal digits in lower case`)
    }
  })
  return keyring(lines.map(line => Buffer.from(line, 'hex')))
}

const CLOCK_TICK_MS = 1_000

/**
 * Watches whether a key file still holds the keys that a process seals with and reads by: what is sealed by a key that
 * no file holds is lost at the next start.
 */
export class KeyWatch {
  readonly #files: Files
  readonly #path: string
  /** The keys that are needed; one that sealed no line may leave the file. */
  readonly names: ReadonlySet<string>
  /** The file as it was last read; undefined if it may have changed since without a sign of that. */
  #seen: FileStat | undefined
  #fault: string | undefined

  constructor(files: Files, path: string, names: Iterable<string>) {
    this.#files = files
    this.#path = path
    this.names = new Set(names)
  }

  /** What the file lacks; undefined: nothing. It is read only if it has changed. */
  fault(): string | undefined {
    try {
      const stat = this.#files.stat(this.#path)
      if (stat !== undefined && this.#seen !== undefined && isUnchanged(stat, this.#seen)) return this.#fault
      this.#seen = undefined
      this.#fault = this.#lackOf(readKeyFile(this.#files, this.#path))
      // What was changed just now may change again within the same tick of the clock of its file system.
      if (stat !== undefined && Date.now() - stat.changedMs > CLOCK_TICK_MS) this.#seen = stat
    } catch (error) {
      this.#seen = undefined
      this.#fault = error instanceof Failure ? error.message : fileFault(this.#files, error, this.#path)
    }
    return this.#fault
  }

  #lackOf(found: Keyring | undefined): string | undefined {
    const missing = [...this.names].filter(name => found?.find(name) === undefined)
    if (missing.length === 0) return undefined
    const what = missing.length === 1 ? 'key' : 'the keys'
    return `${this.#path} no longer holds ${what} ${missing.join(', ')}; put back the file that does`
  }
}

function isUnchanged(stat: FileStat, seen: FileStat): boolean {
  return isSameFile(stat, seen) && stat.changedMs === seen.changedMs && stat.bytes === seen.bytes
}
