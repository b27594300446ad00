/** Which entry a command is about: an id, or a part of its system or user name that one entry alone has. */
import { ENTRY_FIELDS, FIELDS, type Entry } from '../../store/entry.ts'
import { OperatorError, UsageError, type Context } from '../command.ts'
import { folded } from '../terminal.ts'
import type { Among, Disclosed } from '../operation.ts'

/** What the fields are called at a terminal, as their flags are; JSON has the contract's names. */
export const FIELD_WORDS: { readonly [field: string]: string } =
  Object.fromEntries(ENTRY_FIELDS.map(field => [field, FIELDS[field].flag]))

const ID = /^[1-9][0-9]{0,14}$/

/** What was read; a warning says why that was not recorded, if it was not. */
export function told<T>({ terminal }: Context, { found, unrecorded }: Disclosed<T>): T {
  if (unrecorded !== undefined) terminal.warn(`this disclosure of passwords was not recorded: ${unrecorded}`)
  return found
}

/** All entries; with their passwords for a command that is recorded. */
export async function entriesOf(context: Context, among: Among, command: string | undefined): Promise<Entry[]> {
  const all: Entry[] = []
  for (let from: number | undefined = 1; from !== undefined;) {
    const page: Disclosed<readonly Entry[]> & { next?: number } =
      await context.store.ask('readEntries', { from, among, command })
    for (const entry of told(context, page)) all.push(entry)
    from = page.next
  }
  return all
}

/**
 * The id that the first positional names. Of several entries that contain a text, one whose whole system it is counts
 * alone; else they are shown, and a `UsageError` asks for an id.
 */
export async function findId({ positionals: [text = ''], terminal, store }: Context, among: Among): Promise<number> {
  if (ID.test(text)) return Number(text)
  if (text === '') throw new UsageError('give an id, or a part of a system or user name')
  const found = await store.ask('findEntries', { text, among })
  const exact = found.filter(({ sistema = '' }) => folded(sistema) === folded(text))
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
