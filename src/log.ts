/** What the operator learns: messages, and what is measured. */
import type { AccessLogSink } from './http/access-log.ts'

/** Takes the lines that an operator should see, and those of the access log. */
export interface Log {
  info(line: string): void
  warn(line: string): void
  /** Takes how much of some long work is done, 0 to 1. */
  progress?(what: string, share: number): void
  /** Needed where the access log is on. */
  readonly access?: AccessLogSink | undefined
}

/** Shows on a terminal how much of some long work is done; nothing in a pipe. 1 clears the line. */
export function showProgress(terminal: NodeJS.WriteStream, what: string, share: number): void {
  if (terminal.isTTY) terminal.write(share < 1 ? `\r\x1b[K${what} ${Math.floor(share * 100)} %` : '\r\x1b[K')
}

/** A number and what it counts: `1 user`, `2 entries`. */
export function counted(count: number, one: string, many: string = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** Called after each of these has happened. */
export interface Observer {
  /** `operation` is undefined where no route was reached. */
  requestEnded?(operation: string | undefined, status: number, ms: number): void
  malformedRefused?(status: number): void
  /** See `JournalObserver`. */
  journalWritten?(ms: number, isMade: boolean): void
}
