import { Buffer } from 'node:buffer'
import { disk } from '../../journal/files.ts'
import type { AccessLogSink } from '../../log.ts'

export function standardOutput(): AccessLogSink {
  const { stdout } = process
  return {
    write: disk.openStat(stdout.fd).isFile()
      ? lineAppender(bytes => disk.appendSync(stdout.fd, bytes))
      : line =>
          new Promise((resolve, reject) => {
            stdout.write(line, error => {
              error ? reject(error) : resolve()
            })
          }),
    pendingBytes: () => stdout.writableLength
  }
}

/**
 * Throws if a line is cut, as on a full disk, where Node's own write ignores it. The next line then
 * begins on a line of its own.
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
