/**
 * Which key an instance seals with: the one that the marker names, whichever is the newest in its own key file. The
 * operator may replace that file at any time; it is read anew where a key is asked for that it lacked.
 */
import type { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import type { Files } from '../journal/files.ts'
import type { Rotated } from '../journal/journal.ts'
import { addKey, readKeyFile, type Key, type KeyFinder, type Keyring } from '../journal/keys.ts'
import { ETCD_WRITE_TIMEOUT_MS } from '../limits.ts'
import type { EtcdLog, Marker } from './log.ts'

/** What an instance knows of the keys. */
export class Sealing implements KeyFinder {
  readonly #files: Files
  readonly #keyFile: string
  readonly #log: EtcdLog
  #keys: Keyring

  constructor(files: Files, keyFile: string, keys: Keyring, log: EtcdLog) {
    this.#files = files
    this.#keyFile = keyFile
    this.#keys = keys
    this.#log = log
  }

  /** Throws `key-unknown` where the file lacks the key or is gone, and as `readKeyFile` does. */
  readonly find = (name: string): Key => {
    const known = this.#keys.find(name)
    if (known !== undefined) return known
    this.#keys = this.#read(name)
    return this.#keys.find(name)!
  }

  /** Where the journal has gone; undefined: it is here. The marker has been read. */
  moved(): string | undefined {
    const { state, to } = this.#log.marker!
    return state === 'moved' ? `${this.#log.prefix} has moved to ${to}; set ETCD_PREFIX to that` : undefined
  }

  /** The key to seal with, or why there is none; the marker has been read. */
  key(): Key | Failure {
    const { key, state, to } = this.#log.marker!
    const { prefix } = this.#log
    const moved = this.moved()
    if (moved !== undefined) return new Failure('journal-moved', moved)
    if (state === 'copying') {
      const again = 'if it was broken off, make it again'
      return new Failure('journal-damaged', `${prefix}: a copy into it is not finished; ${again}`)
    }
    if (state === 'moving') {
      const again = `if that was broken off, run key rewrite --to-prefix ${to} again`
      return new Failure('journal-moved', `${prefix} is being sealed anew in ${to}; ${again}`)
    }
    try {
      return this.find(key)
    } catch (error) {
      return error as Failure
    }
  }

  /**
   * Puts a new key into the file, or, where one is there already that is newer than the marker's, has everybody seal
   * with that from now on. Throws what `key` gives, and `write-failed` where somebody else was faster.
   */
  async rotate(random: (bytes: number) => Buffer): Promise<Rotated> {
    const sealing = this.key()
    if (sealing instanceof Failure) throw sealing
    const marker = this.#log.marker!
    this.#keys = this.#read(marker.key)
    const { name } = this.#keys.newest
    if (name === marker.key) {
      this.#keys = addKey(this.#files, this.#files.real(this.#keyFile), random)
      return { key: this.#keys.newest.name, seals: false }
    }
    const changed = await this.#log.change(marker, name, ETCD_WRITE_TIMEOUT_MS)
    if (changed?.text !== name) throw new Failure('write-failed', 'somebody else rotates as well; look, and try again')
    return { key: name, seals: true }
  }

  /** All keys, for sealing anew with the newest; throws `key-invalid` where that is not the marker's. */
  all({ key }: Marker): Keyring {
    const keys = this.#read(key)
    if (keys.newest.name === key) return keys
    const why = `its newest key, ${keys.newest.name}, does not seal yet; run key rotate first`
    throw new Failure('key-invalid', `${this.#keyFile}: ${why}`)
  }

  /** The file as it is now, if it has a key. */
  #read(name: string): Keyring {
    const keys = readKeyFile(this.#files, this.#keyFile)
    if (keys?.find(name) !== undefined) return keys
    const where = 'copy the key file of an instance that has it'
    throw new Failure('key-unknown', `${this.#keyFile} has no key ${name}; ${where}`)
  }
}
