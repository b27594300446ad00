/** A small file that others may change: it is read again when it may have changed, and costs one look otherwise. */
import type { Buffer } from 'node:buffer'
import { isSameFile, type Files, type FileStat } from './files.ts'

const CLOCK_TICK_MS = 1_000

export class WatchedFile {
  readonly #files: Files
  readonly #path: string
  #seen: FileStat | undefined
  #bytes: Buffer | undefined

  constructor(files: Files, path: string) {
    this.#files = files
    this.#path = path
  }

  /** Its bytes, in the same object until they are others; undefined where it is gone. Throws the system's error. */
  read(): Buffer | undefined {
    const stat = this.#files.stat(this.#path)
    if (stat !== undefined && this.#seen !== undefined && isUnchanged(stat, this.#seen)) return this.#bytes
    // What was changed just now may change again within the same tick of the clock of its file system.
    const isSettled = stat !== undefined && Date.now() - stat.changedMs > CLOCK_TICK_MS
    this.#seen = undefined // one that cannot be read was not seen
    const bytes = stat && this.#files.read(this.#path)
    this.#seen = isSettled ? stat : undefined
    if (bytes === undefined || this.#bytes?.equals(bytes) !== true) this.#bytes = bytes
    return this.#bytes
  }
}

function isUnchanged(stat: FileStat, seen: FileStat): boolean {
  return isSameFile(stat, seen) && stat.changedMs === seen.changedMs && stat.bytes === seen.bytes
}
