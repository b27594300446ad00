/** What to do about a damaged journal whose service runs. */
import { Failure } from '../../../errors.ts'

export const IN_MEMORY: string =
  'the service has everything in memory: do not stop it before journal rescue FILE has written ' +
  'that to another file'

/** Advises a rescue: a backup would lose newer records. */
export function damageBeside(error: Failure, more: string = ''): Failure {
  const what = error.message.replace(/^[^:]*: /, '').replace(/; restore a backup, or .*$/, '')
  return new Failure('journal-damaged', `${what}${more}; ${IN_MEMORY}`, { cause: error })
}
