/**
 * The access log: one JSON line a request, who asked for what and what came of it; never a password, a token, a query
 * or a body. Every value passes through JSON, so no control character can forge a line. A reader that is slow costs
 * lines, which are counted and reported once it reads again, but never a request.
 */
import { Buffer } from 'node:buffer'
import { clientAddress } from './address.ts'
import { MAX_ACCESS_LOG_PENDING_BYTES } from '../limits.ts'

/** One request. */
export interface AccessRecord {
  readonly time: string
  /** The request's own id. */
  readonly request: string
  /** The client's address. */
  readonly client: string
  readonly user: number | null
  /** The token's id, not the token. */
  readonly token: string | null
  readonly method: string
  /** The operation; null where no route was found. */
  readonly route: string | null
  /** The entry's id as the path names it, if it is a number. */
  readonly entry: number | null
  readonly status: number
  /** From the head to the answer, in milliseconds. */
  readonly ms: number
}

/** The record of what was not even a request: its peer, its answer, when that was, and an id. */
export function refusalRecord(address: string, status: number, wallMs: number, request: string): AccessRecord {
  return {
    time: new Date(wallMs).toISOString(), request, client: clientAddress(address, undefined), user: null,
    token: null, method: '', route: null, entry: null, status, ms: 0
  }
}

/** Where lines go: `pendingBytes` is what was written and not yet taken. */
export interface Sink {
  write(line: string): void
  pendingBytes(): number
}

/** Logs requests; `close` tells what was dropped last. */
export interface AccessLog {
  log(record: AccessRecord): void
  close(): void
}

/** Makes an access log. */
export function createAccessLog(sink: Sink): AccessLog {
  let dropped = 0
  const tellDropped = (): void => {
    if (dropped > 0) sink.write(`${JSON.stringify({ dropped })}\n`)
    dropped = 0
  }
  return {
    log: record => {
      const line = `${JSON.stringify(record)}\n`
      if (sink.pendingBytes() + Buffer.byteLength(line) > MAX_ACCESS_LOG_PENDING_BYTES) { dropped++; return }
      tellDropped()
      sink.write(line)
    },
    close: tellDropped
  }
}
