/** Users and their tokens (contract §5). */
import { hash, randomBytes } from 'node:crypto'
import type { EncodedEvent } from '../journal/journal.ts'
import { event } from './events.ts'
import { GroupNames } from './groups.ts'
import { PasswordHasher } from './passwords.ts'
import type { State } from './state.ts'
import type { Commits } from './store.ts'
import {
  ADDRESS_SHAPE, ANY_ABILITY, assertPassword, CHANGE_SHAPE, covers, invalid, isExpired, sees, TOKEN_SHAPE, tokenId,
  USER_SHAPE, type Abilities, type GivenGroups, type Groups, type Session, type Token, type User
} from './users.ts'
import { addressOf, shaped } from './validate.ts'

interface AccountsOptions {
  readonly hasher?: PasswordHasher
  readonly wallMs?: () => number
  /** If missing, any ability may be given. */
  readonly abilities?: Iterable<string | undefined> | undefined
  /** Of tokens from logins; a login ends up to two beyond it, those unused longest. */
  readonly tokensPerUser?: number
  readonly warn?: (line: string) => void
}

/** A user as clients see it. */
export type PublicUser = Pick<User, 'id' | 'email' | 'name'>

/** A user as the operator sees it; without `groups`: all of them. */
export type ListedUser = PublicUser & Pick<User, 'abilities' | 'groups'>

/** A token as the operator sees it; `id` begins its hash; without `groups`: all of them. */
export interface ListedToken extends Pick<Token, 'abilities' | 'groups' | 'issued' | 'expires'> {
  readonly id: string
  readonly email: string
  readonly name: string | null
  /** ISO 8601; null if unused since the start. */
  readonly lastUsed: string | null
}

/** A new token: its text is known only now. */
export interface Issued {
  readonly token: string
  readonly abilities: readonly string[]
  readonly groups?: Groups
  readonly user: PublicUser
  readonly expires: string | null
}

const TOKEN: RegExp = /^pes_[A-Za-z0-9_-]{43}$/
const TOKEN_BYTES = 32

export function hashOfToken(token: string): string { return hash('sha256', token, 'hex') }

function stillAs({ id, passwords }: User): (state: State) => User | undefined {
  return ({ users }) => {
    const now = users.get(id)
    return now?.passwordHash !== undefined && now.passwords === passwords ? now : undefined
  }
}

/** Copied. Absent stays absent, and an empty list stays a list. */
function groupsIn(groups: Groups): { readonly groups?: readonly string[] } {
  return groups === undefined ? {} : { groups: [...groups] }
}

function groupsOf({ user, groups }: Token, users: State['users']): Groups { return groups ?? users.get(user)!.groups }

function listed({ id, email, name, abilities, groups }: Omit<User, 'passwordHash' | 'passwords'>): ListedUser {
  return { id, email, name, abilities: [...abilities], ...groupsIn(groups) }
}

/** Throws `input-invalid`. */
function byAddress(email: string): (state: State) => User | undefined {
  shaped(ADDRESS_SHAPE, { email })
  return state => state.userOf(email)
}

/** Writes reject with `input-invalid` and as `Store.commit`; with a password also with `hashes-busy`. */
export class Accounts {
  readonly #store: Commits
  readonly #hasher: PasswordHasher
  readonly #wallMs: () => number
  readonly #abilities: Abilities
  readonly #tokensPerUser: number
  readonly #warn: (line: string) => void

  constructor(store: Commits, {
    hasher = new PasswordHasher(), wallMs = Date.now, abilities, tokensPerUser = Infinity, warn = () => {}
  }: AccountsOptions = {}) {
    this.#store = store
    this.#hasher = hasher
    this.#wallMs = wallMs
    this.#tokensPerUser = tokensPerUser
    this.#warn = warn
    this.#abilities = abilities && [...abilities].filter(one => one !== undefined)
  }

  get #state(): State { return this.#store.state }

  /** Undefined if the address is taken. The name defaults to the address, the abilities to none, `groups` to all. */
  async addUser(
    email: string, name: string | undefined, abilities: Abilities, password: string, groups?: GivenGroups
  ): Promise<ListedUser | undefined> {
    const given = shaped(USER_SHAPE, { email, name, abilities, password, groups })
    this.#assertKnown(given.abilities)
    const passwordHash = await this.#hash(email, password)
    return this.#store.commitAlone<ListedUser | undefined>(() => {
      if (this.#state.userOf(email) !== undefined) return [[], undefined]
      const id = this.#state.users.size + 1
      const user = {
        id, email: addressOf(email), name: given.name ?? email, abilities: given.abilities ?? [],
        ...groupsIn(this.#spelled(given.groups) ?? undefined)
      }
      return [[event('user.added', null, { ...user, passwordHash })], listed(user)]
    })
  }

