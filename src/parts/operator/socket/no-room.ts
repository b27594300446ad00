/** If the journal did not take an operation's change: what goes on, and what to do. */
import { isFull } from '../../../journal/files.ts'
import { Failure } from '../../../errors.ts'
import type { OperationName } from '../../commands/operation.ts'

const ACCESS =
  'access goes on as it was: a running service answers whoever has a token; ' +
  'to end that at once, stop it'

/** They may take access away. */
const OF_ACCESS: readonly OperationName[] = [
  'setPassword',
  'changeUser',
  'removeUser',
  'giveFactor',
  'removeFactor',
  'revokeToken',
  'revokeTokens'
]

const SHOWS: readonly OperationName[] = ['getEntry', 'readEntries', 'disclose']
const RESCUE =
  'so nothing is shown. journal rescue FILE, or a copy of the folder, takes it to another ' +
  'disk, to be read there'
const COPY = 'or copy the folder to another disk, and read it there (--data)'

/** Other errors stay as they are. */
export function ofJournal(error: unknown, name: OperationName, path: string): unknown {
  if (!(error instanceof Failure)) return error
  const { code, detail, cause } = error
  const shows = SHOWS.includes(name)
  const access = OF_ACCESS.includes(name) ? [ACCESS] : []
  const reads = shows || access.length > 0 ? [] : ['what is stored can still be read']
  const said = (...what: readonly string[]): Failure =>
    new Failure(code, [detail, ...what].join('; '), { cause })
  if (code === 'write-failed' && isFull(cause)) {
    const done = shows ? 'is shown' : 'was changed'
    const none = `there is no room on the disk of ${path}, so nothing ${done}`
    return said(
      none,
      ...access,
      ...reads,
      `make room, and run the command again${shows ? `, ${COPY}` : ''}`
    )
  }
  if (shows) return said(RESCUE)
  return code === 'journal-failed' ? said(...access) : error
}
