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
import { isSameFile, type FileStat, type Files } from './files.ts'

export interface UnixSockets {
  /** Starts to listen at a path; the result ends it. */
  open(path: string): Promise<() => Promise<void>>
  probe(path: string): Promise<boolean>
}

export interface FolderLock {
  /** The socket, which has another name once it was made again. */
  readonly socket: string
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
  const take = async (makesFolder: boolean): Promise<Held> => {
    for (let tries = 1; ; tries++) {
      const name = `${pid}-${random(2 ** 47).toString(16)}`
      try {
        if (makesFolder) files.makeFolder(folder)
        return await tryToLock(files, folder, sockets, name, prefix)
      } catch (error) {
        if (!(error instanceof Failure)) {
          throw new Failure('folder-unusable', `${folder}: ${systemCode(error)}`, { cause: error })
        }
        if (error.code !== 'folder-held' || tries === TRIES) throw error
      }
      await new Promise(resolve => setTimeout(resolve, random(200)))
    }
  }
  let held = await take(true)
  const lost: Held[] = []
  let fault: string | undefined
  let taking: Promise<void> | undefined
  const takeAgain = async (): Promise<void> => {
    try {
      const now = files.stat(folder)
      if (now === undefined || !isSameFile(now, held.place)) {
        throw new Failure('folder-unusable', `${folder} was removed or replaced`)
      }
      const taken = await take(false)
      lost.push(held)
      if (lost.length > MAX_LOST) await lost.shift()!.close()
      warn(`the socket of the lock, ${held.socket}, was removed by another program, and made again`)
      held = taken
      fault = undefined
    } catch (error) {
      const why = (error as Error).message
      const what = 'the socket of the lock was removed by another program; no changes until it is back'
      if (why !== fault) warn(`${what}: ${why}`)
      fault = why
      throw error
    } finally {
      taking = undefined
    }
  }
  let isReleased = false
  return {
    get socket() { return held.socket },
    isHeld: () => held.isThere(),
    keep: async () => {
      if (isReleased || held.isThere()) return
      await (taking ??= takeAgain())
    },
    fault: () => fault,
    release: async () => {
      isReleased = true
      await taking?.catch(() => {})
      const closers = new Closers()
      for (const { close } of [...lost, held]) closers.add(close)
      await closers.close()
    }
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
      if (isThere()) remove(files, socket)
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
    await release()
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
