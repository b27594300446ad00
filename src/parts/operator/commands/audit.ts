/**
 * The command `audit`: who was given which password since it was last set, by access logs and the journal. If something
 * is unknown it reports too much: before the last compaction an entry counts as active and as deleted.
 */
import { Buffer } from 'node:buffer'
import { resolve } from 'node:path'
import { piecesOf, type Files } from '../../../journal/files.ts'
import type { JournalRecord } from '../../../journal/journal.ts'
import { counted } from '../../../log.ts'
import { operatorIn } from '../../changes.ts'
import type { EntryRow } from '../../../store/entry.ts'
import { isOfEntries, type Events } from '../../../store/events.ts'
import type { State } from '../../../store/state.ts'
import { OperatorError, UsageError, type Command, type Context } from '../../../command.ts'
import { ofFile } from '../system-error.ts'
import { authorOf } from './entry-commands.ts'
import { Logs, timeOf, type Given } from './audit-logs.ts'
import { FIELD_WORDS, findId, WHICH } from './find-entry.ts'
import { assertNotPacked } from './journal-files.ts'

const MAX_SHOWN = 20
const HOW = 'journalctl -u password-entry-service -o cat | admin audit --log -'

class Facts {
  readonly given: Given[] = []
  /** Incomplete if the journal was compacted. */
  readonly statuses = new Map<number, (readonly [ms: number, status: number])[]>()
  /** Removed users too. */
  readonly addresses = new Map<number, string>()
  /** Times of changes by users, and by anybody in the open configuration. */
  readonly #ofUsers: number[] = []
  readonly #ofAnybody: number[] = []

