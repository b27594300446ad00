/** The lock socket: it shows that a process has the data folder, and takes the operator's requests. */
import { Buffer } from 'node:buffer'
import { createConnection } from 'node:net'
import { relative } from 'node:path'
import { workingFolder } from '../journal/files.ts'
import type { UnixSockets } from '../journal/lock.ts'
import { Failure, systemCode } from '../errors.ts'
import type { Handle } from './connection.ts'
import { listen } from './listener.ts'

/** What the kernel takes for the path of a Unix socket (sun_path, less the final zero). */
const MAX_SOCKET_PATH_BYTES = 103

export function localSockets(handle: Handle): UnixSockets {
  return {
    open: async path => {
      const listener = await listen({ path: shortestPath(path) }, handle)
      return () => listener.close(0)
    },
    probe
  }
}

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
