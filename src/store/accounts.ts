/** Users and their tokens (contract §5). */
import { hash, randomBytes } from 'node:crypto'
import { Failure } from '../errors.ts'
import type { Event } from '../journal/journal.ts'
import {
  ADDRESS_SHAPE, assertKnown, assertPassword, CHANGE_SHAPE, shaped, TOKEN_SHAPE, USER_SHAPE
} from './account-rules.ts'
import { PasswordHasher, type HashClient } from './password-hash.ts'
import type { Token, User } from './events.ts'
import { hasAbility, isExpired, tokenId, type Session } from './session.ts'
import { event, userOf, type CommittedState, type State } from './state.ts'
import type { Store } from './store.ts'

interface AccountsOptions {
  /** By default one of its own: what waits to be hashed for others does not delay it. */
  readonly hasher?: PasswordHasher
  readonly wallMs?: () => number
  /** The abilities that operations require; without it, any may be given. */
  readonly abilities?: Iterable<string | undefined> | undefined
}

/** A user as others may see it. */
export type PublicUser = Pick<User, 'id' | 'email' | 'name'>

/** A user as the operator sees it. */
export type ListedUser = PublicUser & Pick<User, 'abilities'>

/** A token as the operator sees it; its id is the beginning of its hash. */
export type ListedToken = Omit<Token, 'user'> & { readonly id: string, readonly email: string }

/** A token just issued: its text is known only now. */
export interface Issued {
  readonly token: string
  /** What it may do. */
  readonly abilities: readonly string[]
  readonly user: PublicUser
  readonly expires: string | null
}

const TOKEN: RegExp = /^pes_[A-Za-z0-9_-]{43}$/
const TOKEN_BYTES = 32
const BEYOND_USER = new Failure('input-invalid', 'a token may do no more than its user; user list shows what that is')

/** Finds what a command is about, in the state that the command is decided on. */
type Find<T> = (state: State) => T | undefined

/** E-mail addresses are compared without case. */
function normalized(email: string): string { return email.toLowerCase() }

function byAddress(email: string): Find<User> {
  shaped(ADDRESS_SHAPE, { email })
  return state => userOf(state, normalized(email))
}

/** The user whose password was checked, unless removed or given another one since. */
function stillAs({ id, passwords }: User): Find<User> {
  return ({ users }) => {
    const now = users.get(id)
    return now?.passwordHash !== undefined && now.passwords === passwords ? now : undefined
  }
}

/**
 * All writes reject with `input-invalid` for what breaks a rule, for every caller, and with the failures of
 * `CommitLoop.commit`; those that hash a password also with `hashes-busy`.
 */
export class Accounts {
  readonly #store: Store
  readonly #hasher: PasswordHasher
  readonly #wallMs: () => number
  readonly #abilities: readonly string[] | undefined

  constructor(store: Store, { hasher, wallMs, abilities }: AccountsOptions = {}) {
    this.#store = store
    this.#hasher = hasher ?? new PasswordHasher(randomBytes)
    this.#wallMs = wallMs ?? Date.now
    this.#abilities = abilities && [...abilities].filter(one => one !== undefined)
  }

  get #state(): CommittedState { return this.#store.state }

