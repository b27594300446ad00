/** New tokens (contract §5.3): only a token's hash is kept. */
import { hash, randomBytes } from 'node:crypto'
import type { EncodedEvent } from '../journal/journal.ts'
import { event } from '../store/events.ts'
import type { State } from '../store/state.ts'
import { isExpired, type Groups, type User } from '../rights/rights.ts'
import { groupsIn, type Issued } from './listed.ts'

const TOKEN = /^pes_[A-Za-z0-9_-]{43}$/
const TOKEN_BYTES = 32

export function isToken(text: string): boolean {
  return TOKEN.test(text)
}

export function hashOfToken(token: string): string {
  return hash('sha256', token, 'hex')
}

/** `groups` absent: its user's at any time. `step`: of the code that the login used. */
interface Wanted {
  readonly abilities?: readonly string[] | undefined
  readonly groups?: Groups
  readonly ttlMinutes: number | undefined
  readonly name?: string | undefined
  readonly step?: number | undefined
}

export function newToken(
  user: User,
  by: number | null,
  nowMs: number,
  { abilities = user.abilities, groups, ttlMinutes, name, step }: Wanted
): readonly [EncodedEvent, Omit<Issued, 'user'>] {
  const token = `pes_${randomBytes(TOKEN_BYTES).toString('base64url')}`
  const expires =
    ttlMinutes === undefined ? null : new Date(nowMs + ttlMinutes * 60_000).toISOString()
  const data = {
    hash: hashOfToken(token),
    user: user.id,
    abilities: [...abilities],
    ...groupsIn(groups),
    issued: new Date(nowMs).toISOString(),
    expires,
    ...(name !== undefined && { name }),
    ...(step !== undefined && { step })
  }
  return [
    event('token.issued', by, data),
    { token, abilities: [...abilities], ...groupsIn(groups ?? user.groups), expires }
  ]
}

/**
 * Hashes of the oldest tokens from logins, at most two, so that one more login stays within `most`.
 */
export function beyondBound(
  { tokens }: State,
  user: number,
  most: number,
  nowMs: number
): readonly string[] {
  const own = [...tokens]
    .filter(([, token]) => token.user === user && token.isOfLogin && !isExpired(token, nowMs))
    .sort(([, a], [, b]) => Date.parse(a.issued) - Date.parse(b.issued))
  return own.slice(0, Math.min(2, Math.max(0, own.length + 1 - most))).map(([hash]) => hash)
}

export function hasTokens({ tokens }: State, id: number): boolean {
  return [...tokens.values()].some(({ user }) => user === id)
}
