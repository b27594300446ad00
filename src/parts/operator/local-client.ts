/** A request over a Unix socket, for the operator's program. */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { shortestPath } from '../../journal/lock.ts'
import { OperatorError } from '../command.ts'

/** An answer with its JSON body, undefined where there is none. */
export interface LocalAnswer {
  readonly status: number
  readonly body: unknown
}

/** Ends a command whose change may have been made. */
const UNKNOWN = 'the service cut the connection before it answered, and may have done what was asked for; ' +
  'look whether it did (journal show), and repeat the command if not'

/**
 * Sends a request with a JSON body, for the account `operator`. The body waits until the service asks for it (RFC 9110
 * §10.1.1), since nothing is done before. Rejects with the system's error where none answers and nothing was changed,
 * and with an `OperatorError` where that cannot be known.
 */
export async function requestLocal(
  socketPath: string, method: string, path: string, body?: unknown, operator: string = ''
): Promise<LocalAnswer> {
  const content = Buffer.from(body === undefined ? '' : JSON.stringify(body))
  const fields = body === undefined ? {} : {
    'Content-Type': 'application/json', 'Content-Length': content.length, Expect: '100-continue'
  }
  const headers = { Host: 'localhost', Connection: 'close', 'X-Operator': operator, ...fields }
  const outgoing = request({ socketPath: shortestPath(socketPath), method, path, headers })
  let mayBeDone = false
  const send = (): void => {
    mayBeDone = method !== 'GET'
    outgoing.end(content)
  }
  outgoing.on('error', () => {}) // of an answer that is cut off, its reader learns
  if (body === undefined) outgoing.on('socket', socket => socket.on('connect', send))
  else outgoing.on('continue', send).flushHeaders()
  try {
    const [response] = await once(outgoing, 'response') as [IncomingMessage]
    const answer = await text(response)
    return { status: response.statusCode!, body: answer === '' ? undefined : JSON.parse(answer) }
  } catch (error) {
    throw mayBeDone ? new OperatorError(UNKNOWN, { cause: error }) : error
  } finally {
    outgoing.destroy() // where a body was not asked for, it still waits
  }
}
