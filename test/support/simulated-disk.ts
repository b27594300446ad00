/**
 * A disk in memory that fails and loses power as disks do, driven by a seed.
 *
 * What an append has reported as written stays. One that a power cut interrupts keeps any of its 512-byte sectors; a
 * lost sector reads as zeros, and the file is as long as its last sector that was kept. A truncation, and a name that
 * was made, moved or removed, are only sure once the folder is synced or, for a truncation, once something was
 * appended; until then a power cut keeps any number of them, in their order.
 */
import { Buffer } from 'node:buffer'
import type { Descriptor, FileStat, Files } from '../../src/journal/files.ts'
import type { Random } from './random.ts'

const SECTOR_BYTES = 512

interface Inode {
  readonly number: number
  bytes: Buffer
  mode: number
}

/** What may go wrong, each with its chance at every call that can meet it, 0 to 1. */
export interface Faults {
  /** The device is full: a part of the bytes is written, or none. */
  full: number
  /** The device reports an error, having written some of the bytes. */
  broken: number
  /** A truncation fails. */
  truncate: number
}

/** A disk; `cut` ends the process that uses it, as far as the disk can. */
export class SimulatedDisk implements Files {
  readonly faults: Faults = { full: 0, broken: 0, truncate: 0 }
  readonly #random: Random
  #names = new Map<string, Inode>()
  /** What a power cut may take back, in order. */
  #unsure: (() => void)[] = []
  #open = new Map<Descriptor, Inode>()
  #inFlight: { readonly inode: Inode, readonly bytes: Buffer } | undefined
  #power = 0
  #serial = 3

  constructor(random: Random) { this.#random = random }

  /** The disk as a process sees it that starts now: after a power cut that one reaches nothing any more. */
  boot(): Files {
    const power = this.#power
    return new Proxy(this, {
      get: (disk, name) => (...args: never[]): unknown => {
        if (power === this.#power) return (disk[name as keyof Files] as (...args: never[]) => unknown).apply(disk, args)
        if (name === 'append') return undefined // is never answered
        throw systemError('EIO')
      }
    })
  }

  /** Cuts the power: nothing that the process asked for is answered any more. */
  cut(): void {
    this.#power++
    if (this.#inFlight !== undefined) this.#tear(this.#inFlight.inode, this.#inFlight.bytes)
    this.#inFlight = undefined
    const lost = this.#unsure.splice(this.#random.int(this.#unsure.length + 1))
    for (const takeBack of lost.reverse()) takeBack()
    this.#unsure = []
    this.#open.clear()
  }

  /** A file's bytes, for the test to look at. */
  contents(path: string): Buffer | undefined { return this.#names.get(path)?.bytes }

  #tear(inode: Inode, bytes: Buffer): void {
    const torn = Buffer.alloc(bytes.length)
    let length = 0
    // Sectors are the device's, not the write's: the first one is shared with what was there before.
    for (let at = 0; at < bytes.length;) {
      const end = Math.min(bytes.length, at + SECTOR_BYTES - (inode.bytes.length + at) % SECTOR_BYTES)
      if (this.#random.next() < 0.5) { bytes.copy(torn, at, at, end); length = end }
      at = end
    }
    if (this.#random.next() < 0.2) length = Math.max(length, this.#random.int(bytes.length + 1))
    inode.bytes = Buffer.concat([inode.bytes, torn.subarray(0, length)])
  }

  #inode(path: string): Inode {
    const inode = this.#names.get(path)
    if (inode === undefined) throw systemError('ENOENT')
    return inode
  }

  #rename(path: string, inode: Inode | undefined): void {
    const before = this.#names.get(path)
    this.#setName(path, inode)
    this.#unsure.push(() => this.#setName(path, before))
  }

  #setName(path: string, inode: Inode | undefined): void {
    if (inode === undefined) this.#names.delete(path)
    else this.#names.set(path, inode)
  }

  #opened(inode: Inode): Descriptor {
    this.#open.set(++this.#serial, inode)
    return this.#serial
  }

  #of(descriptor: Descriptor): Inode {
    const inode = this.#open.get(descriptor)
    if (inode === undefined) throw systemError('EBADF')
    return inode
  }

