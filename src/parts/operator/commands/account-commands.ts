import { parseMinutes } from '../../../core-settings.ts'
import { email as emailRule } from '../../../rights/validate.ts'
import { MIN_LOGIN_PASSWORD_CHARACTERS } from '../../../limits.ts'
import { newFactor, stepOfCode } from '../../../accounts/logins.ts'
import { passwordFault } from '../../../accounts/password-rules.ts'
import { addressOf, ANY_ABILITY } from '../../../rights/rights.ts'
import { counted } from '../../../log.ts'
import {
  OperatorError,
  UsageError,
  type OperatorCommand,
  type Context
} from '../../commands/command.ts'
import type { ListedUser } from '../../../accounts/listed.ts'
import { UNCHANGED, type Knows, type NewGroups } from '../../commands/operation.ts'
import { othersMayKnow } from './who-knows.ts'

const PASSWORD_STDIN = {
  'password-stdin': { help: 'take the password from standard input, but for a line end after it' }
}
const ISSUER = 'Password Entry Service'
const ABILITIES = { abilities: { value: 'A,B', help: 'what it may do; * is everything' } }
const GROUPS = {
  groups: { value: 'A,B', help: 'the groups whose entries it sees; an empty text for none' }
}
const RIGHTS = {
  ...ABILITIES,
  ...GROUPS,
  'all-groups': { help: 'sees all entries, also those without a group' }
}

function isAddress(known: string, given: string): boolean {
  return addressOf(known) === addressOf(given)
}

function abilitiesOf({ flags }: Context): string[] | undefined {
  if (typeof flags['abilities'] !== 'string') return undefined
  const abilities = flags['abilities'].split(',').map(ability => ability.trim())
  if (abilities.includes('')) throw new UsageError('--abilities must be names, separated by commas')
  return abilities
}

/** Null: all groups. */
function groupsOf({
  flags: { groups, 'all-groups': areAll = false }
}: Context): readonly string[] | null | undefined {
  if (typeof groups !== 'string') return areAll === true ? null : undefined
  if (areAll === true) throw new UsageError('give either --groups A,B or --all-groups')
  if (groups === '') return []
  const names = groups.split(',').map(name => name.trim())
  if (names.includes('')) throw new UsageError('--groups must be names, separated by commas')
  return names
}

function assertEither(flags: Context['flags'], one: string, other: string): void {
  if (flags[one] === true && flags[other] === true)
    throw new UsageError(`--${one} and --${other} do not go together`)
}

function noteNew({ terminal }: Context, { newGroups }: NewGroups): void {
  for (const name of newGroups)
    terminal.note(`no entry, user or token has had the group ${name} until now`)
}

function nameOf({ flags: { name } }: Context): string | undefined {
  if (name === '') throw new UsageError('--name is empty')
  return name as string | undefined
}

function ttlMinutesOf({ flags }: Context): number | undefined {
  const text = flags['ttl-minutes']
  try {
    return text === undefined ? undefined : parseMinutes(String(text))
  } catch (error) {
    throw new UsageError(`--ttl-minutes must be ${(error as Error).message}`)
  }
}

async function assertUser(
  store: Context['store'],
  email: string,
  isTaken: boolean
): Promise<ListedUser | undefined> {
  const user = (await store.ask('listUsers', {})).find(one => isAddress(one.email, email))
  if ((user !== undefined) === isTaken) return user
  throw new OperatorError(
    isTaken ? 'there is no user with this address' : 'there is a user with this address already'
  )
}

/** The address is checked first: nobody should type a password in vain. */
async function newPassword(
  { store, positionals: [email = ''], flags, terminal }: Context,
  isTaken: boolean
): Promise<string> {
  const fault = emailRule.fault('email', email)
  if (fault !== undefined) throw new UsageError(fault)
  await assertUser(store, email, isTaken)
  await store.close() // a service may start while the password is typed
  return terminal.newSecret(flags['password-stdin'] === true, {
    prompt: `password (${MIN_LOGIN_PASSWORD_CHARACTERS} characters or more)`,
    fault: password => passwordFault(password, email)
  })
}

/** A user who loses rights still knows the passwords. */
function knownLines(email: string, { knows, unrecordedBefore }: Knows): readonly string[] {
  const known = `${email} knows ${counted(knows, 'present password')}`
  return [
    ...(knows === 0 ? [] : [`${known}: entry list --exposed lists what is to be changed`]),
    ...othersMayKnow(unrecordedBefore, `${email} and others`)
  ]
}

function inGroups(groups: readonly string[]): string {
  return groups.length === 0 ? 'in no group' : `in the groups: ${groups.join(', ')}`
}

const ALL = { groups: 'all' }

async function remove({ store, positionals: [email = ''], terminal }: Context): Promise<void> {
  const { isChanged: _, ...knows } = await store.ask('removeUser', { email })
  terminal.show({ email, done: 'removed', ...knows }, [
    `${email}: removed, all tokens revoked`,
    ...knownLines(email, knows)
  ])
}

