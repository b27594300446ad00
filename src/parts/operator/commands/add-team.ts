/**
 * `user add --file`: the users of a CSV file, all or none, with passwords that this program makes.
 */
import { resolve } from 'node:path'
import { addressOf, ANY_ABILITY } from '../../../rights/rights.ts'
import { check, sentenceOf } from '../../../rights/validate.ts'
import { CHANGE_SHAPE } from '../../../accounts/account-shapes.ts'
import { counted } from '../../../log.ts'
import { OperatorError, UsageError, type Context } from '../../commands/command.ts'
import type { NewUser } from '../../commands/operation.ts'
import { csvRow, decodeUtf8, readCsv, type CsvRow } from '../transfer/csv.ts'
import { makeFile } from '../rewriting/saved-journal.ts'
import { readGiven } from '../system-error.ts'
import { generatedPassword } from './given-fields.ts'

type Member = Omit<NewUser, 'password'>

const COLUMNS = ['email', 'name', 'groups', 'abilities']
/** To hash a password takes a second on a slow machine. */
const MAX_MEMBERS = 1_000
const MAX_TEAM_BYTES = 1024 * 1024
const ALL = { groups: 'all' }

const ALONE = ['name', 'abilities', 'groups', 'all-groups', 'password-stdin', 'no-password']

/** An empty cell is an empty list: a forgotten cell must not mean everything. */
function listIn(cell: string, line: number, column: string): readonly string[] {
  if (cell === '') return []
  const names = cell.split(',').map(name => name.trim())
  if (!names.includes('')) return names
  throw new UsageError(`line ${line}: ${column} must be names, separated by commas, or *`)
}

export function membersIn(bytes: Uint8Array): readonly Member[] {
  const text = decodeUtf8(bytes)
  const separator = /^[^\n,;]*;/.test(text) ? ';' : ','
  const [header, ...rows] = readCsv(text, separator)
  const names = header?.cells.map(name => name.trim().toLowerCase()) ?? []
  if ([...names].sort().join() !== [...COLUMNS].sort().join()) {
    throw new UsageError('its first line must name four columns: email, name, groups, abilities')
  }
  if (rows.length === 0) throw new UsageError('there is no user in it')
  if (rows.length > MAX_MEMBERS)
    throw new UsageError(`it has more than ${MAX_MEMBERS} users; split it`)

  const memberOf = ({ line, cells }: CsvRow): Member => {
    const cell = (column: string): string => (cells[names.indexOf(column)] ?? '').trim()
    const groups = cell('groups') === ANY_ABILITY ? null : listIn(cell('groups'), line, 'groups')
    const abilities = listIn(cell('abilities'), line, 'abilities')
    const name = cell('name') || undefined
    const checked = check(CHANGE_SHAPE, { email: cell('email'), name, groups, abilities })
    if (!checked.ok) throw new UsageError(`line ${line}: ${sentenceOf(checked.errors)}`)
    return { email: cell('email'), name, groups, abilities }
  }
  const seen = new Map<string, number>()
  return rows.map(row => {
    const member = memberOf(row)
    const address = addressOf(member.email)
    const before = seen.get(address)
    if (before !== undefined)
      throw new UsageError(`line ${row.line}: ${member.email} stands in line ${before}, too`)
    seen.set(address, row.line)
    return member
  })
}

async function membersOf({ flags: { file }, terminal }: Context): Promise<readonly Member[]> {
  const path = file === '-' ? 'standard input' : resolve(String(file))
  const bytes =
    file === '-' ? await terminal.readInput(MAX_TEAM_BYTES) : readGiven(path, MAX_TEAM_BYTES)
  try {
    return membersIn(bytes)
  } catch (error) {
    // The cells of the file are the words of a command.
    if (error instanceof OperatorError || error instanceof UsageError)
      throw new UsageError(`${path}: ${error.message}`)
    throw error
  }
}

export async function addTeam(context: Context): Promise<void> {
  const { store, flags, terminal, positionals } = context
  const { passwords } = flags as { readonly passwords?: string }
  const other = ALONE.find(flag => flags[flag] !== undefined)
  if (positionals.length > 0 || other !== undefined)
    throw new UsageError(`--file does not go together with ${other ? `--${other}` : 'EMAIL'}`)
  const isTrial = flags['dry-run'] === true
  const isShown = terminal.showsResults && flags['json'] !== true
  if (!isTrial && passwords === undefined && !isShown)
    throw new UsageError('there is no terminal to show the passwords at; use --passwords FILE')

  const members = await membersOf(context)
  const users = members.map(member => ({ ...member, password: generatedPassword() }))
  const { taken, newGroups } = await store.ask('addUsers', { users, isTrial: true })
  if (taken.length > 0)
    throw new OperatorError(`these are users already, and nobody was added: ${taken.join(', ')}`)
  for (const name of newGroups)
    terminal.note(`no entry, user or token has had the group ${name} until now`)
  if (isTrial) {
    const shown = members.map(({ email, name = email, groups, abilities }) => ({
      email,
      name,
      abilities,
      ...(groups !== null && { groups })
    }))
    return terminal.list(shown, '', {}, ALL)
  }

  if (passwords !== undefined) {
    await makeFile(store.ending, passwords, made => {
      made.write(csvRow(['email', 'password']))
      for (const { email, password } of users) made.write(csvRow([email, password]))
    })
  } else for (const { email, password } of users) terminal.say([`${email}  ${password}`])
  try {
    const added = await store.ask('addUsers', { users, isTrial: false })
    if (added.taken.length > 0)
      throw new OperatorError(
        `these are users already, and nobody was added: ${added.taken.join(', ')}`
      )
    const path = passwords && resolve(passwords)
    const where = path === undefined ? 'above' : `in ${path}: delete it once they are handed over`
    terminal.show({ added: added.users, path }, [
      `${counted(added.users.length, 'user')} added; the first passwords are ${where}`
    ])
  } catch (error) {
    if (passwords !== undefined)
      terminal.note(
        `${resolve(passwords)} has passwords of users who may not be there: see user list`
      )
    throw error
  }
}
