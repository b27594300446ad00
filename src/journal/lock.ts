/**
 * At most one process has a data folder: the one that listens on a Unix socket in it.
 *
 * A process makes its socket, then probes all others. If one answers, it withdraws; else the others
 * are dead, and are removed. Of two that start at once, the later probe finds the other: both may
 * withdraw, and retry after different times, but never do both win. A socket gets its name once it
 * listens, so one that does not answer is dead, not slow.
 *
 * Who deletes the socket releases the lock, so it is looked at before and after each write.
 */
import { Buffer } from 'node:buffer'
import { randomInt } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createConnection } from 'node:net'
import { basename, join, relative } from 'node:path'
import { Failure, systemCode } from '../errors.ts'
import { fileFault, isFull, isSameFile, type FileStat, type Files } from './files.ts'

export interface Lock {
  /** Answers 503 until something else listens to `request`. */
  readonly server: Server
  readonly socket: string
  /** While it is held, no other process can have the folder. */
  isHeld(): boolean
  /** Also cuts its connections. */
  release(): Promise<void>
}

const HELD = /^held-(\d+)-[0-9a-f]+\.sock$/
/** Sockets: a process of another container may have this one's number. */
const heldHere = new Set<string>()
const TRIES = 3
const MAX_PAUSE_MS = 200
/** The kernel's limit: `sun_path` without the final zero. */
const MAX_SOCKET_PATH_BYTES = 103

export function heldSockets(files: Files, folder: string): string[] {
  return files
    .list(folder)
    .filter(name => HELD.test(name))
    .map(name => join(folder, name))
}

export function probe(path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = createConnection(shortestPath(path))
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    // Only these two mean no listener; overload gives another error.
    socket.on('error', error => resolve(!['ECONNREFUSED', 'ENOENT'].includes(systemCode(error))))
  })
}

/**
 * The path itself, or the one from the working folder. Throws `folder-unusable` if both are too
 * long.
 */
export function shortestPath(path: string): string {
  const isShort = Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES
  const found = isShort ? path : relative(process.cwd(), path)
  if (Buffer.byteLength(found) <= MAX_SOCKET_PATH_BYTES) return found
  throw new Failure(
    'folder-unusable',
    `${path} is longer than ${MAX_SOCKET_PATH_BYTES} bytes, the most for a socket`
  )
}

/**
 * Makes the folder, mode 0700. Rejects with `folder-held`, which names the process, or
 * `folder-unusable`. `random` gives a number below its argument.
 */
export async function lockFolder(
  files: Files,
  folder: string,
  random: (below: number) => number = randomInt
): Promise<Lock> {
  for (let tries = 1; ; tries++) {
    try {
      files.makeFolder(folder)
      return await tryToLock(files, folder, `${process.pid}-${random(2 ** 47).toString(16)}.sock`)
    } catch (error) {
      if (!(error instanceof Failure)) {
        const full = isFull(error) ? ': there is no room for its lock' : ''
        const what = fileFault(files, error, folder)
        throw new Failure('folder-unusable', `${what}${full}`, { cause: error })
      }
      if (error.code !== 'folder-held' || tries === TRIES) throw error
    }
    await new Promise(resolve => setTimeout(resolve, random(MAX_PAUSE_MS)))
  }
}

async function tryToLock(files: Files, folder: string, name: string): Promise<Lock> {
  const opening = join(folder, `opening-${name}`)
  const socket = join(folder, `held-${name}`)
  await deadSockets(files, folder) // `folder-held` says more than a failure to write
  const server = createServer(answerBusy)
  // Otherwise node:http would ask for each body. `local-server.ts` does (100 Continue): if the
  // connection ends before that, its client knows that nothing was done.
  server.on('checkContinue', (request, response) => server.emit('request', request, response))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    // This process's own socket, also in a cluster's worker.
    server.listen({ path: shortestPath(opening), exclusive: true }, resolve)
  })
  server.on('error', () => {}) // a connection was not accepted
  const release = async (): Promise<void> => {
    try {
      heldHere.delete(socket)
      remove(files, socket) // no other socket ever has this name
    } finally {
      const closed = new Promise(resolve => server.close(resolve))
      server.closeAllConnections()
      await closed
    }
  }
  try {
    files.setMode(opening, 0o600)
    const own = files.stat(opening)!
    files.rename(opening, socket)
    heldHere.add(socket)
    for (const dead of await deadSockets(files, folder, socket)) remove(files, dead)
    return { server, socket, isHeld: () => isStill(files, socket, own), release }
  } catch (error) {
    await release().catch(() => {}) // the first error says more
    throw error
  }
}

async function deadSockets(files: Files, folder: string, own?: string): Promise<readonly string[]> {
  const others = heldSockets(files, folder).filter(other => other !== own)
  for (const other of others) {
    if (!(await probe(other))) continue
    const whose = heldHere.has(other)
      ? 'this process, which has it open already'
      : `process ${HELD.exec(basename(other))?.[1]}`
    throw new Failure('folder-held', `${folder} belongs to ${whose}`)
  }
  return others
}

function isStill(files: Files, path: string, own: FileStat): boolean {
  try {
    return isSameFile(files.stat(path), own)
  } catch {
    return false
  }
}

function answerBusy(this: Server, _request: IncomingMessage, response: ServerResponse): void {
  if (this.listenerCount('request') > 1) return
  response
    .writeHead(503, { 'Content-Type': 'application/json', 'Connection': 'close' })
    .end('{"message":"the service opens or closes just now","status":503}')
}

function remove(files: Files, path: string): void {
  try {
    files.remove(path)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error // another start may have removed it
  }
}