async function revokeAll({ store, terminal }: Context, email: string): Promise<void> {
  const { isChanged } = await store.ask('revokeTokens', { email })
  const done = isChanged ? 'all tokens revoked' : UNCHANGED
  terminal.show({ email, done }, `${email}: ${isChanged ? done : `${done}: there is no token`}`)
}

/** Any program for one-time codes takes either. */
async function secondFactor(context: Context): Promise<void> {
  const {
    store,
    positionals: [email = ''],
    flags,
    terminal
  } = context
  if (flags['remove'] === true) {
    const { isChanged } = await store.ask('removeFactor', { email })
    const done = isChanged ? 'second factor removed' : UNCHANGED
    const why = isChanged ? '' : ': there is no second factor'
    return terminal.show({ email, done }, `${email}: ${done}${why}`)
  }
  const hadOne = (await assertUser(store, email, true))?.secondFactor === true
  await store.close() // a service may start while the code is typed
  if (hadOne) terminal.note(`${email} has a second factor already: the new one replaces it`)
  const factor = newFactor()
  const label = `${encodeURIComponent(ISSUER)}:${encodeURIComponent(email)}`
  terminal.note(`secret     ${factor.replace(/(.{4})(?=.)/g, '$1 ')}`)
  terminal.note(
    `address    otpauth://totp/${label}?secret=${factor}&issuer=${encodeURIComponent(ISSUER)}`
  )
  terminal.note(
    'Put one of the two into the user’s program for one-time codes; they are not shown again.'
  )
  let code = await terminal.line('first code: ')
  while (terminal.isInteractive && stepOfCode(factor, code, Date.now()) === undefined) {
    terminal.note('that is not the present code; if it goes on so, one of the two clocks is wrong')
    code = await terminal.line('first code: ')
  }
  await store.ask('giveFactor', { email, factor, code })
  const done = hadOne ? 'second factor replaced' : 'second factor given'
  terminal.show(
    { email, done },
    `${email}: ${done}; logins ask for its codes alone from now on, existing tokens stay. ` +
      'The code that was typed is used: for the first login wait for the next one'
  )
}

