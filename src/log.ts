import type { Reply } from './http/reply.ts'
import type { Route } from './http/router.ts'
import type { Session } from './rights/rights.ts'

/** Messages and the access log. */
export interface Log {
  info(line: string): void
  warn(line: string): void
  /** `share`: from 0 to 1. */
  progress?(what: string, share: number): void
  /** An embedder needs it if the access log is on; the program writes to standard output. */
  readonly access?: AccessLogSink | undefined
}

/** `pendingBytes` counts bytes that were written and not yet taken. */
export interface AccessLogSink {
  /** Throws or rejects if the line is lost. */
  write(line: string): void | Promise<void>
  pendingBytes(): number
}

/** On a terminal alone. A share of 1 clears the line. */
export function showProgress(terminal: NodeJS.WriteStream, what: string, share: number): void {
  if (terminal.isTTY)
    terminal.write(share < 1 ? `\r\x1b[K${what} ${Math.floor(share * 100)} %` : '\r\x1b[K')
}

export function counted(count: number, one: string, many: string = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

export interface Ended {
  readonly id: string | undefined
  readonly method: string
  /** Undefined if no route was reached. */
  readonly route: Route | undefined
  readonly entry: number
  readonly client: string
  readonly session: Session | undefined
  readonly logged: Reply['logged']
  readonly status: number
  readonly ms: number
}

export interface Observer {
  requestEnded?(ended: Ended): void
  malformedRefused?(status: number, address: string): void
  journalWritten?(ms: number, isMade: boolean): void
}
