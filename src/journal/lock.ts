/**
 * At most one process has a data folder.
 *
 * A process that wants it listens on a Unix socket of its own in it, and then probes every other one there. If one
 * answers, the folder is taken, and it withdraws. If none does, what is left are the sockets of processes that are
 * gone, and it removes them. Of two that start at once, the one that probes later finds the other listening; so they
 * never both win. (Both may withdraw; they try again after different times.) The kernel closes a dead process's
 * socket, however it died, so nothing has to be cleaned up by hand, and no process number can be mistaken.
 *
 * A socket gets its name only once it is listened on: one that does not answer is dead, not just slow.
 *
 * Whoever takes away the socket of a process that runs takes its lock away: the next one that looks finds none. So it
 * has to be looked at every now and then, and before and after each write; where it is gone, the lock is taken again
 * in the same way, or another process has it now.
 */
import { basename, join } from 'node:path'
import { Closers } from '../closers.ts'
import { Failure, systemCode } from '../errors.ts'
import { fileFault, isSameFile, type FileStat, type Files } from './files.ts'

export interface UnixSockets {
  /** Starts to listen at a path; the result ends it. */
  open(path: string): Promise<() => Promise<void>>
  probe(path: string): Promise<boolean>
}

export interface FolderLock {
  /** Whether the socket is where it was put: nobody else can have the folder. */
  isHeld(): boolean
  /** Takes the lock again where the socket is gone; rejects as `lockFolder` does. */
  keep(): Promise<void>
  /** Why it could not be taken again when that was last tried; undefined while it is held. */
  fault(): string | undefined
  release(): Promise<void>
}

/** A socket that is listened on. */
interface Held {
  readonly socket: string
  /** The folder that it is in. */
  readonly place: FileStat
  isThere(): boolean
  /** Ends listening. */
  close(): Promise<void>
}

interface LockOptions {
  /** Locks a part of the folder: the names of its sockets begin with it. */
  readonly prefix?: string
  /** Gets a line when the lock is lost, and when it is taken again. */
  readonly warn?: (line: string) => void
}

const HELD = /^held-(\d+)-[0-9a-f]+\.sock$/
const OPENING = /^opening-\d+-[0-9a-f]+\.sock$/
const TRIES = 3
/** Listeners whose sockets were removed, which may still have requests to answer; the oldest is closed. */
const MAX_LOST = 8

/** The lock sockets in a folder, or of a file in it; they may be those of dead processes. */
export function heldSockets(files: Files, folder: string, prefix: string = '', kind: RegExp = HELD): string[] {
  return files.list(folder).filter(name => name.startsWith(prefix) && kind.test(name.slice(prefix.length)))
    .map(name => join(folder, name))
}

/**
 * Makes the folder (mode 0700) if need be and locks it. `random` gives an integer below its argument. Rejects with
 * `folder-held`, naming the process, or, where no process is known to have it, `folder-unusable`.
 */
export async function lockFolder(
  files: Files, folder: string, sockets: UnixSockets, pid: number, random: (below: number) => number,
  { prefix = '', warn = () => {} }: LockOptions = {}
): Promise<FolderLock> {
  const take = (makesFolder: boolean): Promise<Held> =>
    takeLock(files, folder, sockets, { pid, random, prefix, makesFolder })
  return new KeptLock(files, folder, warn, take, await take(true))
}

/** A lock that is taken again where its socket was removed. */
class KeptLock implements FolderLock {
  readonly #files: Files
  readonly #folder: string
  readonly #warn: (line: string) => void
  readonly #take: (makesFolder: boolean) => Promise<Held>
  #held: Held
  readonly #lost: Held[] = []
  #fault: string | undefined
  #taking: Promise<void> | undefined
  #isReleased = false

  constructor(
    files: Files, folder: string, warn: (line: string) => void, take: (makesFolder: boolean) => Promise<Held>,
    held: Held
  ) {
    this.#files = files
    this.#folder = folder
    this.#warn = warn
    this.#take = take
    this.#held = held
  }

  readonly isHeld = (): boolean => this.#held.isThere()

  readonly fault = (): string | undefined => this.#fault

