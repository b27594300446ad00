/** A file layer that tells how long its appends took. */
import type { Files } from './files.ts'

/** The same files; `onAppend` is told of each append: its milliseconds, and whether all of it was written. */
export function measuredFiles(
  files: Files, nowMs: () => number, onAppend: (ms: number, isWhole: boolean) => void
): Files {
  return {
    ...files,
    append: (descriptor, bytes, done) => {
      const startMs = nowMs()
      files.append(descriptor, bytes, (error, written) => {
        onAppend(nowMs() - startMs, error === null && written === bytes.length)
        done(error, written)
      })
    }
  }
}
