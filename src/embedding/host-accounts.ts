/** Users and tokens, for the program that embeds the service. */
import type { Accounts } from '../accounts/accounts.ts'
import type { Issued, ListedToken, ListedUser } from '../accounts/listed.ts'
import { Failure } from '../errors.ts'

interface Address {
  readonly email: string
}

/** `null`: all of them. A list that is absent would stand for all, so none may be absent. */
type GroupsOrAll = readonly string[] | null

/**
 * Each call takes one object with names. Another form, a name that is unknown, and one that is
 * undefined, reject with `setting-invalid`.
 */
export interface HostAccounts {
  /**
   * Undefined if the address is taken. The name defaults to the address. A null password: the user
   * can log in by a trusted proxy or host alone.
   */
  addUser(
    user: Address & {
      readonly password: string | null
      readonly abilities: readonly string[]
      readonly groups: GroupsOrAll
      readonly name?: string
    }
  ): Promise<ListedUser | undefined>
  /**
   * What is absent stays. Narrows the user's tokens; those that lose groups do not get them back.
   * False for an unknown address.
   */
  changeUser(
    changes: Address & {
      readonly name?: string
      readonly abilities?: readonly string[]
      readonly groups?: GroupsOrAll
    }
  ): Promise<boolean>
  /** Ends the user's tokens; false for an unknown address. Null takes the password away. */
  setPassword(given: Address & { readonly password: string | null }): Promise<boolean>
  /** Ends the user's tokens; false for an unknown address. */
  removeUser(given: Address): Promise<boolean>
  /**
   * Undefined for an unknown address. `null`: the user's abilities, and the user's groups at any
   * time. Without `ttlMinutes` it never expires.
   */
  issue(
    token: Address & {
      readonly abilities: readonly string[] | null
      readonly groups: GroupsOrAll
      readonly name?: string
      readonly ttlMinutes?: number
    }
  ): Promise<Issued | undefined>
  /** False for an unknown id. */
  revokeToken(given: { readonly id: string }): Promise<boolean>
  /** Ends all tokens of a user; false for an unknown address. */
  revokeAll(given: Address): Promise<boolean>
  users(): Promise<ListedUser[]>
  tokens(): Promise<ListedToken[]>
}

/** `catchUp` resolves once what others wrote is here. */
export function hostAccounts(accounts: Accounts, catchUp: () => Promise<void>): HostAccounts {
  const { addUser, changeUser, setPassword, removeUser, issue, revokeToken, revokeAll } = TAKES
  return {
    addUser: async (...given) => {
      const { email, name, abilities, password, groups } = addUser(given)
      return accounts.addUser(email, name, abilities, password, groups)
    },
    changeUser: async (...given) => {
      const { email, name, abilities, groups } = changeUser(given)
      return accounts.changeUser(email, name, abilities, groups)
    },
    setPassword: async (...given) => {
      const { email, password } = setPassword(given)
      return accounts.setPassword(email, password)
    },
    removeUser: async (...given) => accounts.removeUser(removeUser(given).email),
    issue: async (...given) => {
      const { email, abilities, ttlMinutes, name, groups } = issue(given)
      return accounts.issue(email, abilities ?? undefined, ttlMinutes, name, groups)
    },
    revokeToken: async (...given) => accounts.revokeToken(revokeToken(given).id),
    revokeAll: async (...given) => accounts.revokeAll(revokeAll(given).email),
    users: async () => {
      await catchUp()
      return accounts.users()
    },
    tokens: async () => {
      await catchUp()
      return accounts.tokens()
    }
  }
}

type AccountCall = Exclude<keyof HostAccounts, 'users' | 'tokens'>
type GivenTo<C extends AccountCall> = Parameters<HostAccounts[C]>[0]

const TAKES: { readonly [C in AccountCall]: (given: readonly unknown[]) => GivenTo<C> } = {
  addUser: taking('addUser', ['email', 'password', 'abilities', 'groups'], ['name']),
  changeUser: taking('changeUser', ['email'], ['name', 'abilities', 'groups']),
  setPassword: taking('setPassword', ['email', 'password']),
  removeUser: taking('removeUser', ['email']),
  issue: taking('issue', ['email', 'abilities', 'groups'], ['name', 'ttlMinutes']),
  revokeToken: taking('revokeToken', ['id']),
  revokeAll: taking('revokeAll', ['email'])
}

/** `free`: names that may be left out. */
function taking<C extends AccountCall>(
  call: C,
  needed: readonly (keyof GivenTo<C> & string)[],
  free: readonly (keyof GivenTo<C> & string)[] = []
): (given: readonly unknown[]) => GivenTo<C> {
  const names: readonly string[] = [...needed, ...free]
  return given => {
    const [object] = given
    const found = new Map(
      typeof object === 'object' && object !== null ? Object.entries(object) : []
    )
    const isWhole = needed.every(name => found.has(name))
    const isKnown = [...found].every(([name, value]) => names.includes(name) && value !== undefined)
    if (given.length === 1 && isWhole && isKnown) return object as GivenTo<C>
    const form = [...needed, ...free.map(name => `${name}?`)].join(', ')
    throw new Failure(
      'setting-invalid',
      `${call} takes one object, in which nothing is undefined: ${call}({ ${form} })`
    )
  }
}
