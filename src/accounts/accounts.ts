/** Users and their tokens (contract §5). */
import type { EncodedEvent } from '../journal/journal.ts'
import { MAX_WRONG_CODES } from '../limits.ts'
import {
  ADDRESS_SHAPE,
  assertAbilities,
  assertPassword,
  CHANGE_SHAPE,
  TOKEN_SHAPE,
  type Abilities,
  type GivenGroups,
  type NewUser
} from './account-shapes.ts'
import { event } from '../store/events.ts'
import { GroupNames, spelledIn } from '../rights/groups.ts'
import {
  groupsIn,
  groupsOf,
  listed,
  listedTokens,
  listedUsers,
  ownSessions,
  namedSessions,
  ownUser,
  type Issued,
  type ListedToken,
  type ListedUser,
  type LoggedIn,
  type OwnSession
} from './listed.ts'
import {
  isAhead,
  KnownClients,
  stepOfCode,
  stillAs,
  vouchedUser,
  WrongCodes,
  type Login
} from './logins.ts'
import { PasswordHasher } from './passwords.ts'
import { beyondBound, hashOfToken, hasTokens, isToken, newToken } from './tokens.ts'
import type { State } from '../store/state.ts'
import type { Commits } from '../store/store.ts'
import {
  addressOf,
  covers,
  invalid,
  isExpired,
  loginBy,
  sees,
  tokenId,
  type NeededAbilities,
  type Session,
  type User
} from '../rights/rights.ts'
import { shaped } from '../rights/validate.ts'

interface AccountsOptions {
  readonly hasher?: PasswordHasher
  readonly wallMs?: () => number
  /** If missing, any ability may be given. */
  readonly abilities?: Iterable<NeededAbilities> | undefined
  /** A login ends up to two tokens of logins beyond it, the oldest. */
  readonly tokensPerUser?: number
  readonly warn?: (line: string) => void
}

const NO_MORE = 'no more than its user; user list shows what that is'

/** `refused`: why a code was refused although the password was right. */
interface Entered {
  readonly issued?: LoggedIn
  /** Hashes of older tokens. */
  readonly ended?: readonly string[]
  readonly user?: User
  readonly refused?: 'code' | 'ahead'
}

const REFUSED: readonly [readonly EncodedEvent[], Entered] = [[], {}]

