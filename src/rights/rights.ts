/** Users, tokens and sessions (contract §5): what is kept, and what it allows. */
import { Failure } from '../errors.ts'

/** Undefined means all groups; an empty list, none. */
export type Groups = readonly string[] | undefined

/** A removed user stays, so that the journal's `by` can be shown. */
export interface User {
  readonly id: number
  /** As `addressOf` gives it; in an old journal perhaps only in lower case. */
  readonly email: string
  readonly name: string
  readonly abilities: readonly string[]
  readonly groups?: Groups
  /** A PHC string; undefined for a removed user, or one without a password. */
  readonly passwordHash: string | undefined
  /** How many there have been. */
  readonly passwords: number
  /** Whether the password is still the one that the operator's program made. */
  readonly firstPassword?: true | undefined
  readonly isRemoved?: true | undefined
  /** Since a salvage, until the password changes: no login of any kind. */
  readonly isLocked?: true | undefined
  /** `factor`: the secret of the second factor, in base32; `step`: of the last code. */
  readonly factor?: string | undefined
  readonly step?: number | undefined
}

/**
 * `hasNoPassword` or `isLocked` stands instead of a hash: older versions would take the user for a
 * removed one.
 */
export type KeptUser = Pick<
  User,
  'email' | 'name' | 'abilities' | 'groups' | 'firstPassword' | 'factor' | 'step' | 'isLocked'
> & {
  readonly passwordHash?: string | undefined
  readonly hasNoPassword?: true | undefined
}

export function loginBy(
  passwordHash: string | undefined,
  isMade: boolean = false
): Pick<KeptUser, 'passwordHash' | 'hasNoPassword' | 'firstPassword'> {
  if (passwordHash === undefined) return { hasNoPassword: true }
  return isMade ? { passwordHash, firstPassword: true } : { passwordHash }
}

/**
 * The token itself is kept nowhere. Each change of what it allows makes a new record: see
 * `Session.token`.
 */
export interface Token {
  readonly user: number
  readonly abilities: readonly string[]
  /** At most its user's. Undefined: its user's at any time. */
  readonly groups?: Groups
  /** ISO 8601; `expires` null: never. */
  readonly issued: string
  readonly expires: string | null
  /** Given by the operator. */
  readonly name?: string | undefined
  readonly isOfLogin?: true | undefined
  /** Milliseconds since 1970; never recorded. */
  usedMs?: number | undefined
}

/** `hash`: SHA-256 of the token, 64 hexadecimal digits. */
export type KeptToken = Omit<Token, 'usedMs'> & { readonly hash: string }

export function isExpired({ expires }: Pick<Token, 'expires'>, wallMs: number): boolean {
  return expires !== null && Date.parse(expires) <= wallMs
}

const TOKEN_ID_DIGITS = 12

export function tokenId(hash: string): string {
  return hash.slice(0, TOKEN_ID_DIGITS)
}

/** Who sends a request in the protected configuration, or the user for whom an embedder asks. */
export interface Session {
  readonly user: number
  /** Empty for an embedder's: its token is in no table, and allows what its user may. */
  readonly hash: string
  /** As of the request. A change is made only if the token still has this very record. */
  readonly token: Token
  readonly abilities: readonly string[]
  readonly groups: Groups
}

/** For an embedder, which knows itself who asks. */
export function sessionFor({ id, abilities, groups }: User): Session {
  return {
    user: id,
    hash: '',
    token: { user: id, abilities, groups, issued: '', expires: null },
    abilities,
    groups
  }
}

/** An embedder's process, if it asks without a session. */
export const HOST = 'host'

export const ANY_ABILITY = '*'

/** Readers of entries may read the list without secrets. */
const INCLUDED: { readonly [ability: string]: string } = {
  'entry:list': 'password:read',
  'entry:knowledge': 'password:history'
}

/** What may be done. */
export function covers(has: readonly string[], wanted: string): boolean {
  const wider = INCLUDED[wanted]
  return (
    has.includes(wanted) ||
    has.includes(ANY_ABILITY) ||
    (wider !== undefined && has.includes(wider))
  )
}

/** A token needs one of these. Undefined: any token will do. */
export type NeededAbilities = readonly string[] | undefined
export type NeededByOperation = ReadonlyMap<string, NeededAbilities>

/** Throws for an operation that nobody has named, since undefined would allow any token. */
export function askedFor(abilities: NeededByOperation, operation: string): NeededAbilities {
  if (!abilities.has(operation)) throw new Error(`no ability is named for ${operation}`)
  return abilities.get(operation)
}

export function mayCall(has: readonly string[], asked: NeededAbilities): boolean {
  return asked === undefined || asked.some(one => covers(has, one))
}

/** To which entries. */
export function sees(groups: Groups, grupo: string | undefined): boolean {
  return groups === undefined || (grupo !== undefined && groups.includes(grupo))
}

export function invalid(field: string, why: string): Failure {
  return new Failure('input-invalid', why, { errors: { [field]: [why] } })
}

/** Each token gets a new record, even if it may do as much: see `Session.token`. */
export function narrowTokens(
  tokens: Map<string, Token>,
  { id, abilities: most, groups: seen }: User
): void {
  for (const [hash, token] of tokens) {
    if (token.user !== id) continue
    const abilities = covers(token.abilities, ANY_ABILITY)
      ? most
      : token.abilities.filter(one => covers(most, one))
    const groups = token.groups?.filter(one => sees(seen, one))
    tokens.set(hash, { ...token, abilities, ...(groups !== undefined && { groups }) })
  }
}

export function endTokens(tokens: Map<string, Token>, user: number): void {
  for (const [hash, token] of tokens) if (token.user === user) tokens.delete(hash)
}

/** How an address is stored and compared. Earlier versions stored it in lower case alone. */
export function addressOf(given: string): string {
  return given.normalize('NFC').toLowerCase().normalize('NFC')
}

type Addresses = Map<string, number>

/**
 * Under its own spelling, and as `addressOf` gives it, unless another user of an old journal has
 * that.
 */
export function setAddress(addresses: Addresses, { id, email }: User): void {
  addresses.set(email, id)
  if (!addresses.has(addressOf(email))) addresses.set(addressOf(email), id)
}

/** In just this spelling. */
export function hasAddress(
  {
    users,
    addresses
  }: { readonly users: ReadonlyMap<number, User>; readonly addresses: Addresses },
  email: string
): boolean {
  return users.get(addresses.get(email) ?? 0)?.email === email
}

export function dropAddress(addresses: Addresses, { id, email }: User): void {
  for (const one of [email, addressOf(email)]) if (addresses.get(one) === id) addresses.delete(one)
}
