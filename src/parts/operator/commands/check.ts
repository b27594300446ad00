/** What to do about a damaged journal whose service runs. */
import { Failure } from '../../../errors.ts'

/** Advice if a service still has the damaged journal in memory. */
export const IN_MEMORY: string =
  'the service has everything in memory: do not stop it before journal rescue FILE has written ' +
  'that to another file'

/** Advises a rescue instead of a backup, which would lose newer records. */
export function damageBeside(error: Failure, more: string = ''): Failure {
  const what = error.message.replace(/^[^:]*: /, '').replace(/; restore a backup, or .*$/, '')
  return new Failure('journal-damaged', `${what}${more}; ${IN_MEMORY}`, { cause: error })
}
