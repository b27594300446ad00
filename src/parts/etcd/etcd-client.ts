/**
 * A client of etcd's JSON gateway (etcd 3.4 and later): bytes are base64, 64-bit integers strings;
 * 0, empty and false are left out; a failure has gRPC's code.
 *
 * A request is repeated at the next endpoint, so a change must be worded to happen once
 * (`etcd-log.ts`). The client returns to the first endpoint, the nearest, once that answers.
 */
import { Buffer } from 'node:buffer'
import {
  Agent as HttpAgent,
  request as requestHttp,
  type IncomingMessage,
  type RequestOptions
} from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { finished } from 'node:stream/promises'
import type { Files } from '../../journal/files.ts'
import { Failure, systemCode } from '../../errors.ts'
import {
  ETCD_ATTEMPT_TIMEOUT_MS,
  ETCD_LOOK_BACK_MS,
  ETCD_RETRY_PAUSE_MS,
  ETCD_WATCH_SILENCE_MS,
  MAX_ETCD_ANSWER_BYTES
} from './etcd-limits.ts'
import type { EtcdSettings } from './etcd-settings.ts'

export interface EtcdAccess {
  readonly endpoints: readonly string[]
  /** `password` is called for each login: the operator may change it. */
  readonly user?: { readonly name: string; readonly password: () => string } | undefined
  /** PEM. Without `ca`, Node's authorities count. */
  readonly ca?: Buffer | undefined
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
}

/** Throws `setting-invalid` if a file cannot be read. */
export function etcdAccess(settings: EtcdSettings, files: Files): EtcdAccess {
  const {
    etcdEndpoints: endpoints,
    etcdUser: name,
    etcdPasswordFile,
    etcdCa,
    etcdCert,
    etcdKey
  } = settings
  const read = (path: string | undefined): Buffer | undefined => {
    try {
      return path === undefined ? undefined : files.read(path)
    } catch (error) {
      throw new Failure('setting-invalid', `${path}: ${systemCode(error)}`, { cause: error })
    }
  }
  const password = (): string => read(etcdPasswordFile)?.toString().split(/\r?\n/)[0] ?? ''
  const user = name === undefined ? undefined : { name, password }
  password() // an unreadable file must fail the start
  return { endpoints, user, ca: read(etcdCa), cert: read(etcdCert), key: read(etcdKey) }
}

/**
 * gRPC's codes of failures that pass: cancelled, unknown, deadline exceeded, internal, unavailable.
 * After them it is not known whether a change was made.
 */
const TRANSIENT_CODES = [1, 2, 4, 13, 14]
const UNAUTHENTICATED = 16

export const isFull = ({ message }: Error): boolean => /database space exceeded/.test(message)
const MAKE_ROOM =
  'compact and defragment it, or raise --quota-backend-bytes, then end its alarm ' +
  '(etcdctl alarm disarm)'

/** Another token or a smaller answer is needed, not another endpoint. */
class SameEndpoint extends Error {}

const SILENT = new Error('no answer in time')
const RETURNED = new Error('the first endpoint answers again')

interface EtcdAnswer {
  readonly status: number
  readonly answer: any
}

interface Sent {
  readonly response: Promise<IncomingMessage>
  readonly stop: (why: Error) => void
}

export class EtcdClient {
  readonly #access: EtcdAccess
  readonly #lookBackMs: number
  readonly #agents: readonly [HttpAgent, HttpsAgent]
  /** The last endpoint that did not fail. */
  #at = 0
  #nextLookMs = 0
  #endWatch = (_why: Error): void => {}
  #token: string | undefined
  #isClosed = false

