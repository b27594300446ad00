/**
 * Answers the operator's program on the lock's socket, which only the folder's owner can open.
 *
 * **Nothing is done before the body is asked for.** The program sends `Expect: 100-continue`, and
 * its body only after the answer 100 (`bodyOf`). If the connection ends before that, it repeats the
 * request; if later, it says that the command may have been carried out.
 */
import { Buffer } from 'node:buffer'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { once } from 'node:events'
import { Failure, type FailureCode } from '../../../errors.ts'
import { FileJournal } from '../../../journal/file-journal.ts'
import { MAX_LOCAL_BODY_BYTES, SHUTDOWN_TIMEOUT_MS } from '../../../limits.ts'
import { check, sentenceOf, type Given } from '../../../rights/validate.ts'
import { VERSION } from '../../../version.ts'
import { OperatorError, UsageError } from '../../commands/command.ts'
import { explained, TEXTS_OF_SERVICE } from '../system-error.ts'
import { exitCodeOf } from '../../commands/exit-codes.ts'
import { Lines, type OperationName } from '../../commands/operation.ts'
import { IN_MEMORY } from '../commands/check.ts'
import { assertHeapRoom } from './heap-room.ts'
import { ofJournal } from './no-room.ts'
import {
  callOf,
  SOCKET_OPERATIONS,
  type OperationCall,
  type Operated,
  type SocketOperation
} from './operation-table.ts'

/** Another version may mean something else by the same words. */
export const VERSION_FIELD = 'x-version'
export const OPERATOR_FIELD = 'x-operator'

/**
 * Failures after which nothing was done: answered 503, and the program repeats the request. Never
 * one after which a change may have been made, such as `journal-unreachable`.
 */
const PASSING: readonly FailureCode[] = ['queue-full', 'journal-busy', 'journal-behind']

interface SocketAnswer {
  readonly status: number
  readonly value: unknown
}

/** The returned function ends it, once operations under way have ended. */
export function serveOperations(server: Server, operated: Operated): () => Promise<void> {
  const busy = new Set<Promise<void>>()
  let isClosed = false
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const work = answer(request, response, operated, isClosed).catch(() => {
      response.destroy()
    })
    busy.add(work)
    void work.finally(() => busy.delete(work))
  }
  server.on('request', serve)
  return async () => {
    // before the wait: whatever comes now is refused, and may be repeated elsewhere
    isClosed = true
    let timer: NodeJS.Timeout | undefined
    const isLate = new Promise(resolve => {
      timer = setTimeout(resolve, SHUTDOWN_TIMEOUT_MS)
    })
    while (busy.size > 0)
      if ((await Promise.race([...busy, isLate.then(() => 'late')])) === 'late') break
    clearTimeout(timer)
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  operated: Operated,
  isClosed: boolean
): Promise<void> {
  const { status, value } = isClosed
    ? said(503, 'the service stops just now')
    : await answerOf(request, response, operated)
  const headers = {
    'Content-Type': 'application/json',
    'Connection': 'close',
    [VERSION_FIELD]: VERSION
  }
  if (value instanceof Lines) {
    response.writeHead(status, headers)
    return sendPieces(response, value.pieces)
  }
  const body = Buffer.from(JSON.stringify(value))
  response.writeHead(status, { ...headers, 'Content-Length': body.length })
  await new Promise<void>(resolve => {
    response.on('close', resolve)
    response.end(body)
  })
}

async function answerOf(
  request: IncomingMessage,
  response: ServerResponse,
  operated: Operated
): Promise<SocketAnswer> {
  const name = request.url!.replace(/^\/operator\//, '')
  if (request.headers[VERSION_FIELD] !== VERSION)
    return said(400, `this service is version ${VERSION}`)
  if (request.method !== 'POST' || !Object.hasOwn(SOCKET_OPERATIONS, name))
    return said(404, 'there is no such operation')
  const content = await bodyOf(request, response)
  if (content === undefined)
    return said(413, `a request takes at most ${MAX_LOCAL_BODY_BYTES} bytes`)
  const call = callOf(operated, String(request.headers[OPERATOR_FIELD] ?? ''))
  try {
    assertHeapRoom(operated.store.state, content.length)
    const body = JSON.parse(content.toString()) as Given
    return { status: 200, value: await runOperation(call, name as OperationName, body) }
  } catch (error) {
    const why = explained(error, TEXTS_OF_SERVICE)
    const isPassing = why instanceof Failure && PASSING.includes(why.code)
    if (![Failure, OperatorError, UsageError].some(kind => why instanceof kind))
      operated.warn(`${name}: ${(why as Error).stack}`)
    const hasFailed =
      why instanceof Failure &&
      why.code === 'journal-failed' &&
      operated.journal instanceof FileJournal
    const message = `${(why as Error).message}${hasFailed ? `; ${IN_MEMORY}` : ''}`
    return { status: isPassing ? 503 : 409, value: { message, code: exitCodeOf(why) } }
  }
}

async function bodyOf(
  request: IncomingMessage,
  response: ServerResponse
): Promise<Buffer | undefined> {
  response.writeContinue()
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length
    if (bytes > MAX_LOCAL_BODY_BYTES) return undefined
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}

/** As fast as they are taken. Others are served between two. */
async function sendPieces(response: ServerResponse, pieces: Iterable<string>): Promise<void> {
  for (const piece of pieces) {
    if (response.write(piece)) continue
    await Promise.race([once(response, 'drain'), once(response, 'close')])
    if (response.destroyed) return
  }
  await new Promise<void>(resolve => {
    response.on('close', resolve)
    response.end()
  })
}

function said(status: number, message: string): SocketAnswer {
  return { status, value: { message } }
}

/** Throws a `UsageError` if the body has another shape. */
export async function runOperation(
  call: OperationCall,
  name: OperationName,
  body: Given
): Promise<unknown> {
  const { shape, run } = SOCKET_OPERATIONS[name] as unknown as SocketOperation<{}, unknown>
  const checked = check(shape, body)
  if (!checked.ok) throw new UsageError(sentenceOf(checked.errors))
  // Every operation sees what other instances wrote, except for `status`, which must answer while
  // etcd does not.
  if (name !== 'status') await call.journal.catchUp?.()
  try {
    return await run(call, checked.value)
  } catch (error) {
    throw ofJournal(error, name, call.journal.location().path)
  }
}
