/**
 * The access log: one JSON line per request: who asked for what, and the outcome; never a password, a token, a query or
 * a body. Every value passes through JSON, so no control character can forge a line. A slow reader or a full disk loses
 * lines, which are counted and reported once there is room again, and never delays a request.
 */
import { Buffer } from 'node:buffer'
import { systemCode } from '../errors.ts'
import { MAX_ACCESS_LOG_PENDING_BYTES } from '../limits.ts'

/** One request, when it was answered. */
export interface LoggedRequest {
  /** The request's own id. */
  readonly request: string
  /** The client's address. */
  readonly client: string
  /** The user whose token it came with, or who has logged in by it. */
  readonly user: number | null
  /** The id of that token, or of the one that the login issued; not the token. */
  readonly token: string | null
  readonly method: string
  /** The operation; null where no route was found. */
  readonly route: string | null
  /** The entry's id as the path names it, if it is a number, or that of the created one; `all` if all are given. */
  readonly entry: number | 'all' | null
  readonly status: number
  /** From the head to the answer, in milliseconds. */
  readonly ms: number
}

/** Where lines go: `pendingBytes` is what was written and not yet taken. */
export interface AccessLogSink {
  /** Throws where the line is lost. */
  write(line: string): void
  pendingBytes(): number
}

export interface AccessLog {
  log(request: LoggedRequest): void
  /** Logs a malformed request: its peer, the status of its reply, and an id. */
  refused(address: string, status: number, request: string): void
  /** Reports what was dropped last. */
  close(): void
}

/** Makes an access log; `wallMs` is the wall clock, milliseconds since 1970. `warn` gets a line when writing fails. */
export function createAccessLog(
  sink: AccessLogSink, wallMs: () => number, warn: (line: string) => void
): AccessLog {
  let dropped = 0
  let fault: string | undefined
  const reportDropped = (): void => {
    if (dropped > 0) sink.write(`${JSON.stringify({ dropped })}\n`)
    dropped = 0
  }
  const attempt = (act: () => void): void => {
    try {
      act()
      fault = undefined
    } catch (error) {
      const why = systemCode(error)
      if (why !== fault) warn(`the access log failed: ${why}; lines that are lost are counted`)
      fault = why
    }
  }
  const log = (request: LoggedRequest): void => {
    const line = `${JSON.stringify({ time: new Date(wallMs()).toISOString(), ...request })}\n`
    let isWritten = false
    attempt(() => {
      if (sink.pendingBytes() + Buffer.byteLength(line) > MAX_ACCESS_LOG_PENDING_BYTES) return
      reportDropped()
      sink.write(line)
      isWritten = true
    })
    if (!isWritten) dropped++
  }
  const refused = (client: string, status: number, request: string): void => {
    log({ request, client, user: null, token: null, method: '', route: null, entry: null, status, ms: 0 })
  }
  return { log, refused, close: () => attempt(reportDropped) }
}
