/** Messages and measurements for the operator. */
import type { Reply } from './http/reply.ts'
import type { Route } from './http/router.ts'
import type { Session } from './rights/rights.ts'

/** Messages and the access log. */
export interface Log {
  info(line: string): void
  warn(line: string): void
  /** `share` is 0 to 1. */
  progress?(what: string, share: number): void
  /** Needed if an embedder has the access log on; the program's goes to standard output. */
  readonly access?: AccessLogSink | undefined
}

/** `pendingBytes` counts bytes that were written and not yet taken. */
export interface AccessLogSink {
  /** Throws or rejects if the line is lost. */
  write(line: string): void | Promise<void>
  pendingBytes(): number
}

/** Only on a terminal; share 1 clears the line. */
export function showProgress(terminal: NodeJS.WriteStream, what: string, share: number): void {
  if (terminal.isTTY)
    terminal.write(share < 1 ? `\r\x1b[K${what} ${Math.floor(share * 100)} %` : '\r\x1b[K')
}

/** As `1 user`, `2 entries`. */
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
