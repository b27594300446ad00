import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { shortestPath } from '../../../journal/lock.ts'
import { VERSION } from '../../../version.ts'
import { OperatorError } from '../../commands/command.ts'
import { OPERATOR_FIELD, VERSION_FIELD } from './local-server.ts'

export interface LocalAnswer {
  readonly status: number
  readonly body: unknown
}

const UNKNOWN =
  'the service cut the connection before it answered, and may have carried out the command; ' +
  'look (journal show), and repeat the command if it did not'

/**
 * The body waits until the service asks for it by 100 (RFC 9110 §10.1.1); before that, nothing is
 * done. Rejects with the system's error if nothing was changed. Rejects with an `OperatorError`, so
 * that nobody repeats it unseen, if that is not known, or if the service has another version.
 * `take` gets the answer piece by piece.
 */
export async function requestLocal(
  socketPath: string,
  name: string,
  body: object,
  operator: string = '',
  take?: (piece: string) => void
): Promise<LocalAnswer> {
  const content = Buffer.from(JSON.stringify(body))
  const headers = {
    'Host': 'localhost',
    'Connection': 'close',
    'Content-Type': 'application/json',
    'Content-Length': content.length,
    'Expect': '100-continue',
    [OPERATOR_FIELD]: operator,
    [VERSION_FIELD]: VERSION
  }
  const outgoing = request({
    socketPath: shortestPath(socketPath),
    method: 'POST',
    path: `/operator/${name}`,
    headers
  })
  let mayBeDone = false
  outgoing.on('error', () => {}) // who reads the answer learns of it
  outgoing
    .on('continue', () => {
      mayBeDone = true
      outgoing.end(content)
    })
    .flushHeaders()
  try {
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    const {
      statusCode: status = 0,
      headers: { [VERSION_FIELD]: version }
    } = response
    if (status === 200 && version === VERSION && take !== undefined) {
      response.setEncoding('latin1') // lines are ASCII
      for await (const piece of response) take(piece as string)
      return { status, body: {} }
    }
    const answer = await text(response)
    // The lock answers before anything serves on it.
    if (version !== VERSION && status !== 503) {
      throw new OperatorError(
        `the service that runs is of another version (${version ?? 'an older one'}, and this ` +
          `program is ${VERSION}): restart the service first`
      )
    }
    return { status, body: answer === '' ? {} : JSON.parse(answer) }
  } catch (error) {
    throw mayBeDone && !(error instanceof OperatorError)
      ? new OperatorError(UNKNOWN, { cause: error })
      : error
  } finally {
    outgoing.destroy() // its body may still wait
  }
}
