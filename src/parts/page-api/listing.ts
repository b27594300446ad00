/**
 * The list without secrets. What depends on a password's text answers guesses, so only callers who
 * see all entries and may read their passwords learn it: how many other entries share it, and who
 * knows it from elsewhere.
 */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { ENTRY_FIELDS, FIELDS, openFieldsOf } from '../../entries/entry.ts'
import { knownUser, unrecordedBefore, type Exposure } from '../../knowledge/exposure.ts'
import { keptByGroups, PagedList, pageOf } from '../../entries/paged-list.ts'
import { sees, type Groups } from '../../rights/rights.ts'
import { Column } from '../../store/column.ts'
import type { State } from '../../store/state.ts'

/**
 * `reused`: equal passwords of all entries. `exposed`: users who know a password and may not be
 * told it any more.
 */
export type ListForm = 'plain' | 'reused' | 'exposed' | 'reused exposed'

export interface Listing {
  readonly bytes: Buffer
  readonly tag: string
}

/** In `exposedTo`: the names for all entries would be more than a process can hold. */
const MAX_NAMED = 5
const SECRETS = ENTRY_FIELDS.filter(field => FIELDS[field].isSecret && !FIELDS[field].isRequired)
/** Pages made before other requests are served. */
const SLICE_PAGES = 64
const EMPTY = Buffer.from('[]')

/** Unchanged pages are not read again. */
export function listingOf(
  state: State,
  exposure: Exposure
): (form: ListForm, groups?: Groups) => Promise<Listing> {
  const { entries } = state
  const passwordsChangedAt = passwordChanges(state)
  const listOf = (form: ListForm, groups?: Groups): Tagged => {
    const [reused, exposed] = [form.includes('reused'), form.includes('exposed')]
    const textOf = (id: number): string | undefined => {
      if (!entries.isActive(id) || !sees(groups, entries.grupo(id))) return undefined
      return rowText(state, id, {
        ...(reused && { reused: othersWith(state, id) || undefined }),
        ...(exposed && knownBeside(state, exposure, id, !reused))
      })
    }
    // All are times of one clock.
    const versionOf = (page: number): number =>
      Math.max(
        entries.pageChanges(page),
        form === 'plain' ? 0 : passwordsChangedAt(page),
        exposed ? state.rights : 0
      )
    return tagged(new PagedList(entries, textOf, versionOf))
  }
  const ofAll = new Map<ListForm, Tagged>()
  const inSight = {
    plain: keptByGroups(groups => listOf('plain', groups)),
    exposed: keptByGroups(groups => listOf('exposed', groups))
  }
  const taggedOf = (form: ListForm, groups: Groups): Tagged => {
    if (groups !== undefined) return inSight[form.includes('exposed') ? 'exposed' : 'plain'](groups)
    const kept = ofAll.get(form) ?? listOf(form)
    ofAll.set(form, kept)
    return kept
  }
  return async (form, groups) => {
    const { list, listing } = taggedOf(form, groups)
    while (!list.refresh(SLICE_PAGES)) await new Promise(resolve => setImmediate(resolve))
    return listing()
  }
}

/** By page: when something else was last to be said of its passwords. */
function passwordChanges({ entries, knowledge: { numbers } }: State): (page: number) => number {
  const changedAt = new Column()
  let lookedAt = -1
  return page => {
    if (lookedAt !== numbers.lastChange) {
      lookedAt = numbers.lastChange
      for (let id = 1; id <= entries.size; id++) {
        const time = numbers.changedAt(numbers.of(id))
        if (time > changedAt.get(pageOf(id))) changedAt.set(pageOf(id), time)
      }
    }
    return changedAt.get(page)
  }
}

function othersWith({ knowledge: { numbers } }: State, id: number): number {
  return numbers.active(numbers.of(id)) - 1
}

function knownBeside(
  state: State,
  exposure: Exposure,
  id: number,
  byEntry: boolean
): { readonly [field: string]: unknown } {
  const users = exposure.of(id, byEntry)
  return {
    exposed: users.length || undefined,
    exposedTo:
      users.length === 0
        ? undefined
        : users.slice(0, MAX_NAMED).map(user => knownUser(state, user)),
    // Without tokens nobody is named, and everybody may know everything.
    unrecordedBefore:
      state.knowledge.recording === 'begun' ? unrecordedBefore(state, id, byEntry) : undefined
  }
}

interface Tagged {
  readonly list: PagedList
  readonly heldBytes: number
  listing(): Listing
}

function tagged(list: PagedList): Tagged {
  let given: Listing | undefined
  const listing = (): Listing => {
    const bytes = list.bytes() ?? EMPTY
    return given?.bytes === bytes
      ? given
      : (given = { bytes, tag: hash('sha256', bytes, 'base64url') })
  }
  return {
    list,
    listing,
    get heldBytes() {
      return list.heldBytes
    }
  }
}

function rowText(
  { entries }: State,
  id: number,
  beside: { readonly [field: string]: unknown }
): string {
  const { status, ...fields } = entries.get(id)!
  const changedMs = entries.changedMs(id)
  const changed = changedMs === undefined ? undefined : new Date(changedMs).toISOString()
  const set = Object.fromEntries(
    SECRETS.filter(field => fields[field] !== undefined).map(field => [field, true])
  )
  return JSON.stringify({ id, ...openFieldsOf(fields), status, changed, ...beside, ...set })
}
