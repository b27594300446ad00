/**
 * A disk in memory that fails and loses power as disks do, driven by a seed.
 *
 * A file has a page cache, which processes see, and a platter. What is written lies in the cache; a durable write that
 * has succeeded, a sync, or luck brings its sectors (512 bytes) to the platter. After an I/O error the cache holds what
 * the platter may lack, and calls it clean: a later sync does not write it. Names, truncations and copies that somebody
 * else made are durable once synced, or by luck; a power cut keeps any number of them, names in their order.
 *
 * A file never shows a whole block (4 KiB) that was not written: its length is recorded after its blocks.
 */
import { Buffer } from 'node:buffer'
import { dirname } from 'node:path'
import type { Descriptor, FileStat, Files } from '../../src/journal/files.ts'
import { BLOCK_BYTES, SECTOR_BYTES } from '../../src/limits.ts'
import type { Random } from './random.ts'

class Inode {
  readonly number: number
  mode = 0o600
  links = 0
  cache: Buffer = Buffer.alloc(0)
  platter: Buffer = Buffer.alloc(0)
  /** Sectors of the cache that a sync would write, by their number. */
  readonly dirty = new Set<number>()
  /** Whether the length differs for a reason that a sync would write. */
  isResized = false

  constructor(number: number) { this.number = number }

  write(bytes: Buffer, offset: number): void {
    const end = Math.max(this.cache.length, offset + bytes.length)
    const cache = Buffer.alloc(end)
    this.cache.copy(cache)
    bytes.copy(cache, offset)
    this.cache = cache
    for (let n = Math.floor(offset / SECTOR_BYTES); n * SECTOR_BYTES < offset + bytes.length; n++) this.dirty.add(n)
  }

  /** Brings a sector of the cache to the platter, whose length it may extend. */
  store(n: number): void {
    const start = n * SECTOR_BYTES
    const end = Math.min(start + SECTOR_BYTES, this.cache.length)
    this.dirty.delete(n)
    if (start >= end) return
    const platter = Buffer.alloc(Math.max(this.platter.length, end))
    this.platter.copy(platter)
    this.cache.copy(platter, start, start, end)
    this.platter = platter
  }

  /** Makes all durable that is not wrongly taken for clean. */
  sync(): void {
    for (const n of [...this.dirty]) this.store(n)
    if (this.isResized) this.platter = this.platter.subarray(0, this.cache.length)
    this.isResized = false
  }

  /** The power fails: dirty sectors are kept by luck, but none behind a block of which none is. */
  cut(random: Random): void {
    if (this.isResized && random.next() < 0.5) this.platter = this.platter.subarray(0, this.cache.length)
    const kept = [...this.dirty].sort((a, b) => a - b).filter(() => random.next() < 0.5)
    const perBlock = BLOCK_BYTES / SECTOR_BYTES
    let block = Math.floor(this.platter.length / BLOCK_BYTES)
    for (const n of kept) {
      if (Math.floor(n / perBlock) > block + 1) break
      block = Math.max(block, Math.floor(n / perBlock))
      this.store(n)
    }
    // The length may be recorded up to the end of the last block that was written.
    if (this.dirty.size > 0 && random.next() < 0.2) {
      const most = Math.min(this.cache.length, Math.ceil(this.platter.length / BLOCK_BYTES) * BLOCK_BYTES)
      const zeros = random.int(Math.max(0, most - this.platter.length) + 1)
      this.platter = Buffer.concat([this.platter, Buffer.alloc(zeros)])
    }
    this.cache = this.platter
    this.dirty.clear()
    this.isResized = false
  }
}

/** What may go wrong, each with its chance at every call that can meet it, 0 to 1. */
export interface Faults {
  /** The device is full: a part of the bytes is written, or none. */
  full: number
  /** The device reports an error, having written some of the sectors. */
  broken: number
  truncate: number
}

/** A disk; `cut` ends the process that uses it, as far as the disk can. */
export class SimulatedDisk implements Files {
  readonly faults: Faults = { full: 0, broken: 0, truncate: 0 }
  refusesSync = false
  readonly #random: Random
  #names = new Map<string, Inode>()
  /** What a power cut may take back of the names, in order, and the folder of each. */
  #unsure: { readonly folder: string, takeBack(): void }[] = []
  #open = new Map<Descriptor, Inode>()
  #power = 0
  /** After an error of the device others are likely, until the next start. */
  #isFailing = false
  #serial = 3

