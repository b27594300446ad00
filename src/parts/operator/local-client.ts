/** A request over a Unix socket, for the operator's program. */
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { shortestPath } from '../../http/local-socket.ts'

/** An answer with its JSON body, undefined where there is none. */
export interface LocalAnswer {
  readonly status: number
  readonly body: unknown
}

/** Sends a request with a JSON body, for the account `operator`; rejects with the system's error where none answers. */
export async function requestLocal(
  socketPath: string, method: string, path: string, body?: unknown, operator: string = ''
): Promise<LocalAnswer> {
  const type = body === undefined ? {} : { 'Content-Type': 'application/json' }
  const headers = { Host: 'localhost', Connection: 'close', 'X-Operator': operator, ...type }
  const outgoing = request({ socketPath: shortestPath(socketPath), method, path, headers })
  outgoing.on('error', () => {}) // of an answer that is cut off, its reader learns
  outgoing.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = await once(outgoing, 'response') as [IncomingMessage]
  const answer = await text(response)
  return { status: response.statusCode!, body: answer === '' ? undefined : JSON.parse(answer) }
}