  /** Ends the user's tokens; false for an unknown address. */
  async setPassword(email: string, password: string): Promise<boolean> {
    const passwordHash = await this.#hash(email, password)
    return this.#record(byAddress(email), ({ id }) => event('password.changed', null, { id, passwordHash }))
  }

  /** As `setPassword`; false if the current password is wrong. */
  async changePassword(by: Session, current: string, password: string, isGone?: () => boolean): Promise<boolean> {
    const id = by.user
    const user = this.#state.users.get(id)
    const isRight = await this.#hasher.verify(current, user?.passwordHash, isGone)
    if (!isRight || user === undefined) return false
    const passwordHash = await this.#hash(user.email, password, isGone)
    return this.#record(stillAs(user), () => event('password.changed', id, { id, passwordHash }), by)
  }

  /** Ends the user's tokens; false for an unknown address. */
  async removeUser(email: string): Promise<boolean> {
    return this.#record(byAddress(email), ({ id }) => event('user.removed', null, { id }))
  }

  /**
   * What is undefined stays; null `groups` are all. Narrows the user's tokens, those with fewer groups for good. False
   * for an unknown address.
   */
  async changeUser(
    email: string, name: string | undefined, abilities: Abilities, groups?: GivenGroups
  ): Promise<boolean> {
    const { email: _, ...changes } = shaped(CHANGE_SHAPE, { email, name, abilities, groups })
    this.#assertKnown(changes.abilities)
    return this.#record(byAddress(email),
      ({ id }) => event('user.changed', null, { id, ...changes, groups: this.#spelled(changes.groups) }))
  }

  /** Ends all tokens of a user (contract §5.7); false for an unknown address. */
  async revokeAll(email: string): Promise<boolean> {
    return this.#record(byAddress(email), ({ id }) => event('tokens.revoked', null, { user: id }))
  }

  /** Ends a token (contract §5.7); false for an unknown hash. Many may share a write. */
  revoke(hash: string, by: number | null): Promise<boolean> {
    return this.#store.commit(draft => {
      const isThere = draft.token(hash) !== undefined
      return [isThere ? [event('token.revoked', by, { hash })] : [], isThere]
    })
  }

