/**
 * At most one process has a data folder.
 *
  * A process that wants it listens on a Unix socket of its own in it, and then probes every other one there. One
 * answers: the folder is taken, and it withdraws. None answers: what is left are the sockets of processes that are
 * gone, and it removes them. Of two that start at once, the one that knocks later finds the other listening; so they
 * never both win. (Both may withdraw; they try again after different times.) The kernel closes a dead process's
 * socket, however it died, so nothing has to be cleaned up by hand, and no process number can be mistaken.
 *
 * A socket gets its name only once it is listened on: one that does not answer is dead, not just slow.
 */
import { basename, join } from 'node:path'
import { Failure, systemCode } from '../errors.ts'
import type { Files } from './files.ts'

/** A Unix socket. */
export interface Door {
  /** Starts to listen at a path; the result ends it. */
  open(path: string): Promise<() => Promise<void>>
  /** Whether a process listens at a path. */
  knock(path: string): Promise<boolean>
}

/** A folder that is held. */
export interface Hold {
  /** The path of the socket that shows it. */
  readonly socket: string
  release(): Promise<void>
}

const HELD = /^held-(\d+)-[0-9a-f]+\.sock$/
const OPENING = /^opening-\d+-[0-9a-f]+\.sock$/
const TRIES = 3

/** The sockets in a folder that say it is held, or a file in it; they may be those of dead processes. */
export function heldSockets(files: Files, folder: string, prefix: string = ''): string[] {
  return socketsOf(files, folder, prefix, HELD)
}

function socketsOf(files: Files, folder: string, prefix: string, kind: RegExp): string[] {
  return files.list(folder).filter(name => name.startsWith(prefix) && kind.test(name.slice(prefix.length)))
    .map(name => join(folder, name))
}

/**
 * Makes the folder (mode 0700) if need be and holds it. `random` gives an integer below its argument. Rejects with
 * `folder-held`, naming the process, or, where nobody is known to hold it, `folder-unusable`. With `prefix`, which all
 * names of its sockets have, it holds a part of the folder.
 */
export async function holdFolder(
  files: Files, folder: string, door: Door, pid: number, random: (below: number) => number, prefix: string = ''
): Promise<Hold> {
  for (let tries = 1; ; tries++) {
    const name = `${pid}-${random(2 ** 47).toString(16)}`
    try {
      files.makeFolder(folder)
      return await tryToHold(files, folder, door, name, prefix)
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw new Failure('folder-unusable', `${folder}: ${systemCode(error)}`, { cause: error })
      }
      if (error.code !== 'folder-held' || tries === TRIES) throw error
    }
    await new Promise(resolve => setTimeout(resolve, random(200)))
  }
}

async function tryToHold(files: Files, folder: string, door: Door, name: string, prefix: string): Promise<Hold> {
  const opening = join(folder, `${prefix}opening-${name}.sock`)
  const socket = join(folder, `${prefix}held-${name}.sock`)
  const close = await door.open(opening).catch(async error => {
    await deadSockets(files, folder, door, prefix)
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
    for (const dead of await deadSockets(files, folder, door, prefix, socket)) remove(files, dead)
    // What is left of those that died while they opened; one that is just about to will fail, and try again.
    for (const left of socketsOf(files, folder, prefix, OPENING)) remove(files, left)
    return { socket, release }
  } catch (error) {
    await release()
    throw error
  }
}

/** The sockets behind which nobody listens. Rejects with `folder-held` if somebody does, but behind one's own. */
async function deadSockets(
  files: Files, folder: string, door: Door, prefix: string, own?: string
): Promise<string[]> {
  const others = heldSockets(files, folder, prefix).filter(socket => socket !== own)
  for (const other of others) {
    if (!await door.knock(other)) continue
    const pid = HELD.exec(basename(other).slice(prefix.length))?.[1]
    throw new Failure('folder-held', `${folder} belongs to process ${pid}`)
  }
  return others
}

function remove(files: Files, path: string): void {
  try {
    files.remove(path)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
  }
}
