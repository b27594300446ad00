/** Users and their tokens (contract §5). */
import type { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { Failure } from '../errors.ts'
import type { PasswordHasher } from './password.ts'
import { ANY_ABILITY, fact, type Token, type User } from './record.ts'
import { userOf, type Commit, type State } from './state.ts'

/** What accounts need from outside. */
export interface AccountsOptions {
  readonly hasher: PasswordHasher
  /** For passwords that the operator sets, if not the same: a flood of logins should not keep those waiting. */
  readonly operatorHasher?: PasswordHasher
  /** Bytes that nobody can foresee. */
  readonly random: (bytes: number) => Buffer
  /** The wall clock, milliseconds since 1970. */
  readonly wallMs: () => number
}

/** A user as others may see it. */
export type PublicUser = Pick<User, 'id' | 'email' | 'name'>

/** A user as the operator sees it. */
export type ListedUser = PublicUser & Pick<User, 'abilities'>

/** Who a request comes from. */
export interface Session {
  readonly user: number
  /** The hash of the token. */
  readonly hash: string
  readonly abilities: readonly string[]
}

/** A token as the operator sees it; its id is the beginning of its hash. */
export type ListedToken = Omit<Token, 'user'> & { readonly id: string, readonly email: string }

/** A token just issued: the only moment at which its text is known. */
export interface Issued {
  readonly token: string
  readonly user: PublicUser
  readonly expires: string | null
}

/** What a token looks like. */
export const TOKEN: RegExp = /^pes_[A-Za-z0-9_-]{43}$/
const TOKEN_BYTES = 32
const TOKEN_ID_DIGITS = 12

/** The id of a token, by which logs and the operator call it. */
export function tokenId(hash: string): string { return hash.slice(0, TOKEN_ID_DIGITS) }

/** Whether abilities cover one. */
export function isAble(abilities: readonly string[], ability: string): boolean {
  return abilities.includes(ability) || abilities.includes(ANY_ABILITY)
}

/** E-mail addresses are compared without case. */
function normalized(email: string): string { return email.toLowerCase() }

/** All writes reject with the failures of `Journal.commit`; those that hash a password also with `hashes-busy`. */
export class Accounts {
  readonly #state: State
  readonly #commit: Commit
  readonly #options: AccountsOptions

  constructor(state: State, commit: Commit, options: AccountsOptions) {
    this.#state = state
    this.#commit = commit
    this.#options = options
  }

  /** Adds a user; undefined if the address is taken. */
  async addUser(
    email: string, name: string, abilities: readonly string[], password: string
  ): Promise<ListedUser | undefined> {
    const passwordHash = await this.#hash(password)
    return this.#commit<ListedUser | undefined>(state => {
      if (userOf(state, normalized(email)) !== undefined) return { outcome: undefined }
      const user = { id: state.users.size + 1, email: normalized(email), name, abilities }
      return { outcome: user, fact: fact('user.added', null, { ...user, passwordHash }) }
    })
  }

  /** Gives a user a new password and ends the user's tokens; false for an unknown address. */
  async setPassword(email: string, password: string): Promise<boolean> {
    const passwordHash = await this.#hash(password)
    return this.#change(email, user => fact('password.changed', null, { id: user.id, passwordHash }))
  }

  /** Removes a user and ends the user's tokens; false for an unknown address. */
  removeUser(email: string): Promise<boolean> {
    return this.#change(email, user => fact('user.removed', null, { id: user.id }))
  }

  /** Ends all tokens of a user; false for an unknown address. */
  revokeAll(email: string): Promise<boolean> {
    return this.#change(email, user => fact('tokens.revoked', null, { user: user.id }))
  }

  /** Ends a token; false if there is none of this hash. */
  revoke(hash: string, by: number | null): Promise<boolean> {
    return this.#commit(state => state.tokens.get(hash) === undefined
      ? { outcome: false }
      : { outcome: true, fact: fact('token.revoked', by, { hash }) })
  }

  /** Ends the token with this id, which is the beginning of its hash; false if there is none. */
  async revokeToken(id: string): Promise<boolean> {
    for (const [hash] of this.#state.tokens.entries()) if (tokenId(hash) === id) return this.revoke(hash, null)
    return false
  }

  /** Issues a token; `abilities` undefined: the user's own; `ttlMinutes` undefined: it does not end. */
  issue(
    email: string, abilities: readonly string[] | undefined, ttlMinutes: number | undefined
  ): Promise<Issued | undefined> {
    return this.#issue(state => userOf(state, normalized(email)), abilities, ttlMinutes, null)
  }

  /** Checks a password and issues a token; undefined, after the same time, for a wrong one and an unknown user. */
  async login(email: string, password: string, ttlMinutes: number | undefined): Promise<Issued | undefined> {
    const { hasher } = this.#options
    const user = userOf(this.#state, normalized(email))
    const { isRight, isOutdated } = await hasher.verify(password, user?.passwordHash)
    if (!isRight || user === undefined) return undefined
    // The user may have been removed, or been given another password, while this one was checked.
    const issued = await this.#issue(state => {
      const now = state.users.get(user.id)
      return now?.passwordHash !== undefined && now.passwords === user.passwords ? now : undefined
    }, undefined, ttlMinutes, user.id)
    if (isOutdated) await this.#rehash(user, password)
    return issued
  }

  /** Who a token belongs to; undefined if it is none, was revoked, or has expired. */
  session(token: string): Session | undefined {
    if (!TOKEN.test(token)) return undefined
    const hash = hashOfToken(token)
    const found = this.#state.tokens.get(hash)
    if (found === undefined || isExpired(found, this.#options.wallMs())) return undefined
    return { user: found.user, hash, abilities: found.abilities }
  }

  /** Drops expired tokens from memory. */
  sweep(): void {
    const nowMs = this.#options.wallMs()
    for (const [hash, token] of [...this.#state.tokens.entries()]) {
      if (isExpired(token, nowMs)) this.#state.tokens.delete(hash)
    }
  }

  /** The users that were not removed. */
  users(): ListedUser[] {
    return [...this.#state.users.entries()].map(([, user]) => user).filter(user => user.passwordHash !== undefined)
      .map(({ id, email, name, abilities }) => ({ id, email, name, abilities }))
  }

  /** The tokens that have not expired. */
  tokens(): ListedToken[] {
    const nowMs = this.#options.wallMs()
    return [...this.#state.tokens.entries()].filter(([, token]) => !isExpired(token, nowMs))
      .map(([hash, { user, ...token }]) => ({ id: tokenId(hash), email: this.#state.users.get(user)!.email, ...token }))
  }

  /** Throws unless every token belongs to a user who stands. */
  check(): void {
    const users = this.users()
    for (const [hash, token] of this.#state.tokens.entries()) {
      if (!users.some(user => user.id === token.user)) throw new Error(`token ${tokenId(hash)} belongs to nobody`)
    }
  }

  #hash(password: string): Promise<string> {
    const { hasher, operatorHasher = hasher } = this.#options
    return operatorHasher.hash(password)
  }

  #change(email: string, factOf: (user: User) => ReturnType<typeof fact>): Promise<boolean> {
    return this.#commit(state => {
      const user = userOf(state, normalized(email))
      return user === undefined ? { outcome: false } : { outcome: true, fact: factOf(user) }
    })
  }

  /** Brings a hash up to today's cost. A login does not fail over it: the next one will try again. */
  async #rehash(user: User, password: string): Promise<void> {
    try {
      const passwordHash = await this.#options.hasher.hash(password)
      await this.#commit(state => state.users.get(user.id)?.passwordHash === user.passwordHash
        ? { outcome: undefined, fact: fact('password.rehashed', user.id, { id: user.id, passwordHash }) }
        : { outcome: undefined })
    } catch (error) {
      if (!(error instanceof Failure)) throw error
    }
  }

  #issue(
    find: (state: State) => User | undefined, abilities: readonly string[] | undefined,
    ttlMinutes: number | undefined, by: number | null
  ): Promise<Issued | undefined> {
    const token = `pes_${this.#options.random(TOKEN_BYTES).toString('base64url')}`
    return this.#commit<Issued | undefined>(state => {
      const user = find(state)
      if (user === undefined) return { outcome: undefined }
      const nowMs = this.#options.wallMs()
      const expires = ttlMinutes === undefined ? null : new Date(nowMs + ttlMinutes * 60_000).toISOString()
      const { id, email, name } = user
      return {
        outcome: { token, user: { id, email, name }, expires },
        fact: fact('token.issued', by, {
          hash: hashOfToken(token), user: id, abilities: abilities ?? user.abilities,
          issued: new Date(nowMs).toISOString(), expires
        })
      }
    })
  }
}

function hashOfToken(token: string): string { return hash('sha256', token, 'hex') }

function isExpired(token: Token, nowMs: number): boolean {
  return token.expires !== null && Date.parse(token.expires) <= nowMs
}
