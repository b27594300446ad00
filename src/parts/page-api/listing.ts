/**
 * The list without secrets. What depends on a password's text answers guesses, so only callers who
 * see all entries and may read their passwords learn it: how many other entries share it, and who
 * knows it from elsewhere.
 */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { ENTRY_FIELDS, FIELDS, OPEN_FIELDS } from '../../entries/entry.ts'
import { knownUser, unrecordedBeforeMs, type Exposure } from '../../knowledge/exposure.ts'
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
/** Each names at most `MAX_NAMED` users. */
const MAX_KEPT_TEXTS = 1024
const SECRETS = ENTRY_FIELDS.filter(field => FIELDS[field].isSecret && !FIELDS[field].isRequired)
/** Pages made before other requests are served. */
const SLICE_PAGES = 64
const EMPTY = Buffer.from('[]')

/**
 * Unchanged pages are not read again. Without tokens everybody may know everything, which is not
 * said of each entry.
 */
export function listingOf(
  state: State,
  exposure: Exposure,
  hasTokens: boolean
): (form: ListForm, groups?: Groups) => Promise<Listing> {
  const { entries } = state
  const passwordsChangedAt = passwordChanges(state)
  const knownBeside = knownTexts(state, exposure, hasTokens)
  const listOf = (form: ListForm, groups?: Groups): Tagged => {
    const [reused, exposed] = [form.includes('reused'), form.includes('exposed')]
    const textOf = (id: number): string | undefined => {
      if (!entries.isActive(id) || !sees(groups, entries.grupo(id))) return undefined
      const others = reused ? othersWith(state, id) : 0
      return rowText(state, id, others, exposed ? knownBeside(id, !reused) : '')
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

/** Members of a row, each after a comma. Many rows have the same knowers: a text is kept. */
function knownTexts(
  state: State,
  exposure: Exposure,
  hasTokens: boolean
): (id: number, byEntry: boolean) => string {
  const texts = new Map<string, string>()
  let rights = -1
  const exposedText = (users: readonly number[]): string => {
    if (users.length === 0) return ''
    if (rights !== state.rights || texts.size >= MAX_KEPT_TEXTS) texts.clear()
    rights = state.rights
    const key = `${users.length}:${users.slice(0, MAX_NAMED).join()}`
    const kept = texts.get(key)
    if (kept !== undefined) return kept
    const named = users.slice(0, MAX_NAMED).map(user => knownUser(state, user))
    const text = `,"exposed":${users.length},"exposedTo":${JSON.stringify(named)}`
    texts.set(key, text)
    return text
  }
  return (id, byEntry) => {
    const before = hasTokens ? unrecordedBeforeMs(state, id, byEntry) : undefined
    return (
      exposedText(exposure.of(id, byEntry)) +
      (before === undefined ? '' : `,"unrecordedBefore":"${isoOf(Math.min(before, Date.now()))}"`)
    )
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

function rowText({ entries }: State, id: number, reused: number, known: string): string {
  const entry = entries.get(id)!
  const changedMs = entries.changedMs(id)
  let text = `{"id":${id}`
  for (const field of OPEN_FIELDS) {
    if (entry[field] !== undefined) text += `,"${field}":${JSON.stringify(entry[field])}`
  }
  text += `,"status":${entry.status}`
  if (changedMs !== undefined) text += `,"changed":"${isoOf(changedMs)}"`
  if (reused > 0) text += `,"reused":${reused}`
  text += known
  for (const field of SECRETS) if (entry[field] !== undefined) text += `,"${field}":true`
  return `${text}}`
}

let [lastMs, lastIso] = [0, new Date(0).toISOString()]

/** Rows that stand together often have the same time. */
function isoOf(ms: number): string {
  if (ms !== lastMs) [lastMs, lastIso] = [ms, new Date(ms).toISOString()]
  return lastIso
}
