/** Which entry a command is about: an id, or a part of its system or user name that one entry alone has. */
import { TEXTS } from '../../contract.ts'
import { ENTRY_FIELDS, FIELDS, type Entry } from '../../store/entry.ts'
import { OperatorError, UsageError, type Context } from '../command.ts'
import { folded } from '../terminal.ts'

/** The entries that a command may be about. */
export type Among = 'active' | 'deleted' | 'all'

/** An entry that was found, as lists show it. */
export type Listed = Pick<Entry, 'id' | 'sistema' | 'usuario'>

/** What the fields are called at a terminal, as their flags are; JSON has the contract's names. */
export const FIELD_WORDS: { readonly [field: string]: string } =
  Object.fromEntries(ENTRY_FIELDS.map(field => [field, FIELDS[field].flag]))

const ID = /^[1-9][0-9]{0,14}$/

/** The entries that are active, deleted, or either. */
export async function entriesOf({ store }: Context, among: Among): Promise<readonly Entry[]> {
  const { state: { entries } } = await store.read(await store.status())
  const all = [...entries.entries()]
  return among === 'all' ? all : all.filter(({ status }) => status === (among === 'active' ? 1 : 0))
}

/** The entries whose system or user contains a text, whatever its case and accents. */
export async function listed(context: Context, among: Among, text: string = ''): Promise<readonly Listed[]> {
  const wanted = folded(text)
  return (await entriesOf(context, among)).map(({ id, sistema, usuario }) => ({ id, sistema, usuario }))
    .filter(({ sistema, usuario }) => [sistema, usuario].some(one => folded(one).includes(wanted)))
}

/**
 * The id that the first positional names. Of several entries that contain a text, one whose whole system it is counts
 * alone; else they are shown, and a `UsageError` asks for an id.
 */
export async function findId(context: Context, among: Among): Promise<number> {
  const { positionals: [text = ''], terminal } = context
  if (ID.test(text)) return Number(text)
  if (text === '') throw new UsageError('give an id, or a part of a system or user name')
  const found = await listed(context, among, text)
  const exact = found.filter(({ sistema }) => folded(sistema) === folded(text))
  const [one, ...others] = exact.length === 1 ? exact : found
  if (one === undefined) {
    throw new OperatorError(`no ${among === 'all' ? '' : `${among} `}entry has that in its system or user name`)
  }
  if (others.length === 0) return one.id
  terminal.choices(found, FIELD_WORDS)
  throw new UsageError(`${found.length} entries have that in their system or user name; give an id`)
}

/** The id of a command that takes nothing else. */
export function idOf({ positionals: [text = ''] }: Context): number {
  if (!ID.test(text)) throw new UsageError('ID must be a positive integer')
  return Number(text)
}

function noEntry(id: number): OperatorError { return new OperatorError(`no entry ${id}`) }

/** An entry of the running service, or of the folder. */
export async function entryOf({ store }: Context, id: number): Promise<Entry> {
  if (await store.look() !== undefined) {
    return (await asking(id, store.ask('GET', `/api/getPassword/${id}`))).passwords
  }
  const entry = (await store.read(await store.status())).state.entries.get(id)
  if (entry === undefined) throw noEntry(id)
  return entry
}

/** What a store answers about an entry; at a terminal its own words for an unknown id, which are the contract's. */
export async function asking<T>(id: number, answer: Promise<T>): Promise<T> {
  return answer.catch(error => {
    throw error instanceof OperatorError && error.message === TEXTS.unknownId ? noEntry(id) : error
  })
}
