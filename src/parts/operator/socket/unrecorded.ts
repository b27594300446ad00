/**
 * Notes beside the journal: an operator was shown passwords while nothing could be recorded. As
 * soon as the journal takes records again, a gap stands for them.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { Failure, systemCode } from '../../../errors.ts'
import { trySync, writeWhole, type Files } from '../../../journal/files.ts'
import { isoTime } from '../../../journal/line.ts'
import { event } from '../../../store/event.ts'
import type { Commits } from '../../../store/store.ts'
import { OperatorError } from '../../../command.ts'

export interface Place {
  readonly files: Files
  readonly folder: string
}

/** Before their paths. */
export const UNTOLD = 'operators were shown passwords, and no record says so yet: '

const NOTE = /^unrecorded-.*\.json$/

/** Paths, in the order of their times. */
export function notesIn({ files, folder }: Place): readonly string[] {
  if (files.stat(folder) === undefined) return []
  return files
    .list(folder)
    .filter(name => NOTE.test(name))
    .sort()
    .map(name => join(folder, name))
}

/** Durable when it returns. Throws an `OperatorError`, leaving nothing. */
export function leaveNote({ files, folder }: Place, what: object): void {
  const time = isoTime(Date.now())
  // Each has a name of its own: the removal of an older one must not remove a newer one.
  const path = join(
    folder,
    `unrecorded-${time}-${process.pid}-${Math.trunc(performance.now())}.json`
  )
  try {
    writeWhole(files, path, [Buffer.from(`${JSON.stringify({ time, ...what })}\n`)])
    try {
      files.sync(folder)
    } catch (error) {
      files.remove(path)
      throw error
    }
  } catch (error) {
    throw new OperatorError(
      `nothing is shown: it cannot be recorded, and ${path} cannot be written, either: ` +
        systemCode(error)
    )
  }
}

/** A note goes once its gap is durable. Gives why they stay. */
export async function settleNotes(place: Place, commits: Commits): Promise<string | undefined> {
  try {
    const notes = notesIn(place)
    if (notes.length === 0) return undefined
    await commits.commit(({ knowledge: { recording } }) => [
      recording === 'begun' ? [event('recording.gap', null, { why: 'unrecorded' })] : [],
      undefined
    ])
    commits.state.knowledge.isUntold = false
    for (const note of notes) if (place.files.stat(note) !== undefined) place.files.remove(note)
    trySync(() => place.files.sync(place.folder)) // one that comes back makes a second gap
    return undefined
  } catch (error) {
    commits.state.knowledge.isUntold = true
    return error instanceof Failure ? error.message : systemCode(error)
  }
}
