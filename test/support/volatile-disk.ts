/**
 * A disk with a cache that a power cut empties, under a real file system: a loop device on a file that a process of
 * its own (`volatile-disk-device.ts`) serves from memory and whose writes and flushes it takes down. What it holds
 * after a cut at any moment can be mounted again: all that was flushed by then, and of what was not any sectors of
 * 512 bytes. For root on Linux with loop devices and FUSE.
 */
import { execFile, fork, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, ftruncateSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { TestContext } from 'node:test'
import { atEnd, freshFolder } from './service.ts'

const run = promisify(execFile)
const UNMOUNT_MS = 60_000
const DEVICE = fileURLToPath(import.meta.url).replace(/\.\w+$/, '-device$&') // compiled, where this is

/** A power cut: in which recording, behind which operation (-1: before the first), what of the cache is kept. */
export interface Cut {
  readonly recording: number
  readonly at: number
  /** The probability that a sector which was written, but not flushed, is there. */
  readonly share: number
  readonly seed: number
}

export type Request =
  | { readonly act: 'record' | 'recorded' | 'pages' }
  | { readonly act: 'fail', readonly what: number | 'flushes' | undefined }
  | { readonly act: 'cut', readonly cut: Cut }
  | { readonly act: 'forget', readonly recording: number }

/** What reached the device since `record`. */
export interface Recorded {
  readonly recording: number
  /** When each operation came, by the clock of `life.ts`. */
  readonly times: readonly number[]
  /** The operations that write lines of a journal. */
  readonly ofJournal: readonly number[]
}

export interface FileSystem {
  readonly name: 'ext4' | 'xfs'
  readonly mib: number
  readonly make: readonly string[]
}

export const FILE_SYSTEMS: readonly FileSystem[] = [
  {
    name: 'ext4', mib: 64,
    make: ['mkfs.ext4', '-q', '-b', '4096', '-m', '0', '-E', 'nodiscard,lazy_itable_init=0,lazy_journal_init=0']
  },
  { name: 'xfs', mib: 300, make: ['mkfs.xfs', '-q', '-f', '-K'] }
]

/** Why such a disk cannot be had here; false if it can. */
export function volatileDiskMissing({ make: [program] }: FileSystem): string | false {
  if (process.getuid?.() !== 0) return 'only root can mount a file system'
  const { status, stderr } = spawnSync('sh', ['-c', `: <> /dev/fuse && losetup --find && ${program} -V`])
  return status === 0 ? false : `FUSE, loop devices or ${program} are missing: ${String(stderr).trim()}`
}

export class VolatileDisk {
  readonly folder: string
  readonly fileSystem: FileSystem
  readonly #device: ChildProcess
  readonly #loop: string
  readonly #waiting = new Map<number, (result: any) => void>()
  #requests = 0
  readonly end: () => Promise<void>

  private constructor(
    folder: string, fileSystem: FileSystem, device: ChildProcess, loop: string, end: () => Promise<void>
  ) {
    this.folder = folder
    this.fileSystem = fileSystem
    this.#device = device
    this.#loop = loop
    this.end = end
    device.on('message', ({ id, result }: { id: number, result: unknown }) => {
      this.#waiting.get(id)?.(result)
      this.#waiting.delete(id)
    })
  }

  /** A disk with an empty file system, mounted, until the test ends. */
  static async make(t: TestContext, fileSystem: FileSystem): Promise<VolatileDisk> {
    const top = freshFolder(t)
    const file = join(top, 'disk')
    const folder = join(top, 'mounted')
    writeFileSync(file, '')
    mkdirSync(folder)
    const device = fork(DEVICE, [file, String(fileSystem.mib * 2 ** 20), folder])
    const end = async (): Promise<void> => {
      if (!device.connected) return
      device.disconnect()
      await once(device, 'exit')
    }
    atEnd(t, end)
    const [mounted] = await once(device, 'message')
    if (mounted.result !== 0) throw new Error('FUSE could not be mounted')
    const { stdout } = await run('losetup', ['--find', '--show', '--direct-io=on', file])
    const loop = stdout.trim()
    const [command, ...args] = fileSystem.make
    await run(command!, [...args, loop])
    const disk = new VolatileDisk(folder, fileSystem, device, loop, end)
    await disk.mount()
    return disk
  }

  mount(options: string = 'defaults'): Promise<unknown> {
    return run('mount', ['-t', this.fileSystem.name, '-o', options, this.#loop, this.folder])
  }

  /** Takes the file system down; what it writes then is of no matter where a cut follows. */
  async unmount(): Promise<void> {
    await run('umount', [this.folder])
    // A process that took a copy of all mounts for itself meanwhile, by `unshare`, still has it mounted.
    for (const end = performance.now() + UNMOUNT_MS; ; await setTimeout(20)) {
      try {
        return closeSync(openSync(this.#loop, constants.O_RDONLY | constants.O_EXCL))
      } catch (error) {
        if (performance.now() > end) throw error
      }
    }
  }

  /** What the disk holds now is on the platter; from now on, operations are taken down. */
  record(): Promise<void> { return this.#ask({ act: 'record' }) }

  recorded(): Promise<Recorded> { return this.#ask({ act: 'recorded' }) }

  /** Makes the unmounted disk what it is after a power cut, and records from there. */
  cut(cut: Cut): Promise<void> { return this.#ask({ act: 'cut', cut }) }

  forget(recording: number): Promise<void> { return this.#ask({ act: 'forget', recording }) }

  /**
   * From now on flushes fail, or writes of a journal's lines do, each of their sectors arriving with the given
   * probability; undefined: neither.
   */
  fail(what: number | 'flushes' | undefined): Promise<void> { return this.#ask({ act: 'fail', what }) }

  /** Saves the disk as it is, as a sparse file that can be mounted. */
  async save(path: string): Promise<void> {
    const pages: [number, string][] = await this.#ask({ act: 'pages' })
    const file = openSync(path, 'w')
    ftruncateSync(file, this.fileSystem.mib * 2 ** 20)
    for (const [offset, data] of pages) writeSync(file, Buffer.from(data, 'base64'), 0, undefined, offset)
    closeSync(file)
  }

  #ask(request: Request): Promise<any> {
    return new Promise(resolve => {
      const id = ++this.#requests
      this.#waiting.set(id, resolve)
      this.#device.send({ ...request, id })
    })
  }
}
