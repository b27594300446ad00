import { ENTRY_FIELDS, FIELDS, idIn, type Entry } from '../../../entries/entry.ts'
import { OperatorError, UsageError, type Context, type Option } from '../../commands/command.ts'
import { folded } from '../../commands/terminal.ts'
import type { Among, FoundEntries, Listed, Result, Searched } from '../../commands/operation.ts'

/** As a person types them; JSON has the contract's names. */
export const FIELD_WORDS: { readonly [field: string]: string } = Object.fromEntries(
  ENTRY_FIELDS.map(field => [field, FIELDS[field].flag])
)

/** With secrets: recorded as shown by `command`. */
export async function entriesOf(
  { store }: Context,
  among: Among,
  command: string
): Promise<Entry[]> {
  const all: Entry[] = []
  for (let from: number | undefined = 1; from !== undefined;) {
    const page: Result<'readEntries'> = await store.ask('readEntries', { from, among, command })
    for (const entry of page.found) all.push(entry)
    from = page.next
  }
  return all
}

export async function* foundEntries(
  { store }: Pick<Context, 'store'>,
  searched: Omit<Searched, 'from'>
): AsyncGenerator<readonly [entry: Listed, slice: FoundEntries], void, void> {
  for (let from: number | undefined = 1; from !== undefined;) {
    const slice: FoundEntries = await store.ask('findEntries', { from, ...searched })
    for (const entry of slice.found) yield [entry, slice]
    from = slice.next
  }
}

/** `shows`: a person may type a part of a name. */
type Use = 'changes' | 'shows'

const MISSING = 'ENTRY is missing; give an id, the whole name of a system, or --of-system NAME'
const OTHERWISE = '--of-system NAME is for a system whose name is a number'

/**
 * Digits are an id. Any other word is the whole name of a system, ignoring case and accents. Throws
 * an `OperatorError` if no entry has it, a `UsageError` if several do.
 */
export async function findId(context: Context, among: Among, use: Use): Promise<number> {
  const {
    positionals: [word],
    flags,
    terminal,
    store
  } = context
  const { 'of-system': system, 'of-user': user } = flags as {
    readonly [flag: string]: string | undefined
  }
  if (word !== undefined && system !== undefined)
    throw new UsageError('give either ENTRY or --of-system NAME')
  if (word !== undefined && /^\d+$/.test(word)) {
    if (user !== undefined)
      throw new UsageError('--of-user goes with the name of a system, not with an id')
    return givenId(word)
  }
  const text = system ?? word ?? ''
  if (text === '') throw new UsageError(MISSING)
  const holding: Listed[] = []
  const named: Listed[] = []
  for await (const [entry] of foundEntries({ store }, { text, among })) {
    const { sistema = '', usuario = '' } = entry
    if (user !== undefined && folded(usuario) !== folded(user)) continue
    if (folded(sistema) === folded(text)) named.push(entry)
    else if (named.length === 0 && use === 'shows' && terminal.isPerson) holding.push(entry)
  }
  const byPart = named.length === 0 && use === 'shows' && terminal.isPerson
  const [one, ...others] = byPart ? holding : named
  const kind = among === 'all' ? '' : `${among} `
  if (one === undefined) {
    const whose = user === undefined ? '' : ' and this user'
    const what = `no ${kind}entry has a system of this name${whose}`
    throw new OperatorError(
      byPart
        ? `no ${kind}entry has this text in its system, user name or address`
        : `${what}; entry list finds entries by a part of a name`
    )
  }
  if (others.length > 0) {
    terminal.choices([one, ...others], FIELD_WORDS)
    const how = user === undefined ? 'give an id, or --of-user USER' : 'give an id'
    throw new UsageError(`${others.length + 1} ${kind}entries fit; ${how}`)
  }
  if (byPart) terminal.note(nameOf(one))
  return one.id
}

export const ENTRY: readonly string[] = ['[ENTRY]']
export const WHICH: { readonly [flag: string]: Option } = {
  'of-system': {
    value: 'NAME',
    help: 'instead of ENTRY: the whole name of its system, also if that is a number'
  },
  'of-user': { value: 'USER', help: 'its user name, if several entries have this system' }
}

export function nameOf({
  id,
  sistema = '',
  usuario = ''
}: Pick<Listed, 'id' | 'sistema' | 'usuario'>): string {
  return `entry ${id} (${sistema}, ${usuario})`
}

export function givenId(word: string, hint: string = OTHERWISE): number {
  const id = idIn(word)
  if (id === 0) throw new UsageError(`an id is a positive integer without leading zeros; ${hint}`)
  return id
}
