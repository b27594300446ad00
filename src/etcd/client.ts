/**
 * A client of etcd's JSON gateway (etcd 3.4 and later): requests with a bound, over several endpoints, as a user.
 *
 * The gateway takes a POST of JSON at `/v3/…`. Bytes are base64 in it, 64-bit integers are strings, and what is 0,
 * empty or false is left out. A failure is an HTTP status and gRPC's code in the body. A watch answers by a stream of
 * JSON objects, a line each, that are cut into chunks anywhere.
 *
 * A request is repeated, at the next endpoint, until one answers or the bound is reached; so whoever asks for a change
 * must have worded it so that it happens once (see `log.ts`).
 */
import { Buffer } from 'node:buffer'
import { Agent as HttpAgent, request as requestHttp, type IncomingMessage, type RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { Failure, systemCode } from '../errors.ts'
import {
  ETCD_ATTEMPT_TIMEOUT_MS, ETCD_RETRY_PAUSE_MS, ETCD_WATCH_SILENCE_MS, MAX_ETCD_ANSWER_BYTES
} from '../limits.ts'

/** What a client is made with. */
export interface EtcdAccess {
  /** Origins: a scheme, a host, a port. */
  readonly endpoints: readonly string[]
  readonly user?: { readonly name: string, readonly password: string } | undefined
  /** PEM; without `ca`, those that Node knows. */
  readonly ca?: Buffer | undefined
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
}

/** An answer that is larger than this client takes. */
export class AnswerTooLarge extends Error {}

/** gRPC's codes for what may go otherwise at another time or endpoint: etcd is starting, stopping, without a leader. */
const TRANSIENT_CODES = [1, 2, 4, 13, 14]
const UNAUTHENTICATED = 16

/** Requests to a cluster. */
export class EtcdClient {
  readonly #access: EtcdAccess
  readonly #agents: readonly [HttpAgent, HttpsAgent]
  /** The endpoint that is asked first: the last one that did not fail. */
  #at = 0
  #token: string | undefined
  #isClosed = false

  constructor(access: EtcdAccess) {
    const { ca, cert, key } = access
    this.#access = access
    this.#agents = [new HttpAgent({ keepAlive: true }), new HttpsAgent({ keepAlive: true, ca, cert, key })]
  }

  /**
   * Asks until somebody answers. Rejects with `journal-unreachable` when nobody did within `boundMs` (the last try may
   * take a moment longer), with `journal-refused` and etcd's own words, with `journal-closed`, and `AnswerTooLarge`.
   */
  async ask(path: string, body: object, boundMs: number): Promise<any> {
    const endMs = performance.now() + boundMs
    const text = JSON.stringify(body)
    for (;;) {
      const at = this.#at
      try {
        return await this.#askOnce(at, path, text)
      } catch (error) {
        if (error instanceof Failure || error instanceof AnswerTooLarge) throw error
        this.#leave(at)
        if (this.#isClosed) throw new Failure('journal-closed', 'etcd')
        if (performance.now() > endMs) {
          throw new Failure('journal-unreachable', `${this.#access.endpoints[at]}: ${systemCode(error)}`)
        }
      }
      await new Promise(resolve => setTimeout(resolve, ETCD_RETRY_PAUSE_MS))
    }
  }

  /**
   * Follows a stream and hands on each message as it comes. Resolves when the stream has ended; rejects when it could
   * not begin, or was silent for `silenceMs`. What `take` throws ends it.
   */
  async follow(
    path: string, body: object, take: (message: any) => void, signal: AbortSignal,
    silenceMs: number = ETCD_WATCH_SILENCE_MS
  ): Promise<void> {
    const at = this.#at
    try {
      const token = await this.#authenticated(at)
      const response = await this.#send(at, path, JSON.stringify(body), silenceMs, token, signal)
      let rest = ''
      for await (const chunk of response.setEncoding('utf8')) {
        const lines = (rest + String(chunk)).split('\n')
        rest = lines.pop()!
        if (rest.length > MAX_ETCD_ANSWER_BYTES) throw new AnswerTooLarge()
        for (const line of lines.filter(line => line !== '')) take(JSON.parse(line))
      }
    } catch (error) {
      // A member without a leader ends its watches and takes no new ones; one that is silent may have nothing to tell.
      if (!signal.aborted && systemCode(error) !== SILENT) this.#leave(at)
      throw error
    }
  }

  /** Lets go of all connections. */
  close(): void {
    this.#isClosed = true
    for (const agent of this.#agents) agent.destroy()
  }

  /** Turns to the next endpoint, if nobody has done so since. */
  #leave(at: number): void {
    if (this.#at === at) this.#at = (at + 1) % this.#access.endpoints.length
  }

  async #askOnce(at: number, path: string, text: string): Promise<any> {
    const token = await this.#authenticated(at)
    const { status, answer } = await this.#exchange(at, path, text, token)
    if (status === 200) return answer
    const { code, message } = answer as { code: number, message: string }
    // The user's token has expired, or this member has forgotten it, or users were just changed.
    if (code === UNAUTHENTICATED || /auth store is old/.test(message)) this.#forget(token)
    else if (!TRANSIENT_CODES.includes(code)) throw new Failure('journal-refused', message)
    throw new Error(message)
  }

  #forget(token: string | undefined): void { if (this.#token === token) this.#token = undefined }

  async #authenticated(at: number): Promise<string | undefined> {
    const { user } = this.#access
    if (user === undefined || this.#token !== undefined) return this.#token
    const { status, answer } = await this.#exchange(at, '/v3/auth/authenticate', JSON.stringify(user), undefined)
    if (status === 200) return this.#token = String(answer.token)
    if (TRANSIENT_CODES.includes(answer.code)) throw new Error(answer.message)
    throw new Failure('journal-refused', `user ${user.name}: ${answer.message}`)
  }

  async #exchange(
    at: number, path: string, text: string, token: string | undefined
  ): Promise<{ readonly status: number, readonly answer: any }> {
    const response = await this.#send(at, path, text, ETCD_ATTEMPT_TIMEOUT_MS, token)
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of response) {
      chunks.push(chunk)
      if ((bytes += chunk.length) > MAX_ETCD_ANSWER_BYTES) throw new AnswerTooLarge()
    }
    const status = response.statusCode!
    const said = Buffer.concat(chunks).toString()
    if (status !== 200 && !said.startsWith('{"error"')) {
      const why = `HTTP status ${status}: ${said.split('\n')[0]!.slice(0, 200)}`
      throw status < 500 ? new Failure('journal-refused', why) : new Error(why)
    }
    // Behind the JSON of an error the gateway of etcd 3.4 sends a trailer as if it were a part of the body.
    return { status, answer: JSON.parse(status === 200 ? said : said.slice(0, said.lastIndexOf('}') + 1)) }
  }

  #send(
    at: number, path: string, text: string, silenceMs: number, token: string | undefined, signal?: AbortSignal
  ): Promise<IncomingMessage> {
    const url = new URL(path, this.#access.endpoints[at])
    const isTls = url.protocol === 'https:'
    const headers: Record<string, string> = {
      'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(text)),
      'Grpc-Metadata-Hasleader': 'true', ...(token === undefined ? {} : { Authorization: token })
    }
    const agent = this.#agents[isTls ? 1 : 0]
    const options: RequestOptions = { method: 'POST', headers, agent, timeout: silenceMs }
    if (signal !== undefined) options.signal = signal
    return new Promise((resolve, reject) => {
      // Of a request that is destroyed, an answer under way would only tell that it was cut off.
      let silent: { destroy(why: Error): unknown }
      const request = silent = (isTls ? requestHttps : requestHttp)(url, options, answer => resolve(silent = answer))
      request.on('timeout', () => silent.destroy(Object.assign(new Error(SILENT), { code: SILENT })))
      request.on('error', reject)
      request.end(text)
    })
  }
}

const SILENT = 'no answer in time'
