/** `audit`: who knows which present password, as the journal says. */
import type { JournalRecord } from '../../../journal/journal.ts'
import { knowersOf, knownUser, unrecordedOf } from '../../../knowledge/exposure.ts'
import { authorOf } from '../../../knowledge/knowledge-events.ts'
import type { How, Knower } from '../../../knowledge/knowledge.ts'
import type { State } from '../../../store/state.ts'
import { addressOf } from '../../../rights/rights.ts'
import { OperatorError, type OperatorCommand, type Context } from '../../commands/command.ts'
import { made } from '../../commands/terminal.ts'
import { FIELD_WORDS, findId, WHICH } from './find-entry.ts'
import { othersMayKnow, userName } from './who-knows.ts'

interface AuditRow {
  readonly id: number
  readonly sistema: string
  readonly usuario: string
  readonly status: string
  readonly who: string
  readonly how: How | 'set'
  /** ISO 8601. Null: the record is in an earlier journal. */
  readonly since?: string | null
}

/** Who knows an entry's present password, since when; and who set it. */
class Since {
  readonly times = new Map<Knower, string | null>()
  setBy: Knower | undefined
  readonly #id: number
  #password: string | undefined
  #last: (Pick<JournalRecord, 'time' | 'type'> & { readonly by: Knower | undefined }) | undefined

  constructor(id: number) {
    this.#id = id
  }

  /** `before`: the state before the record. */
  take({ time, type, data, by }: JournalRecord, before: State): void {
    this.settle(before)
    this.#last = /^(entr|fields|passwords|know)/.test(type)
      ? { time, type, by: authorOf(before.knowledge, data as object, by) }
      : undefined
  }

  settle({ entries, knowledge }: State): void {
    if (this.#last === undefined) return
    const { time, type, by } = this.#last
    const isKept = type.endsWith('.kept')
    // Deleted and moved entries keep it.
    const password = JSON.stringify([entries.changedMs(this.#id), entries.get(this.#id)?.password])
    if (password !== this.#password) {
      this.times.clear()
      this.setBy = isKept ? undefined : by
    }
    this.#password = password
    for (const knower of knowledge.knowers()) {
      if (this.times.has(knower) || knowledge.how(knower, this.#id, false) === undefined) continue
      this.times.set(knower, isKept ? null : time)
    }
  }
}

function nameOf(state: State, knower: Knower): string {
  return typeof knower === 'number' ? userName(knownUser(state, knower)) : knower
}

/** An address means all users who had it. Undefined: nobody. */
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

/** A generator: there may be more rows than memory. `who` undefined: everybody. */
function* rowsOf(
  state: State,
  ids: Iterable<number>,
  who: readonly Knower[] | undefined,
  since: Since | undefined
): Generator<AuditRow, void, void> {
  const names = new Map(state.knowledge.knowers().map(knower => [knower, nameOf(state, knower)]))
  for (const id of ids) {
    const found = knowersOf(state, id, false, who ?? [...names.keys()])
    if (found.length === 0) continue
    const { sistema, usuario, status } = state.entries.get(id)!
    for (const [knower, how] of found)
      yield {
        id,
        sistema,
        usuario,
        status: status === 1 ? 'active' : 'deleted',
        who: names.get(knower)!,
        how: since !== undefined && since.setBy === knower ? 'set' : how,
        ...(since !== undefined && { since: since.times.get(knower) ?? null })
      }
  }
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
  const status = await store.status()
  await store.close() // frees its state before another one is made
  const { state } = await store.read(status, (record, before) => since?.take(record, before))
  since?.settle(state)
  const { entries } = state
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
    who === undefined && entry !== undefined
      ? [entry]
      : entries.changedSince(0).filter(id => entries.has(id))
  const rows = {
    [Symbol.iterator]: () => rowsOf(state, ids, who, who === undefined ? since : undefined)
  }
  const unrecordedBefore = unrecordedOf(state, ids)
  if (flags['json'] === true)
    terminal.listJson(
      '{"knows":[',
      rows,
      `],"unrecordedBefore":${JSON.stringify(unrecordedBefore)}}`
    )
  else
    terminal.list(
      made(rows, row => (row.since === null ? { ...row, since: 'not known' } : row)),
      'nobody',
      FIELD_WORDS
    )
  const others = othersMayKnow(unrecordedBefore)
  for (const line of others) terminal.warn(line)
  // 0 says that every read which matters was recorded.
  return others.length === 0 ? 0 : 1
}

export const COMMANDS: readonly OperatorCommand[] = [
  {
    name: 'audit',
    positionals: ['[USER|ENTRY]'],
    options: WHICH,
    help: 'says who knows which present password; exit code 1 if others may know some',
    examples: ['audit ana@example.org', 'audit github', 'audit 3'],
    run: audit
  }
]
