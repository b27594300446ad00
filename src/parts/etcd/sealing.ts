/**
 * The key that an instance seals with: the marker names it, even if the key file has a newer key.
 * The operator may replace the file at any time, so it is read again for a missing key.
 */
import type { Buffer } from 'node:buffer'
import type { Files } from '../../journal/files.ts'
import { Failure } from '../../errors.ts'
import {
  readKeyFile,
  watchKeys,
  type Key,
  type KeyFinder,
  type Keyring
} from '../../journal/keys.ts'
import { addKey } from '../commands/new-keys.ts'
import type { Rotated } from '../commands/operation.ts'
import { ETCD_WRITE_TIMEOUT_MS } from './etcd-limits.ts'
import type { EtcdLog } from './etcd-log.ts'

export class SealingKeys implements KeyFinder {
  readonly #files: Files
  readonly #keyFile: string
  readonly #log: EtcdLog
  #keys: Keyring
  /**
   * Keys that seal, or have sealed a record: the key file must have them all, or nobody could read
   * the journal.
   */
  readonly #needed = new Set<string>()
  #watched = 0
  #lack: () => string | undefined = () => undefined

  constructor(files: Files, keyFile: string, keys: Keyring, log: EtcdLog) {
    this.#files = files
    this.#keyFile = keyFile
    this.#keys = keys
    this.#log = log
  }

  /** Throws `key-unknown` without the file or its key, and as `readKeyFile` does. */
  readonly find = (name: string): Key => {
    if (this.#keys.find(name) === undefined) this.#keys = this.#read(name)
    this.#needed.add(name)
    return this.#keys.find(name)!
  }

  /** Needs a marker that was read. Throws as `find` does. */
  key(): Key {
    return this.find(this.#log.marker!.key)
  }

  /** If a key to seal or read with is missing. */
  fault(): Failure | undefined {
    try {
      this.key()
      if (this.#watched < this.#needed.size)
        this.#lack = watchKeys(this.#files, this.#keyFile, this.#needed)
      this.#watched = this.#needed.size
      const lack = this.#lack()
      return lack === undefined ? undefined : new Failure('key-unknown', lack)
    } catch (error) {
      return error as Failure
    }
  }

  /**
   * Adds a key or, if the file has a newer key than the marker, has all instances seal with it.
   * Throws as `find` does, and `write-failed` if another rotation was faster.
   */
  async rotate(random: (bytes: number) => Buffer): Promise<Rotated> {
    const marker = this.#log.marker!
    this.#keys = this.#read(marker.key) // copies of it go to the other instances
    const { name } = this.#keys.newest
    // A new key never seals at once: the other instances could not read what it seals.
    if (name === marker.key) {
      this.#keys = await addKey(this.#files, this.#keyFile, random)
      return { key: this.#keys.newest.name, seals: false }
    }
    const text = marker.text.replace(marker.key, name) // its state stays
    const changed = await this.#log
      .change(marker, text, performance.now() + ETCD_WRITE_TIMEOUT_MS)
      .catch(error => {
        if (!(error instanceof Failure) || error.code !== 'journal-unreachable') throw error
        const how =
          `key ${name} may seal by now: etcdctl get ${this.#log.prefix}.key names the key ` +
          'that seals'
        throw new Failure('journal-unreachable', `${error.detail}; ${how}`, { cause: error })
      })
    if (changed?.text !== text) {
      throw new Failure(
        'write-failed',
        'another rotation came first; compare the key files, then try again'
      )
    }
    return { key: name, seals: true }
  }

  #read(name: string): Keyring {
    const keys = readKeyFile(this.#files, this.#keyFile)
    if (keys?.find(name) !== undefined) return keys
    const where = 'copy the key file of an instance that has it'
    throw new Failure('key-unknown', `${this.#keyFile} has no key ${name}; ${where}`)
  }
}
