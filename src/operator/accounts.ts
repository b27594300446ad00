/** The commands on users and tokens. */
import { minutes } from '../values.ts'
import type { Command, Context } from './command.ts'
import { Misuse } from './refusal.ts'

const PASSWORD_STDIN = { 'password-stdin': { help: 'take the password from the first line of standard input' } }
const JSON_LIST = { json: { help: 'print the list as JSON' } }
const ABILITIES = { abilities: { value: 'A,B', help: 'what it may do; * is everything' } }

function abilitiesOf({ flags }: Context): string[] | undefined {
  if (typeof flags['abilities'] !== 'string') return undefined
  const abilities = flags['abilities'].split(',').map(ability => ability.trim())
  if (abilities.includes('')) throw new Misuse('--abilities must be names, separated by commas')
  return abilities
}

function ttlMinutesOf({ flags }: Context): number | undefined {
  const text = flags['ttl-minutes']
  try {
    return text === undefined ? undefined : minutes(String(text))
  } catch (error) {
    throw new Misuse(`--ttl-minutes must be ${(error as Error).message}`)
  }
}

/** Asks with the e-mail address of the first positional, and says what was done. */
function byAddress(path: string, done: string): Command['run'] {
  return async ({ store, positionals: [email], terminal }) => {
    await store.ask('POST', path, { email })
    terminal.print(`${email}: ${done}`)
  }
}

const revokeAll = byAddress('/operator/tokens/revoke-all', 'all tokens revoked')

/** `user …` and `token …`. */
export const ACCOUNT_COMMANDS: readonly Command[] = [
  {
    name: 'user add', positionals: ['EMAIL'],
    options: { name: { value: 'N', help: 'the name that logins are answered with' }, ...ABILITIES, ...PASSWORD_STDIN },
    help: 'adds a user, whose password it asks for',
    run: async context => {
      const { positionals: [email], flags, terminal } = context
      const abilities = abilitiesOf(context)
      const password = await terminal.newSecret(flags['password-stdin'] === true)
      const body = { email, name: flags['name'], abilities, password }
      const user = await context.store.ask('POST', '/operator/users/add', body)
      terminal.print(`${user.email}: added as user ${user.id}`)
    }
  },
  {
    name: 'user list', options: JSON_LIST,
    help: 'lists the users: id, address, name, abilities',
    run: async ({ store, flags, terminal }) => {
      terminal.list(await store.ask('GET', '/operator/users'), flags['json'] === true)
    }
  },
  {
    name: 'user password', positionals: ['EMAIL'], options: PASSWORD_STDIN,
    help: 'gives a user a new password and ends the user\'s tokens',
    run: async ({ store, positionals: [email], flags, terminal }) => {
      const password = await terminal.newSecret(flags['password-stdin'] === true)
      await store.ask('POST', '/operator/users/password', { email, password })
      terminal.print(`${email}: new password, all tokens revoked`)
    }
  },
  {
    name: 'user remove', positionals: ['EMAIL'],
    help: 'removes a user and ends the user\'s tokens',
    run: byAddress('/operator/users/remove', 'removed, all tokens revoked')
  },
  {
    name: 'token issue', positionals: ['EMAIL'],
    options: { ...ABILITIES, 'ttl-minutes': { value: 'N', help: 'how long it lives; without: until it is revoked' } },
    help: 'issues a token and prints it, this once',
    run: async context => {
      const { positionals: [email], terminal } = context
      const body = { email, abilities: abilitiesOf(context), ttlMinutes: ttlMinutesOf(context) }
      const issued = await context.store.ask('POST', '/operator/tokens/issue', body)
      terminal.print(issued.token)
    }
  },
  {
    name: 'token list', positionals: ['[EMAIL]'], options: JSON_LIST,
    help: 'lists the tokens: id, address, abilities, issued, expires',
    run: async ({ store, positionals: [email], flags, terminal }) => {
      const tokens: { email: string }[] = await store.ask('GET', '/operator/tokens')
      const listed = tokens.filter(token => email === undefined || token.email === email.toLowerCase())
      terminal.list(listed, flags['json'] === true)
    }
  },
  {
    name: 'token revoke', positionals: ['[ID]'],
    options: { all: { value: 'EMAIL', help: 'all tokens of a user instead of one' } },
    help: 'ends a token, or all of a user\'s',
    run: async context => {
      const { store, positionals: [id], flags, terminal } = context
      if ((id === undefined) === (flags['all'] === undefined)) throw new Misuse('give either an ID or --all EMAIL')
      if (id === undefined) return revokeAll({ ...context, positionals: [String(flags['all'])] })
      await store.ask('POST', '/operator/tokens/revoke', { id })
      terminal.print(`${id}: revoked`)
    }
  }
]
