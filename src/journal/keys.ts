/**
 * The key file: one key a line, 64 hexadecimal digits, the newest last. The newest seals; every one opens what it
 * sealed, so that keys can be rotated while old lines stay readable.
 */
import { Buffer } from 'node:buffer'
import { createSecretKey, hash, hkdfSync, type KeyObject } from 'node:crypto'
import { Failure, systemCode } from '../errors.ts'
import { fileFault, type Files } from './files.ts'
import { WatchedFile } from './watched-file.ts'

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

function nameOf(secret: Buffer): string { return hash('sha256', secret, 'hex').slice(0, 8) }

/** Makes a keyring of keys, the newest last; there must be one. */
export function keyring(secrets: readonly Buffer[]): Keyring {
  const last = secrets.at(-1)
  if (last === undefined) throw new Error('a keyring needs a key')
  const keys = new Map<string, Key>()
  for (const secret of secrets) keys.set(nameOf(secret), { name: nameOf(secret), secret: createSecretKey(secret) })
  return { newest: keys.get(nameOf(last))!, names: secrets.map(nameOf), find: name => keys.get(name) }
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

/** The key of the tags of a journal whose first record a key has sealed (RFC 5869): a rotation does not change it. */
export function tagKeyOf({ secret }: Key): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'tags of entries', 32))
}

const UNREAD = Buffer.alloc(0)

/**
 * Watches whether a key file still holds the keys that a process seals with and reads by: what is sealed by a key that
 * no file holds is lost at the next start.
 */
export class KeyWatch {
  readonly #files: Files
  readonly #path: string
  readonly #file: WatchedFile
  /** The keys that are needed; one that sealed no line may leave the file. */
  readonly names: ReadonlySet<string>
  readonly #warn: (line: string) => void
  #bytes: Buffer | undefined = UNREAD
  #fault: string | undefined

  /** `warn` gets a line when the file begins to lack a key, and when it holds them all again. */
  constructor(files: Files, path: string, names: Iterable<string>, warn: (line: string) => void) {
    this.#files = files
    this.#path = path
    this.#file = new WatchedFile(files, path)
    this.names = new Set(names)
    this.#warn = warn
  }

  /** What the file lacks; undefined: nothing. Warns where that has changed. */
  fault(): string | undefined {
    const before = this.#fault
    try {
      const bytes = this.#file.read()
      if (bytes === this.#bytes) return before
      this.#bytes = bytes
      this.#fault = this.#lackOf(bytes && parseKeys(bytes, this.#path))
    } catch (error) {
      if (!(error instanceof Failure)) this.#bytes = UNREAD // it is asked again
      this.#fault = error instanceof Failure ? error.message : fileFault(this.#files, error, this.#path)
    }
    const what = this.#fault === undefined ? 'changes again' : `no changes at the moment: ${this.#fault}`
    if (this.#fault !== before) this.#warn(`the journal takes ${what}`)
    return this.#fault
  }

  #lackOf(found: Keyring | undefined): string | undefined {
    const missing = [...this.names].filter(name => found?.find(name) === undefined)
    if (missing.length === 0) return undefined
    const what = missing.length === 1 ? 'key' : 'the keys'
    return `${this.#path} no longer holds ${what} ${missing.join(', ')}; put back the file that does`
  }
}
