/**
 * The list without secrets. Only a caller who sees all entries and may read their passwords learns
 * how many other entries share a password, because the count would answer guesses.
 */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import type { Entries } from '../../entries/entry-table.ts'
import { ENTRY_FIELDS, FIELDS, openFieldsOf } from '../../entries/entry.ts'
import type { EqualPasswords } from './equal-passwords.ts'
import type { Exposure } from '../../knowledge/exposure.ts'
import { keptByGroups, PagedList } from '../../entries/paged-list.ts'
import { sees, type Groups } from '../../rights/rights.ts'

/**
 * `reused` counts equal passwords of all entries, so it is for callers who see all of them;
 * `exposed` counts the users who know a password and may be told it no more.
 */
export type ListForm = 'plain' | 'reused' | 'exposed' | 'reused exposed'

/** `tag` stands for the bytes, as the text of an entity tag. */
export interface Listing {
  readonly bytes: Buffer
  readonly tag: string
}

/** Shown as set, no more. */
const SECRETS = ENTRY_FIELDS.filter(field => FIELDS[field].isSecret && !FIELDS[field].isRequired)
/** Pages made before other requests are served. */
const SLICE_PAGES = 64
const EMPTY = Buffer.from('[]')

/** Unchanged pages are not read again. */
export function listingOf(
  entries: Entries,
  equals: EqualPasswords,
  exposure: Exposure
): (form: ListForm, groups?: Groups) => Promise<Listing> {
  const listOf = (form: ListForm, groups?: Groups): Tagged => {
    const [reused, exposed] = [form.includes('reused'), form.includes('exposed')]
    const textOf = (id: number): string | undefined => {
      if (!entries.isActive(id) || !sees(groups, entries.grupo(id))) return undefined
      const known = exposed ? exposure.of(id, reused ? equals.knowersAs(id) : []) : 0
      return rowText(entries, id, reused ? equals.others(id) : 0, known)
    }
    // All three only grow, so each change of one gives another sum.
    const versionOf = (page: number): number =>
      entries.pageChanges(page) +
      (reused ? equals.recounts(page) : 0) +
      (exposed ? exposure.rights : 0)
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
    const asksEquals = groups === undefined && form.includes('reused')
    const isFresh = (): boolean =>
      (!asksEquals || equals.refresh(SLICE_PAGES)) && list.refresh(SLICE_PAGES)
    while (!isFresh()) await new Promise(resolve => setImmediate(resolve))
    return listing()
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

function rowText(entries: Entries, id: number, others: number, exposed: number): string {
  const { status, ...fields } = entries.get(id)!
  const changedMs = entries.changedMs(id)
  const changed = changedMs === undefined ? undefined : new Date(changedMs).toISOString()
  const set = Object.fromEntries(
    SECRETS.filter(field => fields[field] !== undefined).map(field => [field, true])
  )
  const counts = {
    reused: others === 0 ? undefined : others,
    exposed: exposed === 0 ? undefined : exposed
  }
  return JSON.stringify({ id, ...openFieldsOf(fields), status, changed, ...counts, ...set })
}
