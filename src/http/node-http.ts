/**
 * What is used of node:http beyond its documentation: each with its reason, and with the documented
 * way that does not do. `test/http/node-http.test.ts` asks Node for each.
 */
import { IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'

/**
 * A client may end its side behind its request. Otherwise node:http drops the answer. The option
 * `allowHalfOpen` of node:net is on in any case, and does not help.
 */
export function allowHalfOpen(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true })
}

/**
 * `server.close()` calls `closeIdleConnections()`, for which a connection is idle although its
 * answer is still being sent. `close()` of node:net would leave a timer of node:http behind.
 */
export function sparesSendingConnections(server: Server): void {
  server.closeIdleConnections = () => {}
}

/**
 * Whether another request may follow this answer: the version and `Connection` of the request
 * decide. To read them here would be a second reading, which may differ from node:http's own.
 */
export function keepsAlive(response: ServerResponse): boolean {
  return response.shouldKeepAlive
}

/**
 * The documented way, the field `Connection: close`, needs the answer's fields, which may not be
 * known yet.
 */
export function endsConnection(response: ServerResponse): void {
  response.shouldKeepAlive = false
}

/**
 * The parser gives each head to `onIncoming`, and stops if that returns 2, as behind an upgrade.
 * `pause()` of the socket lets the parser finish what was read: 64 KiB are 3,600 requests, which
 * take 5 MB until the first is answered.
 */
export function stopParser(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: { onIncoming: typeof skip } | null }
  if (parser) parser.onIncoming = skip
}

function skip(request: { upgrade?: boolean }): number {
  request.upgrade = false
  return 2
}

/**
 * Behind its last answer, node:http calls the socket's `destroySoon()`. That resets a connection
 * with unread bytes, and the reset overtakes the answer. node:http acts on `Connection: close` by
 * itself, and has no option for it.
 */
export function replaceLastStep(socket: Socket, lastStep: () => void): void {
  socket.destroySoon = lastStep
}

/**
 * It can drop a body before its stream, to which node:http gives each chunk by `push()`: 64 KiB may
 * be 10,000 chunks. If the stream flows without listeners, each of them costs as much as with one.
 */
export class ListenerRequest extends IncomingMessage {
  isDiscarded = false
  /**
   * Whether `100 Continue` was sent: a client that expects it and gets none loses its connection by
   * node:http.
   */
  isContinued = false
  /** Told if the body breaks off while it is read: with the status that answers it, or `gone`. */
  onBroken: ((why: 400 | 405 | 408 | 413 | 431 | 'gone') => void) | undefined

  override push(piece: Buffer | null): boolean {
    return this.isDiscarded && piece !== null ? true : super.push(piece)
  }
}
