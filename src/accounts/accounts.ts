/** Users and their tokens (contract §5). */
import { hash, randomBytes } from 'node:crypto'
import type { EncodedEvent } from '../journal/journal.ts'
import { MAX_WRONG_CODES } from '../limits.ts'
import {
  ADDRESS_SHAPE,
  assertPassword,
  CHANGE_SHAPE,
  TOKEN_SHAPE,
  type Abilities,
  type GivenGroups,
  type NewUser
} from './account-shapes.ts'
import { event } from '../store/event.ts'
import { GroupNames, spelledIn } from '../rights/groups.ts'
import {
  beyondBound,
  groupsIn,
  groupsOf,
  listed,
  listedTokens,
  listedUsers,
  ownSessions,
  ownUser,
  type Issued,
  type ListedToken,
  type ListedUser,
  type LoggedIn,
  type OwnSession
} from './listed.ts'
import {
  KnownClients,
  stepOfCode,
  stillAs,
  stillVouched,
  vouchedUser,
  WrongCodes,
  type Login
} from './logins.ts'
import { PasswordHasher } from './passwords.ts'
import type { State } from '../store/state.ts'
import type { Commits } from '../store/store.ts'
import {
  addressOf,
  ANY_ABILITY,
  covers,
  invalid,
  isExpired,
  loginBy,
  sees,
  tokenId,
  type Asked,
  type Session,
  type User
} from '../rights/rights.ts'
import { shaped } from '../rights/validate.ts'

interface AccountsOptions {
  readonly hasher?: PasswordHasher
  readonly wallMs?: () => number
  /** If missing, any ability may be given. */
  readonly abilities?: Iterable<Asked> | undefined
  /** Of tokens from logins; a login ends up to two beyond it, the oldest. */
  readonly tokensPerUser?: number
  readonly warn?: (line: string) => void
}

const TOKEN: RegExp = /^pes_[A-Za-z0-9_-]{43}$/
const TOKEN_BYTES = 32
const WRONG_CODE = 'wrong code'

export function hashOfToken(token: string): string {
  return hash('sha256', token, 'hex')
}

/** Throws `input-invalid`. */
function byAddress(email: string): (state: State) => User | undefined {
  shaped(ADDRESS_SHAPE, { email })
  return state => state.userOf(email)
}

/**
 * Writes reject with `input-invalid` and as `Store.commit`; with a password also with
 * `hashes-busy`.
 */
export class Accounts {
  readonly #store: Commits
  readonly #hasher: PasswordHasher
  readonly #wallMs: () => number
  readonly #abilities: Abilities
  readonly #tokensPerUser: number
  readonly #warn: (line: string) => void
  readonly #knownClients = new KnownClients()
  readonly #wrongCodes = new WrongCodes()

  constructor(
    store: Commits,
    {
      hasher = new PasswordHasher(),
      wallMs = Date.now,
      abilities,
      tokensPerUser = Infinity,
      warn = () => {}
    }: AccountsOptions = {}
  ) {
    this.#store = store
    this.#hasher = hasher
    this.#wallMs = wallMs
    this.#tokensPerUser = tokensPerUser
    this.#warn = warn
    this.#abilities = abilities && [...abilities].flatMap(asked => asked ?? [])
  }