  constructor(random: Random) { this.#random = random }

  /** The disk as a process sees it that starts now: after a power cut that one reaches nothing any more. */
  boot(): Files {
    const power = this.#power
    this.#isFailing = false
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
    for (const inode of this.#inodes()) inode.cut(this.#random)
    for (const { takeBack } of this.#unsure.splice(this.#random.int(this.#unsure.length + 1)).reverse()) takeBack()
    this.#unsure = []
    this.#open.clear()
  }

  /** Puts a file there as another program does: in the cache, under a name that is not durable. */
  put(path: string, bytes: Buffer): void {
    const inode = this.#create(path)
    inode.write(bytes, 0)
  }

  contents(path: string): Buffer | undefined { return this.#names.get(path)?.cache }

  #inodes(): Set<Inode> { return new Set([...this.#names.values(), ...this.#open.values()]) }

  #inode(path: string): Inode {
    const inode = this.#names.get(path)
    if (inode === undefined) throw systemError('ENOENT')
    return inode
  }

  #create(path: string): Inode {
    const inode = new Inode(++this.#serial)
    this.#rename(path, inode)
    return inode
  }

  #rename(path: string, inode: Inode | undefined): void {
    const before = this.#names.get(path)
    this.#setName(path, inode)
    this.#unsure.push({ folder: dirname(path), takeBack: () => this.#setName(path, before) })
  }

  #setName(path: string, inode: Inode | undefined): void {
    const before = this.#names.get(path)
    if (before !== undefined) before.links--
    if (inode === undefined) this.#names.delete(path)
    else { this.#names.set(path, inode); inode.links++ }
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

  /** Writes durably, or fails as the faults have it; gives how many bytes were written. */
  #write(inode: Inode, bytes: Buffer, offset: number, needsRoom: boolean): number {
    const fault = this.#random.next()
    const isFull = needsRoom && fault < this.faults.full
    const isBroken = !isFull &&
      (fault < this.faults.full + this.faults.broken || (this.#isFailing && this.#random.next() < 0.7))
    if (isBroken) this.#isFailing = true
    const part = isFull ? bytes.subarray(0, this.#random.int(bytes.length + 1)) : bytes
    inode.write(part, offset)
    const first = Math.floor(offset / SECTOR_BYTES)
    const last = Math.ceil((offset + part.length) / SECTOR_BYTES)
    for (let n = first; n < last; n++) {
      if (!isBroken || this.#random.next() < 0.5) inode.store(n)
      else inode.dirty.delete(n) // and is taken for clean
    }
    if (isBroken) throw systemError(this.#random.pick(['EIO', 'ENODATA', 'EREMOTEIO']))
    if (isFull && part.length === 0) throw systemError('ENOSPC')
    // The length is recorded with the data, also where it was cut before.
    if (inode.platter.length > inode.cache.length) inode.platter = inode.platter.subarray(0, inode.cache.length)
    inode.isResized = false
    // A file system with one journal for all records earlier names with a file's new length.
    if (this.refusesSync) this.#unsure = []
    return part.length
  }

  makeFolder(): void {}
  real(path: string): string { return path }
  isLink(): boolean { return false }
  setMode(path: string, mode: number): void { this.#inode(path).mode = mode }
  list(folder: string): string[] {
    return [...this.#names.keys()].filter(path => path.startsWith(`${folder}/`)).map(path =>
      path.slice(folder.length + 1))
  }

  stat(path: string): FileStat | undefined {
    const inode = this.#names.get(path)
    return inode && statOf(inode)
  }

  read(path: string): Buffer { return Buffer.from(this.#inode(path).cache) }
  openToRead(path: string): Descriptor { return this.#opened(this.#inode(path)) }
  openToAppend(path: string): Descriptor { return this.#opened(this.#inode(path)) }
  openToOverwrite(path: string): Descriptor {
    if (this.#isFailing && this.#random.next() < 0.5) throw systemError('EROFS') // as file systems protect themselves
    return this.#opened(this.#inode(path))
  }

  createToAppend(path: string): Descriptor {
    if (this.#names.has(path)) throw systemError('EEXIST')
    return this.#opened(this.#create(path))
  }

  openStat(descriptor: Descriptor): FileStat { return statOf(this.#of(descriptor)) }
  close(descriptor: Descriptor): void { this.#of(descriptor); this.#open.delete(descriptor) }
  readAt(descriptor: Descriptor, into: Buffer, offset: number): number {
    return this.#of(descriptor).cache.copy(into, 0, offset)
  }

  append(descriptor: Descriptor, bytes: Buffer, done: (error: Error | null, written: number) => void): void {
    const power = this.#power
    const inode = this.#of(descriptor)
    const offset = inode.cache.length
    const finish = (): void => {
      if (this.#power !== power) return
      let written = 0
      let failure: Error | null = null
      try {
        written = this.#write(inode, bytes, offset, true)
      } catch (error) {
        failure = error as Error
      }
      done(failure, written)
    }
    // The device takes its time: the event loop turns once or more before it is done. Until then a cut tears it.
    inode.write(bytes, offset)
    const wait = (turns: number): void => {
      if (turns > 0) { setImmediate(() => wait(turns - 1)); return }
      if (this.#power === power) inode.cache = inode.cache.subarray(0, offset)
      finish()
    }
    wait(this.#random.int(3))
  }

  appendSync(descriptor: Descriptor, bytes: Buffer): number {
    const inode = this.#of(descriptor)
    return this.#write(inode, bytes, inode.cache.length, true)
  }

  writeAt(descriptor: Descriptor, bytes: Buffer, offset: number): number {
    return this.#write(this.#of(descriptor), bytes, offset, false)
  }

  truncate(descriptor: Descriptor, bytes: number): void {
    if (this.#random.next() < this.faults.truncate) throw systemError('EIO')
    const inode = this.#of(descriptor)
    inode.cache = inode.cache.subarray(0, bytes)
    inode.isResized = true
  }

  link(path: string, name: string): void {
    if (this.#names.has(name)) throw systemError('EEXIST')
    this.#rename(name, this.#inode(path))
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

  sync(path: string): void {
    if (this.refusesSync) throw systemError('ERR_ACCESS_DENIED')
    const inode = this.#names.get(path)
    if (inode !== undefined) inode.sync()
    else this.#unsure = this.#unsure.filter(({ folder }) => folder !== path)
  }

  syncOpen(descriptor: Descriptor): void {
    if (this.refusesSync) throw systemError('ERR_ACCESS_DENIED')
    this.#of(descriptor).sync()
  }
}

function statOf(inode: Inode): FileStat {
  const { number, links, cache, mode } = inode
  return { isFile: () => true, dev: 1, ino: number, nlink: links, size: cache.length, uid: 0, gid: 0, mode, ctimeMs: 0 }
}

function systemError(code: string): Error { return Object.assign(new Error(code), { code }) }
