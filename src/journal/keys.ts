/**
 * The key file: one key a line, 64 hexadecimal digits, the newest last. The newest seals; every one opens what it
 * sealed, so that keys can be rotated while old lines stay readable.
 */
import { Buffer } from 'node:buffer'
import { createSecretKey, hash, type KeyObject } from 'node:crypto'
import { Failure, systemCode } from '../errors.ts'
import { fileFault, isSameFile, type Files, type FileStat } from '../disk/files.ts'

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

export type KeyFinder = Pick<Keyring, 'find'> & Partial<Pick<Keyring, 'names'>>

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

const CLOCK_TICK_MS = 1_000

/**
 * Watches whether a key file still holds the keys that a process seals with and reads by: what is sealed by a key that
 * no file holds is lost at the next start. A file that has not changed since costs one look.
 */
export class KeyWatch {
  readonly #files: Files
  readonly #path: string
  readonly #names: Set<string>
  #seen: FileStat | undefined
  #fault: string | undefined

  /** `names` are those of the keys that are needed; one that sealed no line may leave the file. */
  constructor(files: Files, path: string, names: Iterable<string>) {
    this.#files = files
    this.#path = path
    this.#names = new Set(names)
  }

  get names(): readonly string[] { return [...this.#names] }

  /** What the file lacks; undefined: nothing. */
  fault(): string | undefined {
    try {
      const stat = this.#files.stat(this.#path)
      const isSeen = stat !== undefined && this.#seen !== undefined && isSameFile(stat, this.#seen) &&
        stat.changedMs === this.#seen.changedMs && stat.bytes === this.#seen.bytes
      if (isSeen) return this.#fault
      // What was changed just now may change again within the same tick of the clock of its file system.
      this.#seen = stat !== undefined && Date.now() - stat.changedMs > CLOCK_TICK_MS ? stat : undefined
      const found = readKeyFile(this.#files, this.#path)
      const missing = this.names.filter(name => found?.find(name) === undefined)
      const what = `${this.#path} no longer holds ${missing.length === 1 ? 'key' : 'the keys'} ${missing.join(', ')}`
      this.#fault = missing.length === 0 ? undefined : `${what}; put back the file that does`
    } catch (error) {
      this.#seen = undefined // it is asked again
      this.#fault = error instanceof Failure ? error.message : `${this.#path}: ${systemCode(error)}`
    }
    return this.#fault
  }
}