  get #state(): State {
    return this.#store.state
  }

  /**
   * Undefined if the address is taken. The name defaults to the address, the abilities to none,
   * `groups` to all. `isMade`: a program made the password; logins say so until it is changed.
   */
  async addUser(
    email: string,
    name: string | undefined,
    abilities: Abilities,
    password: string | null,
    groups?: GivenGroups,
    isMade: boolean = false
  ): Promise<ListedUser | undefined> {
    return (await this.addUsers([{ email, name, abilities, groups, password }], isMade))[0]
  }

  /** All in one write. Gives none if one of the addresses is taken. */
  async addUsers(wanted: readonly NewUser[], isMade: boolean): Promise<readonly ListedUser[]> {
    const users: (Omit<NewUser, 'password'> & { passwordHash: string | undefined })[] = []
    for (const { password, ...one } of wanted) {
      const given = shaped(CHANGE_SHAPE, one)
      this.assertKnown(given.abilities)
      const passwordHash = password === null ? undefined : await this.#hash(one.email, password)
      users.push({ ...given, passwordHash })
    }
    return this.#store.commitAlone<readonly ListedUser[]>(() => {
      if (users.some(({ email }) => this.#state.userOf(email) !== undefined)) return [[], []]
      const names = new GroupNames(this.#state.names)
      const made = users.map(({ email, name, abilities, groups, passwordHash }, i) => ({
        id: this.#state.users.size + 1 + i,
        email: addressOf(email),
        name: name ?? email,
        abilities: abilities ?? [],
        ...groupsIn(spelledIn(names, groups) ?? undefined),
        passwordHash
      }))
      const events = made.map(({ passwordHash, ...user }) =>
        event('user.added', null, { ...user, ...loginBy(passwordHash, isMade) })
      )
      return [events, made.map(listed)]
    })
  }

  /** Ends the user's tokens; false for an unknown address. Null takes the password away. */
  async setPassword(email: string, password: string | null): Promise<boolean> {
    const passwordHash = password === null ? undefined : await this.#hash(email, password)
    return this.#record(byAddress(email), ({ id }) =>
      event('password.changed', null, { id, ...loginBy(passwordHash) })
    )
  }

  /** As `setPassword`; false if the current password is wrong. */
  async changePassword(by: Session, current: string, password: string): Promise<boolean> {
    const id = by.user
    const user = this.#state.users.get(id)
    const isRight = await this.#hasher.verify(current, user?.passwordHash)
    if (!isRight || user === undefined) return false
    const passwordHash = await this.#hash(user.email, password)
    // Another change of the password, or a removal, would have ended the token of `by`.
    return this.#record(
      () => user,
      () => event('password.changed', id, { id, passwordHash }),
      by
    )
  }

  /** Ends the user's tokens; false for an unknown address. */
  async removeUser(email: string): Promise<boolean> {
    return this.#record(byAddress(email), ({ id }) => event('user.removed', null, { id }))
  }

  /**
   * What is undefined stays; null `groups` are all. Narrows the user's tokens, those with fewer
   * groups for good. False for an unknown address.
   */
  async changeUser(
    email: string,
    name: string | undefined,
    abilities: Abilities,
    groups?: GivenGroups
  ): Promise<boolean> {
    const { email: _, ...changes } = shaped(CHANGE_SHAPE, { email, name, abilities, groups })
    this.assertKnown(changes.abilities)
    return this.#record(byAddress(email), ({ id }) =>
      event('user.changed', null, { id, ...changes, groups: this.#spelled(changes.groups) })
    )
  }

  /** Ends all tokens of a user (contract §5.7); false for an unknown address. */
  async revokeAll(email: string): Promise<boolean> {
    return this.#record(byAddress(email), ({ id }) => event('tokens.revoked', null, { user: id }))
  }

  /** Ends a token (contract §5.7); false for an unknown hash. */
  revoke(hash: string, by: number | null): Promise<boolean> {
    return this.#record(
      ({ tokens }) => tokens.get(hash),
      () => event('token.revoked', by, { hash })
    )
  }

  revokeToken(id: string): Promise<boolean> {
    return this.#record(
      ({ tokens }) => [...tokens.keys()].find(hash => tokenId(hash) === id),
      hash => event('token.revoked', null, { hash })
    )
  }

  /**
   * Undefined for an unknown address. `abilities` default to the user's, `groups` to the user's at
   * any time; without `ttlMinutes` it never expires.
   */
  async issue(
    email: string,
    abilities: Abilities,
    ttlMinutes: number | undefined,
    name?: string,
    groups?: GivenGroups
  ): Promise<Issued | undefined> {
    const given = shaped(TOKEN_SHAPE, { email, abilities, ttlMinutes, name, groups })
    this.assertKnown(given.abilities)
    const issued = await this.#issue(byAddress(email), given, given.ttlMinutes, null)
    if (issued === undefined) return undefined
    const { id, email: address, name: shown } = issued.user
    return { ...issued, user: { id, email: address, name: shown } }
  }

  /**
   * Issues a token (contract §5.3). Undefined for an unknown user, a wrong password, and a code
   * that is wrong, missing or used: each after the same time, so that nobody learns that a password
   * is right.
   */
  async login(
    { email, password, code, client }: Login,
    ttlMinutes: number | undefined
  ): Promise<LoggedIn | undefined> {
    const user = this.#state.userOf(email)
    const isRight = await this.#hasher.verify(
      password,
      user?.passwordHash,
      this.#knownClients.has(client)
    )
    const judge = (state: State): User | typeof WRONG_CODE | undefined => {
      const now = isRight && user !== undefined ? stillAs(user)(state) : undefined
      const nowMs = this.#wallMs()
      // the same work, whatever is wrong
      const step = stepOfCode(now?.factor, now?.step, code, nowMs)
      if (now?.factor === undefined) return now
      if (step === undefined) return code === undefined ? undefined : WRONG_CODE
      return this.#wrongCodes.isRefused(now.id, nowMs) ? undefined : { ...now, step }
    }
    const issued = await this.#issue(judge, {}, ttlMinutes, user?.id ?? null)
    if (issued !== WRONG_CODE) return issued
    if (this.#wrongCodes.add(user!.id, this.#wallMs())) {
      this.#warn(
        `${user!.email}: ${MAX_WRONG_CODES} wrong codes with the right password within an hour. ` +
          'This user’s codes are refused for an hour. If it was not the user: user password gives another password'
      )
    }
    return undefined
  }

  /**
   * For whom a trusted proxy or host vouches: without password and code. Undefined for an unknown
   * or locked user.
   */
  async loginVouched(email: string, ttlMinutes: number): Promise<LoggedIn | undefined> {
    const user = vouchedUser(this.#state, email)
    return user && this.#issue(stillVouched(user), {}, ttlMinutes, user.id)
  }

  /** Whose address it is, for the log. */
  idOf(email: string): number | undefined {
    return this.#state.userOf(email)?.id
  }

  /**
   * A second factor for logins: `factor` is its secret in base32, `code` its present code, which
   * counts as used. False for an unknown address. Rejects with `input-invalid` for another code.
   */
  async giveFactor(email: string, factor: string, code: string): Promise<boolean> {
    const step = stepOfCode(factor, undefined, code, this.#wallMs())
    if (step === undefined) throw invalid('code', 'the code is not the present one of this secret')
    return this.#record(byAddress(email), ({ id }) =>
      event('factor.given', null, { id, factor, step })
    )
  }

  /** False for an unknown address. */
  removeFactor(email: string): Promise<boolean> {
    return this.#record(byAddress(email), ({ id }) => event('factor.removed', null, { id }))
  }

  /** `others`: all logins but the one that asks, and no program's token. False for an unknown id. */
  async endSessions(by: Session, session: string): Promise<boolean> {
    return this.#store.commitAlone(() => {
      const own = [...this.#state.tokens].filter(([, { user }]) => user === by.user)
      const ended = own.filter(([hash, { isOfLogin }]) =>
        session === 'others' ? isOfLogin && hash !== by.hash : tokenId(hash) === session
      )
      return [
        ended.map(([hash]) => event('token.revoked', by.user, { hash })),
        session === 'others' || ended.length > 0
      ]
    }, by)
  }

  /** Undefined if the token is unknown, revoked or expired. `client`: as in `Login`. */
  session(token: string, client?: string): Session | undefined {
    if (!TOKEN.test(token)) return undefined
    const hash = hashOfToken(token)
    const found = this.#state.tokens.get(hash)
    const nowMs = this.#wallMs()
    if (found === undefined || isExpired(found, nowMs)) return undefined
    found.usedMs = nowMs
    const { user, abilities } = found
    if (client !== undefined) this.#knownClients.add(client)
    return { user, hash, token: found, abilities, groups: groupsOf(found, this.#state.users) }
  }

  users(): ListedUser[] {
    return listedUsers(this.#state)
  }

  tokens(): ListedToken[] {
    return listedTokens(this.#state, this.#wallMs())
  }

  emailOf({ user }: Session): string {
    return this.#state.users.get(user)?.email ?? ''
  }

  /** The tokens of logins of the sender, and those that the operator gave. */
  sessions(by: Session): OwnSession[] {
    return ownSessions(this.#state, by, this.#wallMs())
  }

  assertKnown(wanted: readonly string[] = []): void {
    const known = this.#abilities
    if (known === undefined || wanted.every(one => one === ANY_ABILITY || known.includes(one)))
      return
    throw invalid(
      'abilities',
      `an ability must be one of ${[ANY_ABILITY, ...new Set(known)].join(', ')}`
    )
  }

  #spelled<G extends GivenGroups>(groups: G): G | readonly string[] {
    return spelledIn(new GroupNames(this.#state.names), groups)
  }

  async #hash(email: string, password: string): Promise<string> {
    assertPassword(email, password)
    return this.#hasher.hash(password)
  }

  #record<T>(
    find: (state: State) => T | undefined,
    eventOf: (found: T) => EncodedEvent,
    by?: Session
  ): Promise<boolean> {
    return this.#store.commitAlone(() => {
      const found = find(this.#state)
      return [found === undefined ? [] : [eventOf(found)], found !== undefined]
    }, by)
  }

  /** To the user that `judge` gives in its turn; otherwise gives its refusal. */
  async #issue<Refusal extends string | undefined>(
    judge: (state: State) => User | Refusal,
    wanted: {
      readonly abilities?: Abilities
      readonly groups?: GivenGroups
      readonly name?: string | undefined
    },
    ttlMinutes: number | undefined,
    by: number | null
  ): Promise<LoggedIn | Refusal> {
    const token = `pes_${randomBytes(TOKEN_BYTES).toString('base64url')}`
    let ended: readonly string[] = []
    const made = await this.#store.commitAlone<LoggedIn | Refusal>(() => {
      const user = judge(this.#state)
      if (typeof user !== 'object') return [[], user]
      if (wanted.abilities?.every(ability => covers(user.abilities, ability)) === false) {
        throw invalid(
          'abilities',
          'a token may do no more than its user; user list shows what that is'
        )
      }
      const groups = this.#spelled(wanted.groups) ?? undefined
      if (groups?.every(group => sees(user.groups, group)) === false) {
        throw invalid(
          'groups',
          'a token may see no more than its user; user list shows what that is'
        )
      }
      const nowMs = this.#wallMs()
      const expires =
        ttlMinutes === undefined ? null : new Date(nowMs + ttlMinutes * 60_000).toISOString()
      const abilities = [...(wanted.abilities ?? user.abilities)]
      const issued = new Date(nowMs).toISOString()
      const named = wanted.name === undefined ? {} : { name: wanted.name }
      const data = {
        hash: hashOfToken(token),
        user: user.id,
        abilities,
        ...groupsIn(groups),
        issued,
        expires,
        ...named,
        ...(by !== null && user.step !== undefined && { step: user.step })
      }
      ended = by === null ? [] : beyondBound(this.#state, user.id, this.#tokensPerUser, nowMs)
      return [
        [
          ...ended.map(hash => event('token.revoked', null, { hash })),
          event('token.issued', by, data)
        ],
        {
          token,
          abilities: [...abilities],
          ...groupsIn(groups ?? user.groups),
          user: ownUser(user),
          expires
        }
      ]
    })
    for (const hash of ended) {
      const beyond = `${(made as LoggedIn).user.email} has more than ${this.#tokensPerUser} tokens from logins`
      this.#warn(`${beyond}: ${tokenId(hash)}, the oldest, has ended`)
    }
    return made
  }
}
