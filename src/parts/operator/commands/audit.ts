/** The command `audit`: who knows which present password, as the journal says. */
import type { JournalRecord } from '../../../journal/journal.ts'
import { locationOf } from '../../../journal/folder.ts'
import { counted } from '../../../log.ts'
import { knowersOf, unrecordedBeforeMs, type How } from '../../../knowledge/exposure.ts'
import type { Knower } from '../../../knowledge/knowledge.ts'
import type { State } from '../../../store/state.ts'
import { addressOf } from '../../../rights/rights.ts'
import { OperatorError, type Command, type Context } from '../../../command.ts'
import { notesIn, UNTOLD } from '../socket/unrecorded.ts'
import { FIELD_WORDS, findId, WHICH } from './find-entry.ts'

const MAX_NAMED = 20

interface Row {
  readonly id: number
  readonly sistema: string
  readonly usuario: string
  readonly status: string
  readonly who: string
  readonly how: How
  /** ISO 8601; null if an earlier journal has the record. */
  readonly since?: string | null
}

/** Since when an entry's present password is known, by whom. */
class Since {
  readonly times = new Map<Knower, string | null>()
  readonly #id: number
  #changedMs: number | undefined
  #last: Pick<JournalRecord, 'time' | 'type'> | undefined

  constructor(id: number) {
    this.#id = id
  }

  /** Takes a record and the state before it. */
  take({ time, type }: JournalRecord, before: State): void {
    this.settle(before)
    this.#last = /^(entr|fields|passwords|knowledge)/.test(type) ? { time, type } : undefined
  }

  settle({ entries, knowledge }: State): void {
    if (this.#last === undefined) return
    const { time, type } = this.#last
    const changedMs = entries.changedMs(this.#id)
    if (changedMs !== this.#changedMs) this.times.clear()
    this.#changedMs = changedMs
    for (const { knower } of knowledge.knowersOf(this.#id)) {
      if (!this.times.has(knower))
        this.times.set(knower, /^knowledge|\.kept$/.test(type) ? null : time)
    }
  }
}

function nameOf({ users }: State, knower: Knower): string {
  if (typeof knower !== 'number') return knower
  const { email = '', isRemoved } = users.get(knower) ?? { isRemoved: true }
  return `${email === '' ? `#${knower}` : email}${isRemoved === true ? ' (removed)' : ''}`
}

/** Whom a word means; an address, all users who had it. Undefined: nobody. */
function knowersNamed({ users, knowledge }: State, word: string): readonly Knower[] | undefined {
  const found = /^#\d+$/.test(word)
    ? [Number(word.slice(1))].filter(id => users.has(id))
    : [...users.values()]
        .filter(({ email }) => addressOf(email) === addressOf(word))
        .map(({ id }) => id)
  const named: Knower[] =
    found.length > 0 ? found : knowledge.knowers().filter(knower => knower === word)
  return named.length > 0 ? named : undefined
}

/** Ids by password. */
function sharing({ entries }: State): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>()
  for (const { id, password } of entries.entries()) {
    const ids = found.get(password)
    if (ids === undefined) found.set(password, [id])
    else ids.push(id)
  }
  return found
}

function rowsOf(
  state: State,
  id: number,
  shared: ReadonlyMap<string, readonly number[]>,
  since: Since['times'] | undefined
): readonly (Row & { readonly knower: Knower })[] {
  const { sistema, usuario, status, password } = state.entries.get(id)!
  return [...knowersOf(state, id, shared.get(password))].map(([knower, how]) => ({
    id,
    sistema,
    usuario,
    status: status === 1 ? 'active' : 'deleted',
    who: nameOf(state, knower),
    how,
    knower,
    ...(since !== undefined && { since: since.get(knower) ?? null })
  }))
}

async function entryOf(context: Context): Promise<number | undefined> {
  const {
    positionals: [word],
    flags
  } = context
  const isNamed = Object.keys(WHICH).some(flag => flags[flag] !== undefined)
  if ((word === undefined && !isNamed) || word?.startsWith('#') === true) return undefined
  return findId(context, 'all', 'shows').catch(error => {
    if (word === undefined || !(error instanceof OperatorError)) throw error
    return undefined
  })
}

async function audit(context: Context): Promise<number> {
  const {
    store,
    terminal,
    flags,
    positionals: [word]
  } = context
  const entry = await entryOf(context)
  const since = entry === undefined ? undefined : new Since(entry)
  const { state } = await store.read(await store.status(), (record, before) =>
    since?.take(record, before)
  )
  await store.close()
  since?.settle(state)
  const { entries, knowledge } = state
  const who = word === undefined || /^\d+$/.test(word) ? undefined : knowersNamed(state, word)
  if (entry !== undefined && who === undefined && !entries.has(entry))
    throw new OperatorError(`no entry ${entry}`)
  if (word !== undefined && who === undefined && entry === undefined) {
    throw new OperatorError(
      'no user, operator or system has this name. entry list finds entries by a part of a ' +
        'name; #NUMBER is a user whose address a compaction has dropped'
    )
  }
  const ids =
    who === undefined && entry !== undefined ? [entry] : [...entries.entries()].map(({ id }) => id)
  const shared = sharing(state)
  const times = who === undefined ? since?.times : undefined
  const rows = ids
    .flatMap(id => rowsOf(state, id, shared, times))
    .filter(({ knower }) => who === undefined || who.includes(knower))
    .map(({ knower, ...row }) => row)
  const recordsNow = knowledge.recording === 'begun'
  const lacking = new Map<string, number[]>()
  for (const id of ids) {
    const ms = unrecordedBeforeMs(state, id, shared.get(entries.get(id)!.password))
    if (ms === undefined) continue
    const when = ms === Infinity ? 'now' : new Date(ms).toISOString()
    lacking.set(when, [...(lacking.get(when) ?? []), id])
  }
  if (flags['json'] === true)
    terminal.show({ knows: rows, unrecordedBefore: Object.fromEntries(lacking) }, [])
  else
    terminal.list(
      rows.map(row => (row.since === null ? { ...row, since: 'not known' } : row)),
      'nobody',
      FIELD_WORDS
    )
  for (const [when, of] of lacking) {
    const named = `${of.slice(0, MAX_NAMED).join(', ')}${of.length > MAX_NAMED ? ', …' : ''}`
    const what = recordsNow
      ? `reads before ${when} were not recorded`
      : 'reads are not recorded (AUTH=none)'
    terminal.warn(`${what}: others may know ${counted(of.length, 'password')}, of ids ${named}`)
  }
  const place = { files: store.files, folder: locationOf(store.settings).folder }
  const notes = notesIn(place)
  if (notes.length > 0) terminal.warn(`${UNTOLD}${notes.join(', ')}`)
  // 0 says that every read was recorded of which the answer had to know.
  return lacking.size + notes.length === 0 ? 0 : 1
}

export const COMMANDS: readonly Command[] = [
  {
    name: 'audit',
    positionals: ['[USER|ENTRY]'],
    options: WHICH,
    help: 'says who knows which present password; exit code 1 if some reads were not recorded',
    examples: ['audit ana@example.org', 'audit github', 'audit 3'],
    run: audit
  }
]
