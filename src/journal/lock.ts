/**
 * At most one process has a data folder: the one that listens on a Unix socket in it, on which a part may serve.
 *
 * A process makes a socket of its own in the folder, and then probes every other one there. If one answers, the folder
 * is taken, and the process withdraws. If none does, the others are left by dead processes, whose sockets the kernel
 * has closed, and are removed. Of two that start at once, the later probe finds the other process: they never both win.
 * (Both may withdraw; they try again after different times.) A socket gets its name only once it is listened on: if it
 * does not answer, it is dead, not just slow.
 *
 * Deleting the socket releases the lock. So it is looked at before and after each write.
 */
import { Buffer } from 'node:buffer'
import { randomInt } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createConnection } from 'node:net'
import { basename, join, relative } from 'node:path'
import { Failure, systemCode } from '../errors.ts'
import { fileFault, isFull, isSameFile, workingFolder, type FileStat, type Files } from './files.ts'

export interface Lock {
  /** Answers 503 until something else listens to its `request`. */
  readonly server: Server
  /** The path of the socket. */
  readonly socket: string
  /** Whether the socket is where it was put: nobody else can have the folder. */
  isHeld(): boolean
  /** Removes the socket and cuts the connections to it. */
  release(): Promise<void>
}

const HELD = /^held-(\d+)-[0-9a-f]+\.sock$/
const TRIES = 3
const MAX_PAUSE_MS = 200
/** What the kernel takes for the path of a Unix socket (sun_path, less the final zero). */
const MAX_SOCKET_PATH_BYTES = 103

/** The lock sockets in a folder; they may be those of dead processes. */
export function heldSockets(files: Files, folder: string): string[] {
  return files.list(folder).filter(name => HELD.test(name)).map(name => join(folder, name))
}

/** Whether a process listens on a socket. */
export function probe(path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = createConnection(shortestPath(path))
    socket.on('connect', () => { socket.destroy(); resolve(true) })
    // Only these two mean that there is no listener; an overloaded one gives another error.
    socket.on('error', error => resolve(!['ECONNREFUSED', 'ENOENT'].includes(systemCode(error))))
  })
}

/** The path, or its way from the working folder, whichever is shorter; throws if both are too long for a socket. */
export function shortestPath(path: string): string {
  const folder = workingFolder()
  const way = folder === undefined ? path : relative(folder, path)
  const found = way.length < path.length ? way : path
  if (Buffer.byteLength(found) <= MAX_SOCKET_PATH_BYTES) return found
  throw new Failure('folder-unusable', `${path} is longer than ${MAX_SOCKET_PATH_BYTES} bytes, the most for a socket`)
}

/**
 * Makes the folder (mode 0700) if need be and locks it. Rejects with `folder-held`, naming the process, or, if no
 * process is known to have it, `folder-unusable`. `random` gives an integer below its argument.
 */
export async function lockFolder(
  files: Files, folder: string, random: (below: number) => number = randomInt
): Promise<Lock> {
  for (let tries = 1; ; tries++) {
    try {
      files.makeFolder(folder)
      return await tryToLock(files, folder, `${process.pid}-${random(2 ** 47).toString(16)}.sock`)
    } catch (error) {
      if (!(error instanceof Failure)) {
        const what = `${fileFault(files, error, folder)}${isFull(error) ? ': there is no room for its lock' : ''}`
        throw new Failure('folder-unusable', what, { cause: error })
      }
      if (error.code !== 'folder-held' || tries === TRIES) throw error
    }
    await new Promise(resolve => setTimeout(resolve, random(MAX_PAUSE_MS)))
  }
}

async function tryToLock(files: Files, folder: string, name: string): Promise<Lock> {
  const opening = join(folder, `opening-${name}`)
  const socket = join(folder, `held-${name}`)
  await deadSockets(files, folder) // a folder that cannot be written may be another process's: that says more
  const server = createServer(answerBusy)
  // Who serves says when a body may come: what was not asked for was not taken.
  server.on('checkContinue', (request, response) => server.emit('request', request, response))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    // A socket in a folder is this process's own, also in a worker of a cluster.
    server.listen({ path: shortestPath(opening), exclusive: true }, resolve)
  })
  server.on('error', () => {}) // a connection that could not be accepted
  const release = async (): Promise<void> => {
    try {
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
    for (const dead of await deadSockets(files, folder, socket)) remove(files, dead)
    return { server, socket, isHeld: () => isStill(files, socket, own), release }
  } catch (error) {
    await release().catch(() => {}) // what has failed first says more
    throw error
  }
}

/** The sockets of dead processes. Rejects with `folder-held` if another process listens on one. */
async function deadSockets(files: Files, folder: string, own?: string): Promise<readonly string[]> {
  const others = heldSockets(files, folder).filter(other => other !== own)
  for (const other of others) {
    if (!await probe(other)) continue
    throw new Failure('folder-held', `${folder} belongs to process ${HELD.exec(basename(other))?.[1]}`)
  }
  return others
}

/** Whether a path leads to the same file as before. */
function isStill(files: Files, path: string, own: FileStat): boolean {
  try {
    const found = files.stat(path)
    return found !== undefined && isSameFile(found, own)
  } catch {
    return false
  }
}

/** Answers until something else listens as well. */
function answerBusy(this: Server, _request: IncomingMessage, response: ServerResponse): void {
  if (this.listenerCount('request') > 1) return
  response.writeHead(503, { 'Content-Type': 'application/json', Connection: 'close' })
    .end('{"message":"the service opens or closes just now","status":503}')
}

function remove(files: Files, path: string): void {
  try {
    files.remove(path)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error // another start may have removed it
  }
}