export const COMMANDS: readonly OperatorCommand[] = [
  {
    name: 'user add',
    positionals: ['[EMAIL]'],
    ifMissing: 'begin',
    options: {
      'name': { value: 'N', help: 'the name that logins are answered with' },
      ...RIGHTS,
      ...PASSWORD_STDIN,
      'no-password': { help: 'the user has no password, and cannot log in by one' },
      'file': {
        value: 'TEAM.csv',
        help:
          'add all users of this file, or none; its first line is email,name,groups,abilities; ' +
          '- is standard input'
      },
      'passwords': {
        value: 'FILE',
        help:
          'with --file: the new file for the passwords, which are made; without it, ' +
          'the terminal shows them'
      },
      'dry-run': { help: 'with --file: show what would be added, and add nobody' }
    },
    help:
      'adds a user, whose password it asks for; without --abilities the user may do ' +
      'everything, without --groups with all entries',
    examples: [
      'user add ana@example.org --name Ana',
      'user add bob@example.org --abilities password:read --groups Web,Mail',
      'user add --file team.csv --dry-run'
    ],
    run: async context => {
      const {
        positionals: [email],
        flags,
        terminal
      } = context
      if (flags['file'] !== undefined) return (await import('./add-team.ts')).addTeam(context)
      const alone = ['passwords', 'dry-run'].find(flag => flags[flag] !== undefined)
      if (alone !== undefined) throw new UsageError(`--${alone} goes together with --file alone`)
      if (email === undefined) throw new UsageError('give either EMAIL or --file TEAM.csv')
      const given = {
        name: nameOf(context),
        abilities: abilitiesOf(context),
        groups: groupsOf(context)
      }
      const isWithout = context.flags['no-password'] === true
      assertEither(context.flags, 'no-password', 'password-stdin')
      const password = isWithout ? undefined : await newPassword(context, false)
      const user = await context.store.ask('addUser', { email, ...given, password })
      const may = user.abilities.includes(ANY_ABILITY) ? 'everything' : user.abilities.join(', ')
      const where = user.groups === undefined ? [] : [inGroups(user.groups)]
      terminal.show(
        user,
        [`${user.email}: added as user ${user.id}, who may do: ${may}`, ...where].join(', ')
      )
      noteNew(context, user)
    }
  },
  {
    name: 'user edit',
    positionals: ['EMAIL'],
    options: { name: { value: 'N', help: 'the new name' }, ...RIGHTS },
    help:
      'changes the name, the abilities or the groups of a user, at once and for existing ' +
      'tokens, too',
    examples: [
      'user edit ana@example.org --name "Ana B."',
      'user edit ana@example.org --groups Web,Mail'
    ],
    run: async context => {
      const {
        store,
        positionals: [email = ''],
        terminal
      } = context
      const changes = {
        name: nameOf(context),
        abilities: abilitiesOf(context),
        groups: groupsOf(context)
      }
      if (Object.values(changes).every(one => one === undefined)) {
        throw new UsageError(
          'give one or more of --name N, --abilities A,B, and --groups A,B or --all-groups'
        )
      }
      const changed = await store.ask('changeUser', { email, ...changes })
      const takes = changes.abilities !== undefined || Array.isArray(changes.groups)
      const more = takes ? knownLines(email, changed) : []
      const { isChanged, ...rest } = changed
      const done = isChanged ? 'changed' : UNCHANGED
      const line = `${email}: ${done}${isChanged ? '' : ': the user is as given already'}`
      terminal.show({ email, done, ...rest }, [line, ...more])
      noteNew(context, changed)
    }
  },
  {
    name: 'user list',
    help: 'lists the users',
    run: async ({ store, terminal }) => {
      const users = await store.ask('listUsers', {})
      await store.close() // nobody waits for the lock while this is printed
      const words = {
        secondFactor: 'second factor',
        hasNoPassword: 'no password',
        isLocked: 'locked'
      }
      terminal.list(users, 'no users', words, ALL)
    }
  },
  {
    name: 'user second-factor',
    positionals: ['EMAIL'],
    options: { remove: { help: 'take it away: the password alone is enough then' } },
    help: 'gives a user one-time codes for logins: shows a secret and asks for a first code',
    examples: ['user second-factor ana@example.org', 'user second-factor ana@example.org --remove'],
    run: secondFactor
  },
  {
    name: 'user password',
    positionals: ['EMAIL'],
    options: {
      ...PASSWORD_STDIN,
      remove: { help: 'take it away: the user cannot log in by a password' }
    },
    help: "gives a user a new password, or takes it away, and revokes the user's tokens",
    examples: ['user password ana@example.org'],
    run: async context => {
      const {
        store,
        positionals: [email = ''],
        flags,
        terminal
      } = context
      const takes = flags['remove'] === true
      assertEither(flags, 'remove', 'password-stdin')
      const { isChanged } = await store.ask('setPassword', {
        email,
        password: takes ? undefined : await newPassword(context, true)
      })
      const set = takes ? 'has no password now' : 'password set'
      const done = isChanged ? set : UNCHANGED
      const more = isChanged ? ', all tokens revoked' : ': there is no password and no token'
      terminal.show({ email, done }, `${email}: ${done}${more}`)
    }
  },
  {
    name: 'user remove',
    positionals: ['EMAIL'],
    help: "removes a user and revokes the user's tokens",
    run: remove
  },
  {
    name: 'token issue',
    positionals: ['EMAIL'],
    options: {
      'name': { value: 'N', help: 'what it is for, as token list shows it' },
      ...ABILITIES,
      ...GROUPS,
      'ttl-minutes': { value: 'N', help: 'how long it lives; without: until it is revoked' }
    },
    help:
      'issues a token and prints it, this once; without --abilities it may do what its user ' +
      'may, without --groups it sees what its user sees',
    examples: ['token issue ci@example.org --name "nightly build" --ttl-minutes 60'],
    run: async context => {
      const {
        positionals: [email = ''],
        terminal
      } = context
      const rights = { abilities: abilitiesOf(context), groups: groupsOf(context) }
      const issued = await context.store.ask('issueToken', {
        email,
        ...rights,
        ttlMinutes: ttlMinutesOf(context),
        name: nameOf(context)
      })
      terminal.show(issued, issued.token)
      noteNew(context, issued)
    }
  },
  {
    name: 'token list',
    positionals: ['[EMAIL]'],
    help:
      "lists the tokens, all of them or a user's, and when each was last used since the " +
      'service began',
    run: async ({ store, positionals: [email], terminal }) => {
      if (email !== undefined) await assertUser(store, email, true)
      const tokens = await store.ask('listTokens', {})
      await store.close()
      const found = tokens.filter(token => email === undefined || isAddress(token.email, email))
      terminal.list(found, 'no tokens', { lastUsed: 'last used' }, ALL)
    }
  },
  {
    name: 'token revoke',
    positionals: ['[ID]'],
    options: { all: { value: 'EMAIL', help: 'all tokens of a user instead of one' } },
    help: "revokes a token, or all of a user's",
    examples: ['token revoke 1f0c9e3a77b2', 'token revoke --all ana@example.org'],
    run: async context => {
      const {
        store,
        positionals: [id],
        flags,
        terminal
      } = context
      if ((id === undefined) === (flags['all'] === undefined))
        throw new UsageError('give either an ID or --all EMAIL')
      if (id === undefined) return revokeAll(context, String(flags['all']))
      await store.ask('revokeToken', { id })
      terminal.show({ id, done: 'revoked' }, `${id}: revoked`)
    }
  }
]
