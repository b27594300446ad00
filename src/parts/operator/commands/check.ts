/** Checks a journal whose service runs, and says what to do if it is damaged. */
import { Failure } from '../../../errors.ts'
import type { FileJournal } from '../../../journal/file-journal.ts'
import { readInSteps } from '../../../journal/recover.ts'
import { ofFile } from '../system-error.ts'

/** Advice if a service still has the damaged journal in memory. */
export const IN_MEMORY: string =
  'the service has everything in memory: do not stop it; journal repair makes the service write the journal again'

/** Advises `journal repair` instead of a backup, which would lose newer records. */
export function damageBeside(error: Failure, more: string = ''): Failure {
  const what = error.message.replace(/^[^:]*: /, '').replace(/; restore a backup, or .*$/, '')
  return new Failure('journal-damaged', `${what}${more}; ${IN_MEMORY}`, { cause: error })
}

/** Reads in steps, so that others are served. Throws `journal-damaged`. */
export async function verifyFile({ files, path, end: { goodBytes }, keys }: FileJournal): Promise<void> {
  try {
    for (const _ of readInSteps(files, path, keys, () => {}, goodBytes)) {
      await new Promise(resolve => setTimeout(resolve, 0))
    }
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'journal-damaged') throw ofFile(error, path)
    throw damageBeside(error)
  }
}