  makeFolder(): void {}
  real(path: string): string { return path }
  setMode(path: string, mode: number): void { this.#inode(path).mode = mode }
  list(folder: string): string[] {
    return [...this.#names.keys()].filter(path => path.startsWith(`${folder}/`)).map(path => path.slice(folder.length + 1))
  }

  stat(path: string): FileStat | undefined {
    const inode = this.#names.get(path)
    return inode && statOf(inode)
  }

  read(path: string): Buffer { return Buffer.from(this.#inode(path).bytes) }
  openToRead(path: string): Descriptor { return this.#opened(this.#inode(path)) }
  openToAppend(path: string): Descriptor { return this.#opened(this.#inode(path)) }
  openStat(descriptor: Descriptor): FileStat { return statOf(this.#of(descriptor)) }
  close(descriptor: Descriptor): void { this.#of(descriptor); this.#open.delete(descriptor) }

  readAt(descriptor: Descriptor, into: Buffer, offset: number): number {
    return this.#of(descriptor).bytes.copy(into, 0, offset)
  }

  createToAppend(path: string): Descriptor {
    if (this.#names.has(path)) throw systemError('EEXIST')
    const inode = { number: ++this.#serial, bytes: Buffer.alloc(0), mode: 0o600 }
    this.#rename(path, inode)
    return this.#opened(inode)
  }

  append(descriptor: Descriptor, bytes: Buffer, done: (error: Error | null, written: number) => void): void {
    const power = this.#power
    this.#inFlight = { inode: this.#of(descriptor), bytes }
    const finish = (): void => {
      if (this.#power !== power) return
      this.#inFlight = undefined
      let written = 0
      let failure: Error | null = null
      try {
        written = this.appendSync(descriptor, bytes)
      } catch (error) {
        failure = error as Error
      }
      done(failure, written)
    }
    // The device takes its time: the event loop turns once or more before it is done.
    const wait = (turns: number): void => { if (turns === 0) finish(); else setImmediate(() => wait(turns - 1)) }
    wait(this.#random.int(3))
  }

  appendSync(descriptor: Descriptor, bytes: Buffer): number {
    const inode = this.#of(descriptor)
    const fault = this.#random.next()
    const isFull = fault < this.faults.full
    const isBroken = !isFull && fault < this.faults.full + this.faults.broken
    const kept = isFull || isBroken ? this.#random.int(bytes.length + 1) : bytes.length
    inode.bytes = Buffer.concat([inode.bytes, bytes.subarray(0, kept)])
    this.#unsure = this.#unsure.filter(takeBack => truncations.get(takeBack) !== inode)
    if (isBroken) throw systemError('EIO')
    if (isFull && kept === 0) throw systemError('ENOSPC')
    return kept
  }

  truncate(path: string, bytes: number): void {
    if (this.#random.next() < this.faults.truncate) throw systemError('EIO')
    const inode = this.#inode(path)
    const before = inode.bytes
    inode.bytes = before.subarray(0, bytes)
    const takeBack = (): void => { inode.bytes = before }
    truncations.set(takeBack, inode)
    this.#unsure.push(takeBack)
  }

  rename(from: string, to: string): void {
    const inode = this.#inode(from)
    this.#rename(to, inode)
    this.#rename(from, undefined)
  }

  remove(path: string): void {
    this.#inode(path)
    this.#rename(path, undefined)
  }

  syncFolder(): void { this.#unsure = this.#unsure.filter(takeBack => truncations.has(takeBack)) }
}

/** Of what may be taken back, the truncations, and the file that each was of. */
const truncations = new WeakMap<() => void, Inode>()

function statOf(inode: Inode): FileStat {
  return { device: 1, inode: inode.number, bytes: inode.bytes.length, owner: 0, mode: inode.mode }
}

function systemError(code: string): Error { return Object.assign(new Error(code), { code }) }
