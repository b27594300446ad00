/** Notices if the file of a journal is replaced while it is read. */
import { isSameFile, type Files } from '../../../journal/files.ts'
import { Failure } from '../../../errors.ts'
import type { KeyFinder } from '../../../journal/keys.ts'
import {
  readInSteps,
  type OnLine,
  type ReadOptions,
  type Recovered
} from '../../../journal/recover.ts'
import { OperatorError, type JournalStatus } from '../../commands/command.ts'
import { breath } from '../../commands/signals.ts'
import { ofFile } from '../system-error.ts'

/** As `readJournal`, with breaths. */
export async function readWithBreaths(
  files: Files,
  path: string,
  keys: KeyFinder,
  onLine: OnLine,
  { onProgress = () => {}, endBytes }: ReadOptions = {}
): Promise<Recovered> {
  const bytes = Math.min(endBytes ?? Infinity, files.stat(path)?.size ?? 0)
  const steps = readInSteps(files, path, keys, onLine, endBytes)
  try {
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done === true) return step.value
      if (step.value.goodBytes < bytes) onProgress(step.value.goodBytes / bytes)
      await breath()
    }
  } finally {
    onProgress(1)
  }
}

/** Throws an `OperatorError` if the file is gone or was replaced, or `journal-damaged`. */
export async function readSameFile(
  files: Files,
  status: JournalStatus,
  read: (endBytes: number) => Promise<Recovered>
): Promise<Recovered> {
  assertSame(files, status)
  // Without its file, a service goes on from memory.
  if (status.records !== undefined && files.stat(status.path) === undefined) {
    throw new OperatorError(
      `${status.path} is gone, though the service runs; put it back, and restart the service`
    )
  }
  let found: Recovered
  try {
    found = await read(status.bytes)
  } catch (error) {
    throw ofFile(error, status.path)
  } finally {
    assertSame(files, status) // a replaced file explains it
  }
  // What a service acknowledged is whole; without one, a crash may have cut the last write.
  if (status.records !== undefined && found.goodBytes !== status.bytes) {
    throw new Failure('journal-damaged', `${status.path} ends before its last record`)
  }
  return found
}

function assertSame(files: Files, { path, file }: JournalStatus): void {
  if (file === undefined || isSameFile(files.stat(path), file)) return
  throw new OperatorError(`${path} was written again meanwhile; run the command again`)
}
