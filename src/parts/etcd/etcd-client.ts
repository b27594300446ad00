/**
 * A client of etcd's JSON gateway (etcd 3.4 and later). It takes a POST of JSON at `/v3/…`. Bytes are base64 in it,
 * 64-bit integers are strings, and what is 0, empty or false is left out. A failure is an HTTP status and, in the body,
 * gRPC's code and a message. A watch answers by a stream of JSON objects, a line each.
 *
 * A request is repeated, at the next endpoint, until one answers or its time is over: a change must be worded so that
 * it happens once (`etcd-log.ts`). The first endpoint is the nearest: the client returns to it once it answers again.
 */
import { Buffer } from 'node:buffer'
import { Agent as HttpAgent, request as requestHttp, type IncomingMessage, type RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { finished } from 'node:stream/promises'
import type { Files } from '../../journal/files.ts'
import { Failure, systemCode } from '../../errors.ts'
import {
  ETCD_ATTEMPT_TIMEOUT_MS, ETCD_LOOK_BACK_MS, ETCD_RETRY_PAUSE_MS, ETCD_WATCH_SILENCE_MS, MAX_ETCD_ANSWER_BYTES
} from './etcd-limits.ts'
import type { EtcdSettings } from './etcd-settings.ts'

export interface EtcdAccess {
  /** Origins: a scheme, a host, a port. */
  readonly endpoints: readonly string[]
  /** The password is asked for each time, since the operator may change it. */
  readonly user?: { readonly name: string, readonly password: () => string } | undefined
  /** PEM; without `ca`, those that Node knows. */
  readonly ca?: Buffer | undefined
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
}

/** Throws `setting-invalid` where a file that the settings name cannot be read. */
export function etcdAccess(settings: EtcdSettings, files: Files): EtcdAccess {
  const { etcdEndpoints: endpoints, etcdUser: name, etcdPasswordFile, etcdCa, etcdCert, etcdKey } = settings
  const read = (path: string | undefined): Buffer | undefined => {
    try {
      return path === undefined ? undefined : files.read(path)
    } catch (error) {
      throw new Failure('setting-invalid', `${path}: ${systemCode(error)}`, { cause: error })
    }
  }
  const password = (): string => read(etcdPasswordFile)?.toString().split(/\r?\n/)[0] ?? ''
  const user = name === undefined ? undefined : { name, password }
  password() // so that a start says that it cannot be read
  return { endpoints, user, ca: read(etcdCa), cert: read(etcdCert), key: read(etcdKey) }
}

/** gRPC's codes for what may succeed at another time or endpoint: etcd is starting, stopping, without a leader. */
const TRANSIENT_CODES = [1, 2, 4, 13, 14]
const UNAUTHENTICATED = 16

/** Whether a failure says that etcd is full. */
export const isFull = ({ message }: Error): boolean => /database space exceeded/.test(message)
const MAKE_ROOM = 'compact and defragment it, or raise --quota-backend-bytes, then end its alarm (etcdctl alarm disarm)'

/** A failed attempt for which the endpoint is not to blame: it needs another token, or a smaller answer. */
class SameEndpoint extends Error {}

const SILENT = new Error('no answer in time')
const RETURNED = new Error('the first endpoint answers again')

interface Answer { readonly status: number, readonly answer: any }

/** A request under way; `stop` destroys it, or its answer. */
interface Sent { readonly response: Promise<IncomingMessage>, readonly stop: (why: Error) => void }

/** Requests to a cluster. */
export class EtcdClient {
  readonly #access: EtcdAccess
  readonly #lookBackMs: number
  readonly #agents: readonly [HttpAgent, HttpsAgent]
  /** The endpoint that is asked first: the last one that did not fail. */
  #at = 0
  /** When the first endpoint is to be asked again, if that is not it. */
  #nextLookMs = 0
  #endWatch = (_why: Error): void => {}
  #token: string | undefined
  #isClosed = false

  constructor(access: EtcdAccess, lookBackMs: number = ETCD_LOOK_BACK_MS) {
    const { ca, cert, key } = access
    this.#access = access
    this.#lookBackMs = lookBackMs
    this.#agents = [new HttpAgent({ keepAlive: true }), new HttpsAgent({ keepAlive: true, ca, cert, key })]
  }

  /**
   * Asks until an endpoint answers. `bodyOf` gets the number of the attempt, from 0: a later one should ask for less,
   * for the answer may have been too large, or too slow. Rejects with `journal-unreachable` when no endpoint has
   * answered by `endMs`, with `journal-refused` and etcd's own words, and with `journal-closed`.
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
        if (!(error instanceof SameEndpoint)) this.#leave(at)
        // The last attempt is cut off at the end, and what an earlier one was answered says more.
        if (error !== SILENT || why === undefined) why = `${this.#access.endpoints[at]}: ${systemCode(error)}`
        if (performance.now() + ETCD_RETRY_PAUSE_MS >= endMs) throw new Failure('journal-unreachable', why)
      }
      await new Promise(resolve => setTimeout(resolve, ETCD_RETRY_PAUSE_MS))
    }
  }

  /**
   * Follows a stream and hands on each message as it comes. Resolves when the stream has ended; rejects if it could not
   * begin, or was silent for `silenceMs`, or the first endpoint is returned to. What `take` throws ends it.
   */
  async follow(
    path: string, body: object, take: (message: any) => void, signal: AbortSignal,
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
        const onText = linesOf(line => { take(JSON.parse(line)) })
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
      // A member without a leader ends its watches and takes no new ones; a silent one may have nothing to report.
      const isBlameless = signal.aborted || error === SILENT || error === RETURNED || error instanceof Failure
      if (!isBlameless) this.#leave(at)
      throw error
    }
  }

  /** Lets go of all connections. */
  close(): void {
    this.#isClosed = true
    for (const agent of this.#agents) agent.destroy()
  }

  /** Turns to the next endpoint, unless another request has done so already. */
  #leave(at: number): void {
    if (this.#at !== at) return
    this.#at = (at + 1) % this.#access.endpoints.length
    if (at === 0) this.#nextLookMs = performance.now() + this.#lookBackMs
  }

  /** Returns to the first endpoint if it answers, with all requests and the watch. */
  async #lookBack(): Promise<void> {
    const nowMs = performance.now()
    this.#nextLookMs = nowMs + this.#lookBackMs
    try {
      await this.#askOnce(0, '/v3/kv/range', '{"key":"AA=="}', nowMs + ETCD_ATTEMPT_TIMEOUT_MS)
    } catch (error) {
      if (!(error instanceof Failure)) return // a refusal is an answer: a member without a leader gives none
    }
    this.#at = 0
    this.#endWatch(RETURNED)
  }

  /** One attempt, which has a deadline as a whole. */
  async #askOnce(at: number, path: string, text: string, endMs: number): Promise<any> {
    const isOld = this.#token !== undefined
    const token = await this.#authenticated(at, endMs)
    const { status, answer } = await this.#exchange(at, path, text, token, endMs)
    if (status === 200) return answer
    const { code, message } = answer
    // The token has expired, or this member has forgotten it, or users were just changed.
    if (code === UNAUTHENTICATED || /auth store is old/.test(message)) {
      if (this.#token === token) this.#token = undefined
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
    const { status, answer } = await this.#exchange(at, '/v3/auth/authenticate', text, undefined, endMs)
    if (status === 200) return this.#token = String(answer.token)
    if (TRANSIENT_CODES.includes(answer.code)) throw new Error(answer.message)
    throw new Failure('journal-refused', `user ${user.name}: ${answer.message}`)
  }

  async #exchange(
    at: number, path: string, text: string, token: string | undefined, endMs: number
  ): Promise<Answer> {
    const { response, stop } = this.#send(at, path, text, token)
    const timer = setTimeout(stop, Math.max(1, endMs - performance.now()), SILENT)
    try {
      const chunks: Buffer[] = []
      let bytes = 0
      for await (const chunk of await response) {
        chunks.push(chunk)
        if ((bytes += chunk.length) > MAX_ETCD_ANSWER_BYTES) throw new SameEndpoint('its answer is too large')
      }
      return answerOf((await response).statusCode!, Buffer.concat(chunks).toString())
    } finally {
      clearTimeout(timer)
    }
  }

  #send(at: number, path: string, text: string, token: string | undefined, signal?: AbortSignal): Sent {
    const url = new URL(path, this.#access.endpoints[at])
    const isTls = url.protocol === 'https:'
    const headers: Record<string, string> = {
      'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(text)),
      'Grpc-Metadata-Hasleader': 'true', ...(token === undefined ? {} : { Authorization: token })
    }
    const options: RequestOptions = { method: 'POST', headers, agent: this.#agents[isTls ? 1 : 0] }
    if (signal !== undefined) options.signal = signal
    const request = (isTls ? requestHttps : requestHttp)(url, options)
    // Once there is an answer, destroying the request would only make that report that it was cut off.
    let stopped: { destroy(why: Error): unknown } = request
    const response = new Promise<IncomingMessage>((resolve, reject) => {
      request.on('response', answer => { resolve(answer); stopped = answer })
      request.on('error', reject)
      request.end(text)
    })
    return { response, stop: why => { stopped.destroy(why) } }
  }
}

/** Puts lines together from what comes; throws what `take` throws, or for a line that is too large. */
function linesOf(take: (line: string) => void): (text: string) => void {
  let rest = ''
  return text => {
    rest += text
    if (rest.length > MAX_ETCD_ANSWER_BYTES) throw new Error('a message is too large')
    if (!text.includes('\n')) return // the whole is looked at once, however many chunks it comes in
    const lines = rest.split('\n')
    rest = lines.pop()!
    for (const line of lines) if (line !== '') take(line)
  }
}

/** What an endpoint has answered; throws where it is not the gateway that has. */
function answerOf(status: number, text: string): Answer {
  // After the JSON of a failure the gateway of etcd 3.4 sends a trailer as if it were a part of the body.
  const answer = parsed(text) ?? parsed(text.slice(0, text.lastIndexOf('}') + 1))
  const isAnswer = status === 200 ? answer !== undefined : Number.isInteger(answer?.code)
  if (isAnswer) return { status, answer: status === 200 ? answer : { ...answer, message: String(answer.message) } }
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
