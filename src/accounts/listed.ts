/** Users and tokens as they are shown. */
import type { State } from '../store/state.ts'
import {
  isExpired,
  tokenId,
  type Groups,
  type Session,
  type Token,
  type User
} from '../rights/rights.ts'

/** A user as clients see it. */
export type PublicUser = Pick<User, 'id' | 'email' | 'name'>

export type OwnUser = PublicUser & {
  readonly secondFactor: boolean
  readonly hasPassword: boolean
  /** As long as the password is the one that the operator's program made. */
  readonly firstPassword?: true
}

/** A user as the operator sees it; without `groups`: all of them. */
export type ListedUser = PublicUser &
  Pick<User, 'abilities' | 'groups'> & {
    readonly secondFactor?: true
    readonly hasNoPassword?: true
    /** By a salvage, until the user is given another password, or none. */
    readonly isLocked?: true
  }

/** A token as the operator sees it; `id` begins its hash; without `groups`: all of them. */
export interface ListedToken extends Pick<Token, 'abilities' | 'groups' | 'issued' | 'expires'> {
  readonly id: string
  readonly email: string
  readonly name: string | null
  /** ISO 8601; null: not used since the start. */
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

export type LoggedIn = Issued & { readonly user: OwnUser }

/** A token as its user sees it: the operator's name for it, or `login`. */
export interface OwnSession {
  readonly id: string
  readonly name: string
  readonly issued: string
  readonly current: boolean
}

export function groupsIn(groups: Groups): { readonly groups?: readonly string[] } {
  return groups === undefined ? {} : { groups: [...groups] }
}

export function groupsOf({ user, groups }: Token, users: State['users']): Groups {
  return groups ?? users.get(user)!.groups
}

export function listed({
  id,
  email,
  name,
  abilities,
  groups,
  factor,
  passwordHash,
  isLocked
}: Omit<User, 'passwords'>): ListedUser {
  return {
    id,
    email,
    name,
    abilities: [...abilities],
    ...groupsIn(groups),
    ...(factor !== undefined && { secondFactor: true }),
    ...(isLocked ? { isLocked } : passwordHash === undefined && { hasNoPassword: true })
  }
}

export function ownUser({ id, email, name, factor, passwordHash, firstPassword }: User): OwnUser {
  return {
    id,
    email,
    name,
    secondFactor: factor !== undefined,
    hasPassword: passwordHash !== undefined,
    ...(firstPassword && { firstPassword })
  }
}

export function listedUsers({ users }: State): ListedUser[] {
  return [...users.values()].filter(({ isRemoved }) => isRemoved !== true).map(listed)
}

export function listedTokens({ tokens, users }: State, nowMs: number): ListedToken[] {
  return [...tokens]
    .filter(([, token]) => !isExpired(token, nowMs))
    .map(([hash, token]) => {
      const { user, abilities, issued, expires, name = null, usedMs } = token
      const lastUsed = usedMs === undefined ? null : new Date(usedMs).toISOString()
      const { email } = users.get(user)!
      const rights = { abilities: [...abilities], ...groupsIn(groupsOf(token, users)) }
      return { id: tokenId(hash), email, name, ...rights, issued, expires, lastUsed }
    })
}

export function ownSessions(
  { tokens }: State,
  { user, hash }: Session,
  nowMs: number
): OwnSession[] {
  return [...tokens]
    .filter(([, token]) => token.user === user && !isExpired(token, nowMs))
    .map(([own, { name, isOfLogin, issued }]) => ({
      id: tokenId(own),
      name: isOfLogin === true ? 'login' : (name ?? 'token'),
      issued,
      current: own === hash
    }))
}

/**
 * The hash of the token with that id; with `others`, of all logins before the one that asks. Newer
 * logins go on: otherwise a stolen session could end each login of its owner.
 */
export function namedSessions(
  { tokens }: State,
  { user, hash }: Session,
  session: string
): readonly string[] | 'unknown' | 'newer' {
  // In the order in which they were issued.
  const own = [...tokens].filter(([, token]) => token.user === user)
  const place = own.findIndex(([one]) => one === hash)
  if (session === 'others')
    return own.slice(0, place).flatMap(([one, { isOfLogin }]) => (isOfLogin ? [one] : []))
  const at = own.findIndex(([one]) => tokenId(one) === session)
  if (at < 0) return 'unknown'
  const [named, { isOfLogin }] = own[at]!
  return isOfLogin && at > place ? 'newer' : [named]
}
