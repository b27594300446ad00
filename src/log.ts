/** What the operator learns: messages, and what is measured. */
import { Buffer } from 'node:buffer'
import type { Reply } from './http/reply.ts'
import type { Route } from './http/route.ts'
import type { Session } from './store/session.ts'

/** Takes the lines that an operator should see, and those of the access log. */
export interface Log {
  info(line: string): void
  warn(line: string): void
  /** Takes how much of some long work is done, 0 to 1. */
  progress?(what: string, share: number): void
  /** Needed where the access log is on. */
  readonly access?: AccessLogSink | undefined
}

/** Where lines of the access log go: `pendingBytes` is what was written and not yet taken. */
export interface AccessLogSink {
  /** Throws where the line is lost. */
  write(line: string): void
  pendingBytes(): number
}

/**
 * Gives what writes lines to a file by what appends some of the bytes. It throws if a line is not whole, as on a disk
 * that fills up; the next one then begins on a line of its own.
 */
export function lineAppender(append: (bytes: Buffer) => number): (line: string) => void {
  let isCut = false
  return line => {
    const bytes = Buffer.from(isCut ? `\n${line}` : line)
    for (let at = 0; at < bytes.length;) {
      at += append(bytes.subarray(at))
      isCut = at < bytes.length
    }
  }
}

/** Shows on a terminal how much of some long work is done; nothing in a pipe. 1 clears the line. */
export function showProgress(terminal: NodeJS.WriteStream, what: string, share: number): void {
  if (terminal.isTTY) terminal.write(share < 1 ? `\r\x1b[K${what} ${Math.floor(share * 100)} %` : '\r\x1b[K')
}

/** A number and what it counts: `1 user`, `2 entries`. */
export function counted(count: number, one: string, many: string = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** A request that has ended. */
export interface Ended {
  /** Its id, if one was given out with the answer. */
  readonly id: string | undefined
  readonly method: string
  /** Undefined where no route was reached. */
  readonly route: Route | undefined
  /** The id in its path; 0 if there is none. */
  readonly entry: number
  /** The client's address. */
  readonly client: string
  readonly session: Session | undefined
  readonly logged: Reply['logged']
  readonly status: number
  /** From the head to the answer, in milliseconds. */
  readonly ms: number
}

/** Called after each of these has happened. */
export interface Observer {
  requestEnded?(ended: Ended): void
  /** What was no request was refused; `address` is that of its peer. */
  malformedRefused?(status: number, address: string): void
  /** See `JournalObserver`. */
  journalWritten?(ms: number, isMade: boolean): void
}