  revokeToken(id: string): Promise<boolean> {
    return this.#record(({ tokens }) => [...tokens.keys()].find(hash => tokenId(hash) === id),
      hash => event('token.revoked', null, { hash }))
  }

  /**
   * Undefined for an unknown address. `abilities` default to the user's, `groups` to the user's at any time; without
   * `ttlMinutes` it never expires.
   */
  async issue(
    email: string, abilities: Abilities, ttlMinutes: number | undefined, name?: string, groups?: GivenGroups
  ): Promise<Issued | undefined> {
    const given = shaped(TOKEN_SHAPE, { email, abilities, ttlMinutes, name, groups })
    this.#assertKnown(given.abilities)
    return this.#issue(byAddress(email), given, given.ttlMinutes, null)
  }

  /** Issues a token (contract §5.3); undefined for a wrong password and, after the same time, an unknown user. */
  async login(
    email: string, password: string, ttlMinutes: number | undefined, isGone?: () => boolean
  ): Promise<Issued | undefined> {
    const user = this.#state.userOf(email)
    const isRight = await this.#hasher.verify(password, user?.passwordHash, isGone)
    return isRight && user !== undefined ? this.#issue(stillAs(user), {}, ttlMinutes, user.id) : undefined
  }

  /** Whose address it is, for the log. */
  idOf(email: string): number | undefined { return this.#state.userOf(email)?.id }

  /** Undefined if the token is unknown, revoked or expired. */
  session(token: string): Session | undefined {
    if (!TOKEN.test(token)) return undefined
    const hash = hashOfToken(token)
    const found = this.#state.tokens.get(hash)
    const nowMs = this.#wallMs()
    if (found === undefined || isExpired(found, nowMs)) return undefined
    found.usedMs = nowMs
    const { user, abilities } = found
    return { user, hash, token: found, abilities, groups: groupsOf(found, this.#state.users) }
  }

  users(): ListedUser[] {
    return [...this.#state.users.values()].filter(({ passwordHash }) => passwordHash !== undefined)
      .map(listed)
  }

  tokens(): ListedToken[] {
    const nowMs = this.#wallMs()
    const { tokens, users } = this.#state
    return [...tokens].filter(([, token]) => !isExpired(token, nowMs))
      .map(([hash, token]) => {
        const { user, abilities, issued, expires, name = null, usedMs } = token
        const lastUsed = usedMs === undefined ? null : new Date(usedMs).toISOString()
        const { email } = users.get(user)!
        const rights = { abilities: [...abilities], ...groupsIn(groupsOf(token, users)) }
        return { id: tokenId(hash), email, name, ...rights, issued, expires, lastUsed }
      })
  }

  #assertKnown(wanted: readonly string[] = []): void {
    const known = this.#abilities
    if (known === undefined || wanted.every(one => one === ANY_ABILITY || known.includes(one))) return
    throw invalid('abilities', `an ability must be one of ${[ANY_ABILITY, ...new Set(known)].join(', ')}`)
  }

  /** The first spelling that the journal has stands; a name given twice counts once. */
  #spelled<G extends GivenGroups>(groups: G): G | readonly string[] {
    if (!groups) return groups
    const names = new GroupNames(this.#state.names)
    const numbers = new Set(groups.map(given => names.numberOf(names.spelled(given))))
    return [...numbers].map(number => names.nameOf(number)!)
  }

  async #hash(email: string, password: string, isGone?: () => boolean): Promise<string> {
    assertPassword(email, password)
    return this.#hasher.hash(password, isGone)
  }

  #record<T>(
    find: (state: State) => T | undefined, eventOf: (found: T) => EncodedEvent, by?: Session
  ): Promise<boolean> {
    return this.#store.commitAlone(() => {
      const found = find(this.#state)
      return [found === undefined ? [] : [eventOf(found)], found !== undefined]
    }, by)
  }

  async #issue(
    find: (state: State) => User | undefined,
    wanted: { readonly abilities?: Abilities, readonly groups?: GivenGroups, readonly name?: string | undefined },
    ttlMinutes: number | undefined, by: number | null
  ): Promise<Issued | undefined> {
    const token = `pes_${randomBytes(TOKEN_BYTES).toString('base64url')}`
    let ended: readonly string[] = []
    const made = await this.#store.commitAlone<Issued | undefined>(() => {
      const user = find(this.#state)
      if (user === undefined) return [[], undefined]
      if (wanted.abilities?.every(ability => covers(user.abilities, ability)) === false) {
        throw invalid('abilities', 'a token may do no more than its user; user list shows what that is')
      }
      const groups = this.#spelled(wanted.groups) ?? undefined
      if (groups?.every(group => sees(user.groups, group)) === false) {
        throw invalid('groups', 'a token may see no more than its user; user list shows what that is')
      }
      const nowMs = this.#wallMs()
      const expires = ttlMinutes === undefined ? null : new Date(nowMs + ttlMinutes * 60_000).toISOString()
      const abilities = [...wanted.abilities ?? user.abilities]
      const issued = new Date(nowMs).toISOString()
      const named = wanted.name === undefined ? {} : { name: wanted.name }
      const data = {
        hash: hashOfToken(token), user: user.id, abilities, ...groupsIn(groups), issued, expires, ...named
      }
      ended = by === null ? [] : this.#beyondBound(user.id, nowMs)
      const { id, email, name } = user
      return [
        [...ended.map(hash => event('token.revoked', null, { hash })), event('token.issued', by, data)],
        { token, abilities: [...abilities], ...groupsIn(groups ?? user.groups), user: { id, email, name }, expires }
      ]
    })
    for (const hash of ended) {
      this.#warn(`${made?.user.email} has more than ${this.#tokensPerUser} tokens from logins: ` +
        `${tokenId(hash)}, unused longest, has ended`)
    }
    return made
  }

  #beyondBound(user: number, nowMs: number): readonly string[] {
    const own = [...this.#state.tokens]
      .filter(([, token]) => token.user === user && token.isOfLogin && !isExpired(token, nowMs))
      .sort(([, a], [, b]) =>
        (a.usedMs ?? 0) - (b.usedMs ?? 0) || Date.parse(a.issued) - Date.parse(b.issued))
    const excess = Math.min(2, Math.max(0, own.length + 1 - this.#tokensPerUser))
    return own.slice(0, excess).map(([hash]) => hash)
  }
}
