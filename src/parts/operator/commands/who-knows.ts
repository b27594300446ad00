import type { KnownUser, Unrecorded } from '../../../knowledge/exposure.ts'
import { counted } from '../../../log.ts'

const MAX_IDS = 20
const MAX_NAMES = 3

export function userName({ user: { id, email }, removed }: KnownUser): string {
  return `${email === '' ? `#${id}` : email}${removed === true ? ' (removed)' : ''}`
}

export function someOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMES
  return `${names.slice(0, MAX_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** After a restore, a salvage, a compaction. */
export const ENTERED_AGAIN: string =
  'a password that this journal has no more counts as new if it is entered again, and nobody who ' +
  'knew it is named: make a new one instead'

function readsBefore(when: string): string {
  return `reads ${when === 'now' ? 'until now' : `before ${when}`} were not recorded`
}

/** One line, with the newest of several times. `who`: may know these passwords, too. */
export function othersMayKnow(unrecorded: Unrecorded, who = 'others'): readonly string[] {
  const times = Object.keys(unrecorded).sort()
  const ids = Object.values(unrecorded).flat()
  const last = times.at(-1)
  if (last === undefined) return []
  const reads = `${times.length > 1 ? 'some ' : ''}${readsBefore(last)}`
  const named = `${ids.slice(0, MAX_IDS).join(', ')}${ids.length > MAX_IDS ? ', …' : ''}`
  return [`${reads}: ${who} may know ${counted(ids.length, 'password')}, of ids ${named}`]
}

export function knewIt(
  exposedTo: readonly KnownUser[],
  when: string | undefined
): readonly string[] {
  const known = exposedTo.map(userName)
  return [
    ...(known.length === 0
      ? []
      : [`known to ${someOf(known)}: if the system still takes this password, change it there`]),
    ...(when === undefined ? [] : [`${readsBefore(when)}: others may know the password`])
  ]
}
