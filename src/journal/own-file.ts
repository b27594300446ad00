/** A file that only this process changes, opened to append durably. */
import type { Buffer } from 'node:buffer'
import { dirname } from 'node:path'
import { systemCode } from '../errors.ts'
import { isSameFile, type Descriptor, type Files, type FileStat } from './files.ts'

/** What is opened at once to cut the file back, which copies its end onto itself. */
const SPARE_DESCRIPTORS = 2

export class OwnFile {
  readonly path: string
  readonly #files: Files
  #opened: { readonly descriptor: Descriptor, readonly stat: FileStat }
  #spare: Descriptor[] = []

  constructor(files: Files, path: string) {
    this.#files = files
    this.path = path
    this.#opened = open(files, path)
    this.#keepSpare()
  }

  /** Why its name no longer leads to the file that was opened, or that has another length; undefined: all is well. */
  fault(bytes?: number): string | undefined {
    let stat: FileStat | undefined
    try {
      stat = this.#files.stat(this.path)
    } catch (error) {
      return `${this.path}: ${systemCode(error)}`
    }
    if (stat === undefined) return `${this.path} was removed`
    if (!isSameFile(stat, this.#opened.stat)) return `${this.path} was replaced`
    return bytes === undefined || stat.bytes === bytes ? undefined : `${this.path} was changed by another program`
  }

  /** Calls `done` with what has failed, or once the bytes are on the device. */
  append(bytes: Buffer, done: (error: Error | null, written: number) => void): void {
    this.#files.append(this.#opened.descriptor, bytes, done)
  }

  /** Does what opens the file anew, for which descriptors are kept: connections may have all others. */
  withSpare<T>(act: () => T): T {
    this.#closeSpare()
    try {
      return act()
    } finally {
      this.#keepSpare()
    }
  }

  /** Opens the file that has its name now. */
  reopen(): void {
    const { descriptor } = this.#opened
    this.#opened = open(this.#files, this.path)
    this.#files.close(descriptor)
  }

  close(): void {
    try {
      this.#files.close(this.#opened.descriptor)
    } finally {
      this.#closeSpare()
    }
  }

  /** Of the folder, which stays when the file is replaced; without them it goes on as well. */
  #keepSpare(): void {
    try {
      while (this.#spare.length < SPARE_DESCRIPTORS) this.#spare.push(this.#files.openToRead(dirname(this.path)))
    } catch {}
  }

  #closeSpare(): void {
    for (const descriptor of this.#spare.splice(0)) {
      try {
        this.#files.close(descriptor)
      } catch {}
    }
  }
}

function open(files: Files, path: string): { readonly descriptor: Descriptor, readonly stat: FileStat } {
  const descriptor = files.openToAppend(path)
  try {
    return { descriptor, stat: files.openStat(descriptor) }
  } catch (error) {
    files.close(descriptor)
    throw error
  }
}
