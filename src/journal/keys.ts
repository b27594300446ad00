/**
 * The key file: one key a line, 64 hexadecimal digits, the newest last. The newest seals; the others keep old lines
 * readable.
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

export interface Keyring {
  readonly newest: Key
  readonly names: readonly string[]
  find(name: string): Key | undefined
}

export type KeyFinder = Pick<Keyring, 'find'> & Partial<Pick<Keyring, 'names'>>

export const KEY_BYTES = 32

/** Of at least one key, the newest last. */
export function keyring(secrets: readonly Buffer[]): Keyring {
  const all = secrets.map(key => ({ name: hash('sha256', key, 'hex').slice(0, 8), secret: createSecretKey(key) }))
  const newest = all.at(-1)
  if (newest === undefined) throw new Error('a keyring needs a key')
  const byName = new Map(all.map(key => [key.name, key]))
  return { newest, names: all.map(({ name }) => name), find: name => byName.get(name) }
}

/** Of the key that sealed the first record, so it survives rotations. */
export function tagKeyOf({ secret }: Key): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'tags of entries', KEY_BYTES))
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
  throw new Failure('key-invalid', `${path}, line ${wrong + 1}: a key is 64 hexadecimal digits in lower case`)
}

const CLOCK_TICK_MS = 1_000

/** Watches for keys that leave the file: the next start would fail. */
export class KeyWatch {
  readonly #files: Files
  readonly #path: string
  /** A key that sealed no line may leave the file. */
  readonly names: ReadonlySet<string>
  /** Undefined if it may have changed unnoticed. */
  #seen: FileStat | undefined
  #fault: string | undefined

  constructor(files: Files, path: string, names: Iterable<string>) {
    this.#files = files
    this.#path = path
    this.names = new Set(names)
  }

  fault(): string | undefined {
    const seen = this.#seen
    try {
      const stat = this.#files.stat(this.#path)
      const isSame = stat !== undefined && seen !== undefined && isSameFile(stat, seen) &&
        stat.changedMs === seen.changedMs && stat.bytes === seen.bytes
      if (isSame) return this.#fault
      this.#seen = undefined
      this.#fault = this.#lackOf(readKeyFile(this.#files, this.#path))
      // It may change again within the same tick of its file system's clock.
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
