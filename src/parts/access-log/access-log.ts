/**
 * A JSON line for each request, without passwords, tokens, queries and bodies; JSON escapes control
 * characters, so no value forges a line. A slow reader or a full disk loses lines, which are
 * counted, and delays no request. Lines at start and stop show when there was a log.
 */
import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { systemCode } from '../../errors.ts'
import { MAX_ACCESS_LOG_PENDING_BYTES } from '../../limits.ts'
import type { AccessLogSink, Ended, Observer } from '../../log.ts'
import { tokenId } from '../../rights/rights.ts'

export interface LoggedRequest {
  readonly request: string
  readonly client: string
  readonly user: number | null
  readonly token: string | null
  readonly method: string
  readonly route: string | null
  readonly entry: number | 'all' | null
  readonly status: number
  /** From head to answer. */
  readonly ms: number
}

export class AccessLog implements Observer {
  readonly #sink: AccessLogSink
  readonly #wallMs: () => number
  readonly #warn: (line: string) => void
  lostLines = 0
  #isLosing = false

  /** `wallMs`: since 1970. */
  constructor(sink: AccessLogSink, wallMs: () => number, warn: (line: string) => void) {
    this.#sink = sink
    this.#wallMs = wallMs
    this.#warn = warn
  }

  begin(): void {
    this.#write({ service: 'started' })
  }

  requestEnded({
    id,
    client,
    session,
    logged = {},
    method,
    route,
    entry,
    status,
    ms
  }: Ended): void {
    const token = logged.token ?? session?.hash
    this.write({
      request: id ?? randomUUID(),
      client,
      user: logged.user ?? session?.user ?? null,
      token: token === undefined ? null : tokenId(token),
      method,
      route: route?.operation ?? null,
      entry: logged.entry ?? (entry || null),
      status,
      ms: Math.round(ms * 1000) / 1000
    })
  }

  malformedRefused(status: number, client: string): void {
    const nobody = { user: null, token: null, method: '', route: null, entry: null }
    this.write({ request: randomUUID(), client, ...nobody, status, ms: 0 })
  }

  write(request: LoggedRequest): void {
    this.#write(request)
  }

  close(): void {
    this.#write({ service: 'stopped' }, Infinity)
  }

  /** Warns of the first loss, and again after a line that was written. */
  #write(data: object, mostPendingBytes: number = MAX_ACCESS_LOG_PENDING_BYTES): void {
    const line = `${JSON.stringify({ time: new Date(this.#wallMs()).toISOString(), ...data })}\n`
    const onWritten = (): void => {
      this.#isLosing = false
    }
    const onLost = (error: unknown): void => {
      this.lostLines++
      if (!this.#isLosing)
        this.#warn(`the access log loses lines, which are counted: ${systemCode(error)}`)
      this.#isLosing = true
    }
    try {
      const waitingBytes = this.#sink.pendingBytes() + Buffer.byteLength(line)
      if (waitingBytes > mostPendingBytes) throw new Error('its reader is too slow')
      const written = this.#sink.write(line)
      if (written === undefined) onWritten()
      else Promise.resolve(written).then(onWritten, onLost)
    } catch (error) {
      onLost(error)
    }
  }
}
