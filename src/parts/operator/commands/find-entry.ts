/** Finds an entry by id, or by a part of its system, user name or address. */
import { ENTRY_FIELDS, FIELDS, type Entry } from '../../../store/entry.ts'
import { OperatorError, UsageError, type Context } from '../../../command.ts'
import { folded } from '../../terminal.ts'
import type { Among, Disclosed } from '../../operation.ts'

/** Names at a terminal; JSON has the contract's names. */
export const FIELD_WORDS: { readonly [field: string]: string } =
  Object.fromEntries(ENTRY_FIELDS.map(field => [field, FIELDS[field].flag]))

const ID = /^[1-9][0-9]{0,14}$/

/** Warns if the disclosure was not recorded. */
export function told<T>({ terminal }: Context, { found, unrecorded }: Disclosed<T>): T {
  if (unrecorded !== undefined) terminal.warn(`this disclosure of passwords was not recorded: ${unrecorded}`)
  return found
}

/** With passwords if `command` is given, which is recorded. */
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
 * If several entries match, an entry whose whole system matches counts alone. Throws an `OperatorError` for no entry, a
 * `UsageError` for several.
 */
export async function findId({ positionals: [text = ''], terminal, store }: Context, among: Among): Promise<number> {
  if (ID.test(text)) return Number(text)
  if (text === '') throw new UsageError('give an id, or a part of a system, user name or address')
  const found = await store.ask('findEntries', { text, among })
  const exact = found.filter(({ sistema = '' }) => folded(sistema) === folded(text))
  const [one, ...others] = exact.length === 1 ? exact : found
  if (one === undefined) {
    const which = among === 'all' ? '' : `${among} `
    throw new OperatorError(`no ${which}entry has this text in its system, user name or address`)
  }
  if (others.length === 0) return one.id
  terminal.choices(found, FIELD_WORDS)
  throw new UsageError(`${found.length} entries have this text in their system, user name or address; give an id`)
}

/** Throws a `UsageError`. */
export function idOf({ positionals: [text = ''] }: Context): number {
  if (!ID.test(text)) throw new UsageError('ID must be a positive integer')
  return Number(text)
}