  constructor(access: EtcdAccess, lookBackMs: number = ETCD_LOOK_BACK_MS) {
    const { ca, cert, key } = access
    this.#access = access
    this.#lookBackMs = lookBackMs
    this.#agents = [
      new HttpAgent({ keepAlive: true }),
      new HttpsAgent({ keepAlive: true, ca, cert, key })
    ]
  }

  /**
   * `bodyOf` gets the number of the attempt, from 0: later ones should ask for less, since the
   * answer may have been too large or slow. Rejects with `journal-unreachable` after `endMs`, with
   * `journal-refused` and etcd's words, or `journal-closed`.
   */
  async ask(path: string, bodyOf: (attempt: number) => object, endMs: number): Promise<any> {
    let why: string | undefined
    for (let attempt = 0; ; attempt++) {
      if (this.#isClosed) throw new Failure('journal-closed', 'etcd')
      const at = this.#at
      if (at !== 0 && performance.now() >= this.#nextLookMs) void this.#lookBack()
      try {
        const attemptEndMs = Math.min(endMs, performance.now() + ETCD_ATTEMPT_TIMEOUT_MS)
        return await this.#askOnce(at, path, JSON.stringify(bodyOf(attempt)), attemptEndMs)
      } catch (error) {
        if (error instanceof Failure) throw error
        if (this.#isClosed) throw new Failure('journal-closed', 'etcd')
        if (!(error instanceof SameEndpoint)) this.#turnFrom(at)
        // What failed before says more than a last attempt that was cut off.
        if (error !== SILENT || why === undefined)
          why = `${this.#access.endpoints[at]}: ${systemCode(error)}`
        if (performance.now() + ETCD_RETRY_PAUSE_MS >= endMs)
          throw new Failure('journal-unreachable', why)
      }
      await new Promise(resolve => setTimeout(resolve, ETCD_RETRY_PAUSE_MS))
    }
  }

  /**
   * Rejects if the stream cannot begin, is silent for `silenceMs`, `take` throws, or the client
   * returns to the first endpoint.
   */
  async follow(
    path: string,
    body: object,
    take: (message: any) => void,
    signal: AbortSignal,
    silenceMs: number = ETCD_WATCH_SILENCE_MS
  ): Promise<void> {
    const at = this.#at
    try {
      const token = await this.#authenticated(at, performance.now() + ETCD_ATTEMPT_TIMEOUT_MS)
      const { response, stop } = this.#send(at, path, JSON.stringify(body), token, signal)
      const timer = setTimeout(stop, silenceMs, SILENT)
      this.#endWatch = stop
      try {
        const answer = (await response).setEncoding('utf8')
        const onText = linesOf(line => {
          take(JSON.parse(line))
        })
        answer.on('data', (text: string) => {
          timer.refresh()
          try {
            onText(text)
          } catch (error) {
            answer.destroy(error as Error)
          }
        })
        await finished(answer)
      } finally {
        clearTimeout(timer)
      }
    } catch (error) {
      // A member without a leader ends watches; a silent member may have no news.
      const isBlameless =
        signal.aborted || error === SILENT || error === RETURNED || error instanceof Failure
      if (!isBlameless) this.#turnFrom(at)
      throw error
    }
  }

  close(): void {
    this.#isClosed = true
    for (const agent of this.#agents) agent.destroy()
  }

  #turnFrom(at: number): void {
    if (this.#at !== at) return
    this.#at = (at + 1) % this.#access.endpoints.length
    if (at === 0) this.#nextLookMs = performance.now() + this.#lookBackMs
  }

  async #lookBack(): Promise<void> {
    const nowMs = performance.now()
    this.#nextLookMs = nowMs + this.#lookBackMs
    try {
      await this.#askOnce(0, '/v3/kv/range', '{"key":"AA=="}', nowMs + ETCD_ATTEMPT_TIMEOUT_MS)
    } catch (error) {
      if (!(error instanceof Failure)) return // a refusal is an answer too
    }
    this.#at = 0
    this.#endWatch(RETURNED)
  }

  async #askOnce(at: number, path: string, text: string, endMs: number): Promise<any> {
    const isOld = this.#token !== undefined
    const token = await this.#authenticated(at, endMs)
    const { status, answer } = await this.#exchange(at, path, text, token, endMs)
    if (status === 200) return answer
    const { code, message } = answer
    // expired, forgotten by this member, or users were changed
    if (code === UNAUTHENTICATED || /auth store is old/.test(message)) {
      if (this.#token === token) this.#token = undefined
      // This member refuses a token that it has just given: another member may take it.
      throw isOld ? new SameEndpoint(message) : new Error(message)
    }
    const refusal = new Failure('journal-refused', message)
    if (isFull(refusal)) throw new Failure('journal-refused', `${message}: ${MAKE_ROOM}`)
    throw TRANSIENT_CODES.includes(code) ? new Error(message) : refusal
  }

  async #authenticated(at: number, endMs: number): Promise<string | undefined> {
    const { user } = this.#access
    if (user === undefined || this.#token !== undefined) return this.#token
    const text = JSON.stringify({ name: user.name, password: user.password() })
    const { status, answer } = await this.#exchange(
      at,
      '/v3/auth/authenticate',
      text,
      undefined,
      endMs
    )
    if (status === 200) return (this.#token = String(answer.token))
    if (TRANSIENT_CODES.includes(answer.code)) throw new Error(answer.message)
    throw new Failure('journal-refused', `user ${user.name}: ${answer.message}`)
  }

  async #exchange(
    at: number,
    path: string,
    text: string,
    token: string | undefined,
    endMs: number
  ): Promise<EtcdAnswer> {
    const { response, stop } = this.#send(at, path, text, token)
    const timer = setTimeout(stop, Math.max(1, endMs - performance.now()), SILENT)
    try {
      const chunks: Buffer[] = []
      let bytes = 0
      for await (const chunk of await response) {
        chunks.push(chunk)
        if ((bytes += chunk.length) > MAX_ETCD_ANSWER_BYTES)
          throw new SameEndpoint('its answer is too large')
      }
      return answerOf((await response).statusCode!, Buffer.concat(chunks).toString())
    } finally {
      clearTimeout(timer)
    }
  }

  #send(
    at: number,
    path: string,
    text: string,
    token: string | undefined,
    signal?: AbortSignal
  ): Sent {
    const url = new URL(path, this.#access.endpoints[at])
    const isTls = url.protocol === 'https:'
    const headers: Record<string, string> = {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(text)),
      // Then a member that loses its leader ends the watch, and is not silent.
      'Grpc-Metadata-Hasleader': 'true',
      ...(token === undefined ? {} : { Authorization: token })
    }
    const options: RequestOptions = { method: 'POST', headers, agent: this.#agents[isTls ? 1 : 0] }
    if (signal !== undefined) options.signal = signal
    const request = (isTls ? requestHttps : requestHttp)(url, options)
    // To destroy a request that has an answer would only report a cut-off.
    let stopped: { destroy(why: Error): unknown } = request
    const response = new Promise<IncomingMessage>((resolve, reject) => {
      request.on('response', answer => {
        resolve(answer)
        stopped = answer
      })
      request.on('error', reject)
      request.end(text)
    })
    return {
      response,
      stop: why => {
        stopped.destroy(why)
      }
    }
  }
}

function linesOf(take: (line: string) => void): (text: string) => void {
  let rest = ''
  return text => {
    rest += text
    if (rest.length > MAX_ETCD_ANSWER_BYTES) throw new Error('a message is too large')
    if (!text.includes('\n')) return
    const lines = rest.split('\n')
    rest = lines.pop()!
    for (const line of lines) if (line !== '') take(line)
  }
}

function answerOf(status: number, text: string): EtcdAnswer {
  // In etcd 3.4, a trailer follows the JSON of a failure in the body.
  const answer = parsed(text) ?? parsed(text.slice(0, text.lastIndexOf('}') + 1))
  const isAnswer = status === 200 ? answer !== undefined : Number.isInteger(answer?.code)
  if (isAnswer)
    return {
      status,
      answer: status === 200 ? answer : { ...answer, message: String(answer.message) }
    }
  const why = `HTTP status ${status}, and no answer of etcd's`
  throw status < 500 && status !== 200 ? new Failure('journal-refused', why) : new Error(why)
}

function parsed(text: string): any {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