function revoked(hash: string): EncodedEvent {
  return event('token.revoked', null, { hash })
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
   * `groups` to all.
   */
  async addUser(
    email: string,
    name: string | undefined,
    abilities: Abilities,
    password: string | null,
    groups?: GivenGroups
  ): Promise<ListedUser | undefined> {
    return (await this.addUsers([{ email, name, abilities, groups, password }], false))[0]
  }

  /**
   * All in one write. Gives none if one of the addresses is taken. `isMade`: a program made the
   * passwords; logins say so until they are changed.
   */
  async addUsers(wanted: readonly NewUser[], isMade: boolean): Promise<readonly ListedUser[]> {
    this.assertAddable(wanted)
    const users: (Omit<NewUser, 'password'> & { passwordHash: string | undefined })[] = []
    for (const { password, ...one } of wanted) {
      const given = shaped(CHANGE_SHAPE, one)
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

  /** What `addUsers` refuses, but for addresses that are taken. Throws `input-invalid`. */
  assertAddable(wanted: readonly NewUser[]): void {
    const names = new GroupNames(this.#state.names)
    for (const { password, ...one } of wanted) {
      const { abilities, groups } = shaped(CHANGE_SHAPE, one)
      assertAbilities(abilities, this.#abilities)
      if (password !== null) assertPassword(one.email, password)
      spelledIn(names, groups)
    }
  }

  /** Ends the user's tokens; false for an unknown address. Null takes the password away. */
  async setPassword(email: string, password: string | null): Promise<boolean> {
    const passwordHash = password === null ? undefined : await this.#hash(email, password)
    return this.#record(byAddress(email), ({ id, passwordHash: old, isLocked }) =>
      passwordHash || old || isLocked || hasTokens(this.#state, id)
        ? event('password.changed', null, { id, ...loginBy(passwordHash) })
        : undefined
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
   * Undefined: no change; null `groups`: all. Narrows the user's tokens; those that lose groups do
   * not get them back. False for an unknown address.
   */
  async changeUser(
    email: string,
    name: string | undefined,
    abilities: Abilities,
    groups?: GivenGroups
  ): Promise<boolean> {
    const { email: _, ...changes } = shaped(CHANGE_SHAPE, { email, name, abilities, groups })
    assertAbilities(changes.abilities, this.#abilities)
    return this.#record(byAddress(email), ({ id, name, abilities, groups = null }) => {
      const old = { name, abilities, groups }
      const wanted = { ...changes, groups: this.#spelled(changes.groups) }
      const isOther = (field: keyof typeof old): boolean =>
        wanted[field] !== undefined && JSON.stringify(wanted[field]) !== JSON.stringify(old[field])
      return isOther('name') || isOther('abilities') || isOther('groups')
        ? event('user.changed', null, { id, ...wanted })
        : undefined
    })
  }

  /** Ends all tokens of a user (contract §5.7); false for an unknown address. */
  async revokeAll(email: string): Promise<boolean> {
    return this.#record(byAddress(email), ({ id }) =>
      hasTokens(this.#state, id) ? event('tokens.revoked', null, { user: id }) : undefined
    )
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
      revoked
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
    assertAbilities(given.abilities, this.#abilities)
    const find = byAddress(email)
    return this.#store.commitAlone<Issued | undefined>(() => {
      const user = find(this.#state)
      if (user === undefined) return [[], undefined]
      const groups = this.#spelled(given.groups) ?? undefined
      if (given.abilities?.every(ability => covers(user.abilities, ability)) === false)
        throw invalid('abilities', `a token may do ${NO_MORE}`)
      if (groups?.every(group => sees(user.groups, group)) === false)
        throw invalid('groups', `a token may see ${NO_MORE}`)
      const [event, token] = newToken(user, null, this.#wallMs(), { ...given, groups })
      const { id, email, name } = user
      return [[event], { ...token, user: { id, email, name } }]
    })
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
    const isKnown = this.#knownClients.has(client)
    const isRight = await this.#hasher.verify(password, user?.passwordHash, isKnown)
    const made = await this.#store.commitAlone<Entered>(() => {
      const now = isRight && user !== undefined ? stillAs(user, this.#state) : undefined
      const nowMs = this.#wallMs()
      // the same work, whatever is wrong
      const step = stepOfCode(now?.factor, code, nowMs)
      if (now === undefined) return REFUSED
      if (now.factor === undefined) return this.#enter(now, ttlMinutes)

      if (code === undefined || this.#wrongCodes.isRefused(now, nowMs)) return REFUSED
      const isUsed = step !== undefined && step <= (now.step ?? -1)
      if (isUsed && isAhead(now, nowMs)) return [[], { user: now, refused: 'ahead' }]
      if (isUsed || step === undefined) return [[], { user: now, refused: 'code' }]
      return this.#enter(now, ttlMinutes, step)
    })
    if (made.refused !== undefined) this.#warnOfCode(made)
    return this.#entered(made)
  }

  /**
   * A login without password and code, for whom a trusted proxy or host vouches. Undefined for an
   * unknown or locked user.
   */
  async loginVouched(email: string, ttlMinutes: number): Promise<LoggedIn | undefined> {
    const user = vouchedUser(this.#state, email)
    if (user === undefined) return undefined
    const made = await this.#store.commitAlone<Entered>(() => {
      const now = stillAs(user, this.#state)
      return now === undefined || now.isLocked === true ? REFUSED : this.#enter(now, ttlMinutes)
    })
    return this.#entered(made)
  }

  idOf(email: string): number | undefined {
    return this.#state.userOf(email)?.id
  }

  /**
   * `factor`: the secret of the second factor, in base32; `code`: its present code, which counts as
   * used. False for an unknown address. Rejects with `input-invalid` for another code.
   */
  async giveFactor(email: string, factor: string, code: string): Promise<boolean> {
    const step = stepOfCode(factor, code, this.#wallMs())
    if (step === undefined) throw invalid('code', 'the code is not the present one of this secret')
    return this.#record(byAddress(email), ({ id }) =>
      event('factor.given', null, { id, factor, step })
    )
  }

  /** False for an unknown address. */
  removeFactor(email: string): Promise<boolean> {
    return this.#record(byAddress(email), ({ id, factor }) =>
      factor === undefined ? undefined : event('factor.removed', null, { id })
    )
  }

  /** `session`: as in `namedSessions`. */
  async endSessions(by: Session, session: string): Promise<'ended' | 'unknown' | 'newer'> {
    return this.#store.commitAlone(() => {
      const named = namedSessions(this.#state, by, session)
      if (typeof named === 'string') return [[], named]
      return [named.map(hash => event('token.revoked', by.user, { hash })), 'ended']
    }, by)
  }

  /** Undefined if the token is unknown, revoked or expired. `client`: as in `Login`. */
  session(token: string, client?: string): Session | undefined {
    if (!isToken(token)) return undefined
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

  #spelled<G extends GivenGroups>(groups: G): G | readonly string[] {
    return spelledIn(new GroupNames(this.#state.names), groups)
  }

  async #hash(email: string, password: string): Promise<string> {
    assertPassword(email, password)
    return this.#hasher.hash(password)
  }

  #record<T>(
    find: (state: State) => T | undefined,
    eventOf: (found: T) => EncodedEvent | undefined,
    by?: Session
  ): Promise<boolean> {
    return this.#store.commitAlone(() => {
      const found = find(this.#state)
      const change = found === undefined ? undefined : eventOf(found)
      return [change === undefined ? [] : [change], found !== undefined]
    }, by)
  }

  /** `step`: of the code that the login used, if there was one. */
  #enter(
    user: User,
    ttlMinutes: number | undefined,
    step?: number
  ): readonly [readonly EncodedEvent[], Entered] {
    const nowMs = this.#wallMs()
    const ended = beyondBound(this.#state, user.id, this.#tokensPerUser, nowMs)
    const [event, token] = newToken(user, user.id, nowMs, { ttlMinutes, step })
    return [[...ended.map(revoked), event], { issued: { ...token, user: ownUser(user) }, ended }]
  }

  #entered({ issued, ended = [] }: Entered): LoggedIn | undefined {
    for (const hash of ended) {
      const beyond = `${issued!.user.email} has more than ${this.#tokensPerUser} tokens from logins`
      this.#warn(`${beyond}: ${tokenId(hash)}, the oldest, has ended`)
    }
    return issued
  }

  #warnOfCode({ user, refused }: Entered): void {
    const { email } = user!
    const factor = 'user second-factor gives another factor'
    if (refused === 'ahead') {
      this.#warn(
        `${email}: a right code was refused, since the last one that was used lies ahead of ` +
          `the clock. If the clock was wrong then, ${factor}, which ends that`
      )
    } else if (this.#wrongCodes.add(user!, this.#wallMs())) {
      this.#warn(
        `${email}: ${MAX_WRONG_CODES} wrong codes with the right password within an hour. ` +
          `This user’s codes are refused for an hour. If it was not the user: ` +
          `${factor}, user password another password; each of the two ends that`
      )
    }
  }
}
