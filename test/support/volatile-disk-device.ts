/**
 * The process behind a `VolatileDisk`: a file system in user space (the kernel's FUSE protocol, 7.31) that is one file,
 * on which the kernel puts a loop device. It keeps the disk in memory and takes down every write and flush in order, so
 * that what a power cut leaves can be made for any moment: all that was flushed, and of the rest any sectors.
 *
 * Arguments: the file to mount on, its length in bytes, and where its file system will be mounted. Requests come by the
 * channel to the parent process; when that closes, everything is unmounted.
 */
import { spawn } from 'node:child_process'
import { openSync, read, writeSync } from 'node:fs'
import { now } from './restarts.ts'
import { seeded } from './random.ts'
import type { Cut, Request } from './volatile-disk.ts'

const PAGE_BYTES = 4096
const SECTOR_BYTES = 512
const ZEROS = Buffer.alloc(PAGE_BYTES)
const MAX_WRITE_BYTES = 128 * 1024
const EIO = 5
const ENOSYS = 38

/** What a disk holds: its pages that are not zeros. A page is never changed, only replaced. */
type Content = Map<number, Buffer>
/** A write, or, without data, a flush: what was written before is on the platter. */
interface Operation { readonly ns: number, readonly offset: number, readonly data: Buffer | undefined }
interface Recording { readonly platter: Content, readonly operations: readonly Operation[] }

const [path = '', length = '', folder = ''] = process.argv.slice(2)
const descriptor = openSync('/dev/fuse', 'r+')
const recordings: Recording[] = []
let content: Content = new Map()
let platter: Content = new Map()
let operations: Operation[] = []
/**
 * Whether writes of lines of a journal fail, and then the share of their sectors that arrives; or whether flushes do.
 */
let failing: number | 'flushes' | undefined

function store(into: Content, offset: number, data: Buffer): void {
  for (let at = 0; at < data.length;) {
    const page = Math.floor((offset + at) / PAGE_BYTES)
    const start = (offset + at) % PAGE_BYTES
    const bytes = Math.min(PAGE_BYTES - start, data.length - at)
    const changed = Buffer.alloc(PAGE_BYTES)
    into.get(page)?.copy(changed)
    data.copy(changed, start, at, at + bytes)
    if (changed.equals(ZEROS)) into.delete(page)
    else into.set(page, changed)
    at += bytes
  }
}

function load(offset: number, bytes: number): Buffer {
  const data = Buffer.alloc(bytes)
  for (let page = Math.floor(offset / PAGE_BYTES); page * PAGE_BYTES < offset + bytes; page++) {
    const at = page * PAGE_BYTES - offset
    content.get(page)?.copy(data, Math.max(0, at), Math.max(0, -at), Math.min(PAGE_BYTES, bytes - at))
  }
  return data
}

/**
 * Writes each sector of some data with a probability of `share`. Some blocks of a file system come whole or not at all:
 * a torn one cannot be mounted again, whatever was in the files.
 */
function storeSome(into: Content, { offset, data }: Operation, share: number, random: () => number): void {
  for (let at = 0; at < data!.length;) {
    const unit = isUntorn(offset + at, data!.subarray(at)) ? PAGE_BYTES : SECTOR_BYTES
    if (random() < share) store(into, offset + at, data!.subarray(at, at + unit))
    at += unit
  }
}

/**
 * The superblock of ext4; blocks of directories and trees of XFS, whose recovery believes what their first sector says.
 */
function isUntorn(offset: number, data: Buffer): boolean {
  if (offset % PAGE_BYTES !== 0) return offset < PAGE_BYTES
  return offset === 0 || /^(XD[BDF]3|AB3[BC]|IAB3|FIB3|BMA3|RMB3|R3FC)/.test(data.toString('latin1', 0, 4))
}

function take(operation: Operation): void {
  operations.push(operation)
  if (operation.data !== undefined) store(content, operation.offset, operation.data)
}

function write(offset: number, data: Buffer): number {
  const ns = now()
  if (typeof failing !== 'number' || !isOfJournal(data)) { take({ ns, offset, data }); return 0 }
  for (let at = 0; at < data.length; at += SECTOR_BYTES) {
    if (Math.random() < failing) take({ ns, offset: offset + at, data: data.subarray(at, at + SECTOR_BYTES) })
  }
  return -EIO
}

function isOfJournal(data: Buffer | undefined): boolean { return data?.includes('"sealed":"') === true }

/** Makes the disk what it is after a power cut behind an operation; everything on it is on the platter then. */
function cut({ recording, at, share, seed }: Cut): void {
  const { platter: first, operations: all } = recordings[recording]!
  const isFlushed = all.findLastIndex(({ data }, i) => i <= at && data === undefined)
  const random = seeded(seed)
  const after = new Map(first)
  all.slice(0, at + 1).forEach((operation, i) => {
    if (operation.data === undefined) return
    if (i < isFlushed) store(after, operation.offset, operation.data)
    else storeSome(after, operation, share, () => random.next())
  })
  restart(after)
}

