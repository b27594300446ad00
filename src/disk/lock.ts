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
 */
import { basename, join } from 'node:path'
import { Failure, systemCode } from '../errors.ts'
import type { Files } from './files.ts'

export interface UnixSockets {
  /** Starts to listen at a path; the result ends it. */
  open(path: string): Promise<() => Promise<void>>
  probe(path: string): Promise<boolean>
}

export interface FolderLock {
  readonly socket: string
  release(): Promise<void>
}

const HELD = /^held-(\d+)-[0-9a-f]+\.sock$/
const OPENING = /^opening-\d+-[0-9a-f]+\.sock$/
const TRIES = 3

/** The lock sockets in a folder, or of a file in it; they may be those of dead processes. */
export function heldSockets(files: Files, folder: string, prefix: string = '', kind: RegExp = HELD): string[] {
  return files.list(folder).filter(name => name.startsWith(prefix) && kind.test(name.slice(prefix.length)))
    .map(name => join(folder, name))
}

/**
 * Makes the folder (mode 0700) if need be and locks it. `random` gives an integer below its argument. Rejects with
 * `folder-held`, naming the process, or, where no process is known to have it, `folder-unusable`. With `prefix`, with
 * which the names of its sockets begin, it locks a part of the folder.
 */
export async function lockFolder(
  files: Files, folder: string, sockets: UnixSockets, pid: number, random: (below: number) => number,
  prefix: string = ''
): Promise<FolderLock> {
  for (let tries = 1; ; tries++) {
    const name = `${pid}-${random(2 ** 47).toString(16)}`
    try {
      files.makeFolder(folder)
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

async function tryToLock(
  files: Files, folder: string, sockets: UnixSockets, name: string, prefix: string
): Promise<FolderLock> {
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
  const release = async (): Promise<void> => {
    try {
      remove(files, socket)
    } finally {
      await close()
    }
  }
  try {
    try {
      files.setMode(opening, 0o600)
      files.rename(opening, socket)
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error
      throw new Failure('folder-held', `${folder} was taken by another process meanwhile`)
    }
    for (const dead of await deadSockets()) remove(files, dead)
    // Left by those that died while they opened; one that opens just now fails, and tries again.
    for (const left of heldSockets(files, folder, prefix, OPENING)) remove(files, left)
    return { socket, release }
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
