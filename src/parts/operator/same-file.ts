/** The file of a journal, which has to be the same one from when it was asked about to when it was read. */
import { isSameFile, type Files } from '../../journal/files.ts'
import { Failure } from '../../errors.ts'
import type { Recovered } from '../../journal/recover.ts'
import { OperatorError, type JournalStatus } from '../command.ts'
import { ofFile } from '../system-error.ts'

/** Ends a command that has read a file in whose place another one is by now: it may be run again. */
export class WrittenAgain extends OperatorError {}

/** Reads a journal's file, which must be the same one all the time. */
export function readSameFile(
  files: Files, status: JournalStatus, read: (endBytes: number) => Recovered
): Recovered {
  assertSame(files, status)
  // A service has what it serves in memory, and goes on without its file.
  if (status.records !== undefined && files.stat(status.path) === undefined) {
    throw new OperatorError(`${status.path} is gone, though the service runs; put it back, and restart the service`)
  }
  let found: Recovered
  try {
    found = read(status.bytes)
  } catch (error) {
    throw ofFile(error, status.path)
  } finally {
    assertSame(files, status) // else it is no fault of the journal that its end is not found
  }
  // What a service has acknowledged is whole; a file that no process has open may end in a write that a crash cut.
  if (status.records !== undefined && found.goodBytes !== status.bytes) {
    throw new Failure('journal-damaged', `${status.path} ends before its last record`)
  }
  return found
}

/** What a process says of its journal, and the file of which it says that. */
export async function statusWithFile(
  files: Files, ask: () => Promise<JournalStatus>
): Promise<JournalStatus> {
  let { path, endpoints } = await ask()
  for (;;) {
    const file = endpoints === undefined ? files.stat(path) : undefined
    const status = await ask()
    const now = file && files.stat(path)
    if (file === undefined || now === undefined) return status
    if (isSameFile(file, now)) return { ...status, file }
    path = status.path
  }
}

function assertSame(files: Files, { path, file }: JournalStatus): void {
  const now = file && files.stat(path)
  if (file === undefined || (now !== undefined && isSameFile(now, file))) return
  throw new WrittenAgain(`${path} was written again meanwhile; run the command again`)
}