function restart(on: Content): void {
  platter = on
  content = new Map(on)
  operations = []
}

/** Does what the parent asks for, and gives what it is to know. */
function serve(request: Request): unknown {
  switch (request.act) {
    case 'record': restart(content); return undefined
    case 'fail': failing = request.what; return undefined
    case 'cut': cut(request.cut); return undefined
    case 'recorded': {
      const times = operations.map(({ ns }) => ns)
      const ofJournal = operations.flatMap(({ data }, i) => isOfJournal(data) ? [i] : [])
      return { recording: recordings.push({ platter, operations }) - 1, times, ofJournal }
    }
    case 'forget': delete recordings[request.recording]; return undefined
    case 'pages': return [...content].map(([page, data]) => [page * PAGE_BYTES, data.toString('base64')])
  }
}

function reply(unique: bigint, error: number, ...parts: readonly Buffer[]): void {
  const head = Buffer.alloc(16)
  head.writeUInt32LE(16 + parts.reduce((sum, part) => sum + part.length, 0))
  head.writeInt32LE(error, 4)
  head.writeBigUInt64LE(unique, 8)
  try {
    writeSync(descriptor, Buffer.concat([head, ...parts]))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error // whoever asked was killed
  }
}

function numbers(bytes: number, at: { readonly [offset: number]: number }): Buffer {
  const buffer = Buffer.alloc(bytes)
  for (const [offset, value] of Object.entries(at)) buffer.writeUInt32LE(value, Number(offset))
  return buffer
}

function attributes(): Buffer {
  const buffer = numbers(104, { 76: 0o100600, 80: 1, 96: PAGE_BYTES })
  buffer.writeBigUInt64LE(1n, 16)
  buffer.writeBigUInt64LE(BigInt(length), 24)
  return buffer
}

const [FORGET, GETATTR, OPEN, READ, WRITE, RELEASE, FSYNC, FLUSH, INIT, INTERRUPT, DESTROY] =
  [2, 3, 14, 15, 16, 18, 20, 25, 26, 36, 38]

function handle(message: Buffer): void {
  const opcode = message.readUInt32LE(4)
  const unique = message.readBigUInt64LE(8)
  switch (opcode) {
    // ASYNC_READ, BIG_WRITES, ASYNC_DIO, MAX_PAGES
    case INIT: return reply(unique, 0, numbers(64, {
      0: 7, 4: 31, 8: MAX_WRITE_BYTES, 12: 1 | 1 << 5 | 1 << 15 | 1 << 22, 16: 64 | 48 << 16, 20: MAX_WRITE_BYTES,
      24: 1, 28: MAX_WRITE_BYTES / PAGE_BYTES
    }))
    case GETATTR: return reply(unique, 0, attributes())
    case OPEN: return reply(unique, 0, numbers(16, { 8: 1 })) // DIRECT_IO: the kernel caches nothing
    case READ: return reply(unique, 0, load(Number(message.readBigUInt64LE(48)), message.readUInt32LE(56)))
    case WRITE: {
      const data = Buffer.from(message.subarray(80))
      const error = write(Number(message.readBigUInt64LE(48)), data)
      return error === 0 ? reply(unique, 0, numbers(8, { 0: data.length })) : reply(unique, error)
    }
    case FSYNC: {
      if (failing === 'flushes') return reply(unique, -EIO)
      take({ ns: now(), offset: 0, data: undefined })
      return reply(unique, 0)
    }
    case RELEASE: case FLUSH: case DESTROY: return reply(unique, 0)
    case FORGET: case INTERRUPT: return
    default: reply(unique, -ENOSYS)
  }
}

function next(buffer: Buffer): void {
  read(descriptor, buffer, 0, buffer.length, null, (error, bytes) => {
    if (error?.code === 'ENODEV') return // unmounted
    if (error === null) handle(buffer.subarray(0, bytes))
    if (error?.code === 'EPERM') setTimeout(() => next(buffer), 1) // not mounted yet
    else next(buffer)
  })
}

next(Buffer.alloc(MAX_WRITE_BYTES + PAGE_BYTES))
process.on('disconnect', () => {
  const undo = 'umount -l "$1"; losetup -j "$0" -n -O NAME | xargs -r losetup -d; umount -l "$0"'
  spawn('sh', ['-c', undo, path, folder], { stdio: 'ignore' }).on('exit', () => process.exit())
})
process.on('message', (request: Request & { readonly id: number }) => {
  process.send!({ id: request.id, result: serve(request) })
})
const options = 'fd=3,rootmode=100600,user_id=0,group_id=0'
const mount = ['-i', '-t', 'fuse', '-o', options, 'volatile-disk', path]
spawn('mount', mount, { stdio: ['ignore', 'ignore', 2, descriptor] })
  .on('exit', code => { process.send!({ id: 0, result: code }) })