  /** If there are users, a change without an author is the operator's or the host's. */
  get changes(): readonly number[] { return this.#ofUsers.length > 0 ? this.#ofUsers : this.#ofAnybody }

  take(record: JournalRecord, state: State): void {
    const { type, data, by, time } = record
    const ms = Date.parse(time)
    const who = operatorIn(record)
    if (type === 'user.added') {
      const { id, email } = data as Events['user.added']
      this.addresses.set(id, email)
    }
    if (type === 'users.kept') {
      const { first, users } = data as Events['users.kept']
      for (const [i, user] of users.entries()) if (user !== null) this.addresses.set(first + i, user.email)
    }
    if (type === 'entries.disclosed') {
      const { command, id } = data as Events['entries.disclosed']
      this.given.push({ who: who ?? 'operator', how: command, ms, id, shown: 'all' })
    }
    if (by !== null) this.#ofUsers.push(ms)
    else if (who === undefined && /^(entry|fields)\./.test(type)) this.#ofAnybody.push(ms)
    for (const [id, row] of rowsOf(record)) {
      const isActive = /\.(created|restored|imported|kept)$/.test(type)
      if (isActive || type === 'entry.deleted') {
        this.statuses.set(id, [...this.statuses.get(id) ?? [], [ms, row?.status ?? Number(isActive)]])
      }
      const author = authorOf(state, record)
      const isSet = row?.password !== undefined && !type.endsWith('.kept')
      if (isSet && author !== null) this.given.push({ who: author, how: 'set it', ms, id, shown: 'all' })
    }
  }
}

function rowsOf({ type, data }: JournalRecord): readonly (readonly [id: number, row: Partial<EntryRow> | null])[] {
  if (!isOfEntries(type) || type === 'entries.disclosed') return []
  if (!/\.(imported|kept)$/.test(type)) return [[(data as { readonly id: number }).id, data as Partial<EntryRow>]]
  const { first, entries } = data as Events['entries.kept']
  return entries.map((row, i) => [first + i, row])
}

interface Row {
  readonly id: number
  readonly sistema: string
  readonly usuario: string
  readonly who: string
  readonly how: readonly string[]
  readonly last: string
}

/** By entry (undefined: several at once), then by who and how; oldest first. */
type Ways = Map<number | undefined, Map<string, Given[]>>

function waysOf(all: readonly Given[]): Ways {
  const ways: Ways = new Map()
  for (const given of [...all].sort((a, b) => a.ms - b.ms)) {
    const ofEntry = ways.get(given.id) ?? new Map<string, Given[]>()
    const key = `${given.who} ${given.how}`
    const known = ofEntry.get(key)
    if (known !== undefined) known.push(given)
    else ways.set(given.id, ofEntry.set(key, [given]))
  }
  return ways
}

function rowsOfEntry(id: number, { entries }: State, { statuses }: Facts, ways: Ways): readonly Row[] {
  const { sistema, usuario } = entries.get(id)!
  const setMs = setMsOf(entries, id)
  const isAmong = ({ ms, shown }: Given): boolean => {
    const status = statuses.get(id)?.findLast(([from]) => from <= ms)?.[1]
    return shown === 'all' || status === undefined || status === (shown === 'active' ? 1 : 0)
  }
  const rows = new Map<string, Row>()
  for (const list of [id, undefined].flatMap(key => [...ways.get(key)?.values() ?? []])) {
    const given = list.findLast(one => one.ms < setMs || one.id === id || isAmong(one))
    if (given === undefined || given.ms < setMs) continue
    const { how = [], last = '' } = rows.get(given.who) ?? {}
    const time = timeOf(given.ms)
    rows.set(given.who, {
      id, sistema, usuario, who: given.who, how: [...how, given.how], last: time > last ? time : last
    })
  }
  return [...rows.values()].sort((a, b) => a.last.localeCompare(b.last))
}

function setMsOf(entries: State['entries'], id: number): number { return entries.changedMs(id) ?? -Infinity }

async function * linesOf(chunks: AsyncIterable<Buffer> | Iterable<Buffer>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder()
  let held = ''
  for await (const chunk of chunks) {
    const lines = (held + decoder.decode(chunk, { stream: true })).split('\n')
    held = lines.pop()!
    yield * lines
  }
  yield held
}

function * chunksOf(files: Files, path: string): Generator<Buffer, void, void> {
  const descriptor = files.openToRead(path)
  try {
    yield * piecesOf(files, descriptor, 0)
  } catch (error) {
    throw ofFile(error, path)
  } finally {
    files.close(descriptor)
  }
}

async function subjectOf(
  context: Context, addresses: ReadonlyMap<number, string>
): Promise<{ readonly who?: readonly string[], readonly id?: number }> {
  const { positionals: [subject], flags } = context
  const isNamed = Object.keys(WHICH).some(flag => flags[flag] !== undefined)
  if (subject === undefined) return isNamed ? { id: await findId(context, 'all', 'shows') } : {}
  if (/^#\d+$/.test(subject)) return { who: [addresses.get(Number(subject.slice(1))) ?? subject, subject] }
  const email = subject.toLowerCase()
  if ([...addresses.values()].includes(email)) return { who: [email] }
  if (!subject.includes('@')) return { id: await findId(context, 'all', 'shows') }
  const found = await findId(context, 'all', 'shows').catch(error => {
    if (!(error instanceof OperatorError)) throw error
  })
  if (found !== undefined) return { id: found }
  throw new OperatorError('no user had this address, as far as the journal knows. If the user was removed before a ' +
    'compaction, the journal knows only the number. Find the number in the archive of that time (journal show), ' +
    'and give it as #NUMBER')
}

async function audit(context: Context): Promise<number> {
  const { store, terminal, flags } = context
  const files = flags['log'] as readonly string[] | undefined
  if (files === undefined) throw new UsageError(`give --log FILE, or - for standard input, such as: ${HOW}`)
  const facts = new Facts()
  const { state } = await store.read(await store.status(), (record, before) => facts.take(record, before))
  const { who, id } = await subjectOf(context, facts.addresses)
  await store.close()
  const logs = new Logs(facts.addresses)
  for (const file of files) {
    if (file !== '-') assertNotPacked(store.files, resolve(file), 'an access log')
    const chunks = file === '-' ? terminal.input() : chunksOf(store.files, resolve(file))
    for await (const line of linesOf(chunks)) logs.take(line)
  }
  const { fromMs, toMs, pauses } = logs.covered(facts.changes)
  if (fromMs === Infinity) throw new OperatorError('no line of an access log was found; give a log of ACCESS_LOG=on')
  const ids = id === undefined ? [...state.entries.entries()].map(entry => entry.id) : [id]
  if (id !== undefined && !state.entries.has(id)) throw new OperatorError(`no entry ${id}`)
  const ways = waysOf([...facts.given, ...logs.given].filter(one => who === undefined || who.includes(one.who)))
  const given = ids.flatMap(one => rowsOfEntry(one, state, facts, ways))
  const { gaps, unreadable } = logs
  const setEarlier = ids.filter(one => setMsOf(state.entries, one) < fromMs).length
  const setInGaps = ids.filter(one => gaps.some(({ to }) => Date.parse(to) > setMsOf(state.entries, one))).length
  const covers = { from: timeOf(fromMs), to: timeOf(toMs), gaps, pauses, unreadableLines: unreadable }
  terminal.show({ covers, setEarlier, setInGaps, given }, [
    `covers   ${covers.from} to ${covers.to}, ${counted(gaps.length, 'gap')}`,
    ...[...gaps.map(one => ['gap', one] as const), ...pauses.map(one => ['pause', one] as const)].slice(0, MAX_SHOWN)
      .map(([what, { from, to, why }]) => `${what.padEnd(8)} ${from} to ${to}: ${why}`),
    ...unreadable === 0 ? [] : [`beware   ${counted(unreadable, 'line')} could not be read`]
  ])
  if (flags['json'] !== true) terminal.list(given, 'nobody was given one of these passwords', FIELD_WORDS)
  const lacking = (count: number, when: string): void => {
    if (count > 0) terminal.warn(`${counted(count, 'password')} set ${when}: some readers are unknown`)
  }
  lacking(setEarlier, 'before the logs begin, or nobody knows when')
  lacking(setInGaps, 'before a gap of the logs ends')
  return setEarlier + setInGaps + unreadable === 0 ? 0 : 1
}

export const COMMANDS: readonly Command[] = [{
  name: 'audit', positionals: ['[USER|ENTRY]'],
  options: {
    ...WHICH, log: { value: 'FILE', repeats: true, help: 'an access log (ACCESS_LOG=on); - is standard input' }
  },
  help: 'says who was given which password since it was last set; exit code 1 if the logs do not reach back so far',
  examples: ['audit ana@example.org --log access.log.1 --log access.log', 'audit github --log -'],
  run: audit
}]