  readonly keep = async (): Promise<void> => {
    if (this.#isReleased || this.#held.isThere()) return
    this.#taking ??= this.#takeAgain()
    await this.#taking
  }

  readonly release = async (): Promise<void> => {
    this.#isReleased = true
    await this.#taking?.catch(() => {})
    const closers = new Closers()
    for (const { close } of [...this.#lost, this.#held]) closers.add(close)
    await closers.close()
  }

  async #takeAgain(): Promise<void> {
    const { socket, place } = this.#held
    try {
      const now = this.#files.stat(this.#folder)
      if (now === undefined || !isSameFile(now, place)) {
        throw new Failure('folder-unusable', `${this.#folder} was removed or replaced`)
      }
      const taken = await this.#take(false)
      this.#lost.push(this.#held)
      if (this.#lost.length > MAX_LOST) await this.#lost.shift()!.close()
      this.#warn(`the socket of the lock, ${socket}, was removed by another program, and made again`)
      this.#held = taken
      this.#fault = undefined
    } catch (error) {
      const why = (error as Error).message
      const what = 'the socket of the lock is gone, or cannot be looked at; no changes until it is back'
      if (why !== this.#fault) this.#warn(`${what}: ${why}`)
      this.#fault = why
      throw error
    } finally {
      this.#taking = undefined
    }
  }
}

interface TakeOptions {
  readonly pid: number
  /** Gives an integer below its argument. */
  readonly random: (below: number) => number
  readonly prefix: string
  readonly makesFolder: boolean
}

async function takeLock(
  files: Files, folder: string, sockets: UnixSockets, { pid, random, prefix, makesFolder }: TakeOptions
): Promise<Held> {
  for (let tries = 1; ; tries++) {
    const name = `${pid}-${random(2 ** 47).toString(16)}`
    try {
      if (makesFolder) files.makeFolder(folder)
      return await tryToLock(files, folder, sockets, name, prefix)
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw new Failure('folder-unusable', fileFault(files, error, folder), { cause: error })
      }
      if (error.code !== 'folder-held' || tries === TRIES) throw error
    }
    await new Promise(resolve => setTimeout(resolve, random(200)))
  }
}

async function tryToLock(
  files: Files, folder: string, sockets: UnixSockets, name: string, prefix: string
): Promise<Held> {
  const opening = join(folder, `${prefix}opening-${name}.sock`)
  const socket = join(folder, `${prefix}held-${name}.sock`)
  /** The sockets of dead processes. Rejects with `folder-held` if another process listens on one. */
  const deadSockets = async (): Promise<readonly string[]> => {
    const others = heldSockets(files, folder, prefix).filter(other => other !== socket)
    for (const other of others) {
      if (!await sockets.probe(other)) continue
      const pid = HELD.exec(basename(other).slice(prefix.length))?.[1]
      throw new Failure('folder-held', `${folder} belongs to process ${pid}`)
    }
    return others
  }
  const close = await sockets.open(opening).catch(async error => {
    await deadSockets() // a folder that cannot be written may be another process's: that is the better reason
    throw error
  })
  let own: FileStat | undefined
  const isThere = (): boolean => {
    try {
      const found = files.stat(socket)
      return found !== undefined && own !== undefined && isSameFile(found, own)
    } catch {
      return false
    }
  }
  const release = async (): Promise<void> => {
    try {
      remove(files, socket) // no other socket ever has this name
    } finally {
      await close()
    }
  }
  try {
    try {
      files.setMode(opening, 0o600)
      own = files.stat(opening)
      files.rename(opening, socket)
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error
      throw new Failure('folder-held', `${folder} was taken by another process meanwhile`)
    }
    for (const dead of await deadSockets()) remove(files, dead)
    // Left by those that died while they opened; one that opens just now fails, and tries again.
    for (const left of heldSockets(files, folder, prefix, OPENING)) remove(files, left)
    return { socket, place: files.stat(folder)!, isThere, close: release }
  } catch (error) {
    await release().catch(() => {}) // what has failed first says more
    throw error
  }
}

function remove(files: Files, path: string): void {
  try {
    files.remove(path)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
  }
}