  /** Undefined if the address is taken. Without a name it is the address; without abilities the user may do nothing. */
  async addUser(
    email: string, name: string | undefined, abilities: readonly string[] | undefined, password: string
  ): Promise<ListedUser | undefined> {
    const given = shaped(USER_SHAPE, { email, name, abilities, password })
    assertKnown(given.abilities ?? [], this.#abilities)
    const passwordHash = await this.#hash(email, password)
    return this.#store.commit<ListedUser | undefined>(state => {
      const address = normalized(email)
      if (userOf(state, address) !== undefined) return { outcome: () => undefined }
      const id = state.users.size + 1
      const user = { id, email: address, name: given.name ?? email, abilities: given.abilities ?? [] }
      return {
        event: event('user.added', null, { ...user, passwordHash }),
        outcome: ({ users }) => listed(users.get(id)!)
      }
    })
  }

  /** Gives a user a new password and ends the user's tokens; false for an unknown address. */
  async setPassword(email: string, password: string): Promise<boolean> {
    const passwordHash = await this.#hash(email, password)
    return this.#record(byAddress(email), ({ id }) => event('password.changed', null, { id, passwordHash }))
  }

  /** The same by the user, who gives the current password; false if that is wrong. Clients wait as in `login`. */
  async changePassword(by: Session, current: string, password: string, client?: HashClient): Promise<boolean> {
    const id = by.user
    const user = this.#state.users.get(id)
    const { isRight } = await this.#hasher.verify(current, user?.passwordHash, client)
    if (!isRight || user === undefined) return false
    assertPassword(user.email, password)
    const passwordHash = await this.#hasher.hash(password, client)
    return this.#record(stillAs(user), () => event('password.changed', id, { id, passwordHash }), by)
  }

  /** Removes a user and ends the user's tokens; false for an unknown address. */
  async removeUser(email: string): Promise<boolean> {
    return this.#record(byAddress(email), ({ id }) => event('user.removed', null, { id }))
  }

  /** Gives a user another name or other abilities, and the user's tokens no more; false for an unknown address. */
  async changeUser(
    email: string, name: string | undefined, abilities: readonly string[] | undefined
  ): Promise<boolean> {
    const given = shaped(CHANGE_SHAPE, { email, name, abilities })
    assertKnown(given.abilities ?? [], this.#abilities)
    const changes = {
      ...given.name !== undefined && { name: given.name }, ...given.abilities && { abilities: given.abilities }
    }
    return this.#record(byAddress(email), ({ id }) => event('user.changed', null, { id, ...changes }))
  }

  /** Ends all tokens of a user (contract §5.7); false for an unknown address. */
  async revokeAll(email: string): Promise<boolean> {
    return this.#record(byAddress(email), ({ id }) => event('tokens.revoked', null, { user: id }))
  }

  /** Ends a token (contract §5.7); false if there is none of this hash. */
  revoke(hash: string, by: number | null): Promise<boolean> {
    return this.#record(({ tokens }) => tokens.get(hash), () => event('token.revoked', by, { hash }))
  }

  /** Ends the token with this id, which is the beginning of its hash; false if there is none. */
  revokeToken(id: string): Promise<boolean> {
    const find: Find<string> = ({ tokens }) => { // all committed ones as they are when it is decided
      for (const [hash] of this.#state.tokens.entries()) {
        if (tokenId(hash) === id && tokens.get(hash) !== undefined) return hash
      }
      return undefined
    }
    return this.#record(find, hash => event('token.revoked', null, { hash }))
  }

  /** Issues a token; `abilities` undefined: the user's own, and never more; `ttlMinutes` undefined: it does not end. */
  async issue(
    email: string, abilities: readonly string[] | undefined, ttlMinutes: number | undefined
  ): Promise<Issued | undefined> {
    const given = shaped(TOKEN_SHAPE, { email, abilities, ttlMinutes })
    assertKnown(given.abilities ?? [], this.#abilities)
    return this.#issue(byAddress(email), given.abilities, given.ttlMinutes, null)
  }

  /**
   * Checks a password and issues a token (contract §5.3); undefined, after the same time, for a wrong one and an
   * unknown user. Waiting clients take turns.
   */
  async login(
    email: string, password: string, ttlMinutes: number | undefined, client?: HashClient
  ): Promise<Issued | undefined> {
    const user = userOf(this.#state, normalized(email))
    const { isRight, isOutdated } = await this.#hasher.verify(password, user?.passwordHash, client)
    if (!isRight || user === undefined) return undefined
    const issued = await this.#issue(stillAs(user), undefined, ttlMinutes, user.id)
    if (isOutdated) await this.#rehash(user, password, client)
    return issued
  }

  /** The user and token of a bearer token; undefined if it is unknown, revoked or expired. */
  session(token: string): Session | undefined {
    if (!TOKEN.test(token)) return undefined
    const hash = hashOfToken(token)
    const found = this.#state.tokens.get(hash)
    if (found === undefined || isExpired(found, this.#wallMs())) return undefined
    return { user: found.user, hash, abilities: found.abilities }
  }

  /** The users that were not removed. */
  users(): ListedUser[] {
    return Array.from(this.#state.users.entries(), ([, user]) => user).filter(user => user.passwordHash !== undefined)
      .map(listed)
  }

  /** The tokens that have not expired. */
  tokens(): ListedToken[] {
    return this.liveTokens().map(({ hash, user, abilities, ...token }) => ({
      id: tokenId(hash), email: this.#state.users.get(user)!.email, abilities: [...abilities], ...token
    }))
  }

  /** The same, each as it is kept. */
  liveTokens(): (Token & { readonly hash: string })[] {
    const nowMs = this.#wallMs()
    return Array.from(this.#state.tokens.entries(), ([hash, token]) => ({ hash, ...token }))
      .filter(token => !isExpired(token, nowMs))
  }

  async #hash(email: string, password: string): Promise<string> {
    assertPassword(email, password)
    return this.#hasher.hash(password)
  }

  /** Records an event about what is found; false where nothing is. */
  #record<T>(find: Find<T>, eventOf: (found: T) => Event, by?: Session): Promise<boolean> {
    return this.#store.commit(state => {
      const found = find(state)
      return { event: found && eventOf(found), outcome: () => found !== undefined }
    }, by)
  }

  /** Renews a hash at today's cost. A login does not fail if this fails: the next one tries again. */
  async #rehash({ id, passwordHash: old }: User, password: string, client: HashClient | undefined): Promise<void> {
    try {
      const passwordHash = await this.#hasher.hash(password, client)
      await this.#record(({ users }) => users.get(id)?.passwordHash === old ? id : undefined,
        () => event('password.rehashed', id, { id, passwordHash }))
    } catch (error) {
      if (!(error instanceof Failure)) throw error
    }
  }

  async #issue(
    find: Find<User>, abilities: readonly string[] | undefined, ttlMinutes: number | undefined, by: number | null
  ): Promise<Issued | undefined> {
    const token = `pes_${randomBytes(TOKEN_BYTES).toString('base64url')}`
    const hash = hashOfToken(token)
    return this.#store.commit<Issued | undefined>(state => {
      const user = find(state)
      if (user === undefined) return { outcome: () => undefined }
      if (abilities?.every(ability => hasAbility(user.abilities, ability)) === false) throw BEYOND_USER
      const nowMs = this.#wallMs()
      const expires = ttlMinutes === undefined ? null : new Date(nowMs + ttlMinutes * 60_000).toISOString()
      const { id, email, name } = user
      return {
        event: event('token.issued', by, {
          hash, user: id, abilities: abilities ?? user.abilities, issued: new Date(nowMs).toISOString(), expires
        }),
        outcome: ({ tokens }) => {
          const { abilities, expires } = tokens.get(hash)!
          return { token, abilities: [...abilities], user: { id, email, name }, expires }
        }
      }
    })
  }
}

/** With a list of its own, as everything that is given out: who changes that changes nobody's abilities. */
function listed({ id, email, name, abilities }: User): ListedUser {
  return { id, email, name, abilities: [...abilities] }
}

export function hashOfToken(token: string): string { return hash('sha256', token, 'hex') }
