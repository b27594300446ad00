/** The service's answers, recognised by the contract's words alone; and what an account may do. */

export interface EntryFields {
  readonly sistema: string
  readonly usuario: string
  readonly password: string
  readonly url: string
  readonly notas: string
  readonly grupo: string
}

/** What is sent: `otp` is taken and never answered. */
export type Sent = Partial<EntryFields & { readonly otp: string }>

export interface Person {
  readonly id: number
  readonly email: string
  readonly name?: string
}

/**
 * `changed`: when the password was last set. `reused`: how many others have the same password.
 * `exposed`: how many know it who may no longer read it, `exposedTo`: who they are.
 * `unrecordedBefore`: others may know it, since reads before were not recorded.
 */
export interface Listed {
  readonly id: number
  readonly sistema: string
  readonly usuario: string
  readonly url: string
  readonly grupo: string
  readonly changed?: string
  readonly reused?: number
  readonly exposed?: number
  readonly exposedTo?: readonly Person[]
  readonly unrecordedBefore?: string
  readonly hasNotes: boolean
  readonly hasCode: boolean
  readonly deleted?: string
  readonly deletedBy?: string
}

export interface List {
  readonly entries: readonly Listed[]
  readonly tag?: string | undefined
}

/** The tag lets a later change detect another change in between. */
export interface Stored {
  readonly id: number
  readonly isActive: boolean
  readonly fields: EntryFields
  readonly tag: string | undefined
}

/**
 * As the list would have it. Of a new password, who knows it and what is equal comes with the next
 * list.
 */
export function rowOf(
  { id, fields }: Pick<Stored, 'id' | 'fields'>,
  known?: Listed,
  isNewPassword: boolean = false
): Listed {
  const { password, notas, ...plain } = fields
  const { hasCode = false, changed } = known ?? {}
  const since = isNewPassword ? new Date().toISOString() : changed
  return {
    ...(isNewPassword ? {} : known),
    id,
    ...plain,
    hasNotes: notas !== '',
    hasCode,
    ...(since !== undefined && { changed: since })
  }
}

export interface User {
  readonly email: string
  readonly name: string
  readonly abilities?: readonly string[]
  /** Undefined: all. */
  readonly groups?: readonly string[]
  readonly secondFactor?: boolean
  readonly hasPassword?: boolean
  /** The operator's program made the password. */
  readonly firstPassword?: true
}

/** `values`: of those fields that are no secret; `version` asks for a secret one. */
export interface Change {
  readonly version: number
  readonly time: string
  readonly by: string | null
  readonly change: 'created' | 'updated' | 'deleted' | 'restored' | 'kept' | 'unseen'
  readonly fields?: readonly (keyof EntryFields | 'otp')[]
  readonly values?: Partial<EntryFields>
}

/**
 * Somebody who knows the present password of an entry. `removed`: no operation may tell it any
 * more.
 */
export interface Knower {
  readonly user?: Person
  readonly operator?: string
  readonly host?: true
  readonly how: 'read' | 'equal'
  readonly removed?: true
}

export interface Knowers {
  readonly knows: readonly Knower[]
  /** Reads before this time were not recorded. */
  readonly unrecordedBefore?: string
}

export interface Code {
  readonly code: string
  readonly seconds: number
}

export interface OwnSession {
  readonly id: number | string
  readonly name: string
  readonly issued: string
  readonly current: boolean
}

/** Each operation needs one of its abilities; null: none. */
export interface Served {
  readonly operations: { readonly [operation: string]: readonly string[] | null }
  readonly hasUsers: boolean
}

export interface Refusal {
  readonly ok: false
  /** What was asked for. */
  readonly asked: Operation | Door
  /**
   * `lost`: no complete answer. `login`: wrong credentials, or no session. `changed`: another
   * version is stored. `invalid`: `errors` names the fields.
   */
  readonly why:
    | 'lost'
    | 'login'
    | 'forbidden'
    | 'unknown'
    | 'changed'
    | 'invalid'
    | 'large'
    | 'limited'
    | 'busy'
    | 'failed'
  readonly message: string
  readonly errors: { readonly [field: string]: readonly string[] | undefined }
  readonly waitSeconds: number
  /** Leads the operator to the failure in the log. */
  readonly requestId: string
}

export type Answer<T> = { readonly ok: true; readonly value: T } | Refusal

export type Body = { readonly [field: string]: any }

/** A timer of more than 24 days would end at once. */
const MOST_WAIT_SECONDS = 86_400
export function lost(asked: Refusal['asked']): Refusal {
  return { ok: false, asked, why: 'lost', message: '', errors: {}, waitSeconds: 0, requestId: '' }
}

/**
 * By the contract's words, so that a proxy's answer is not taken for the service's; a proxy may
 * limit.
 */
const REFUSALS: { readonly [status: number]: readonly [why: Refusal['why'], words: RegExp] } = {
  400: ['invalid', /^Invalid data$/],
  401: ['login', /^(Unauthenticated\.|Invalid credentials)$/],
  403: ['forbidden', /^Invalid ability provided\.$/],
  404: ['unknown', /^contraseña no encontrada$/],
  412: ['changed', /^Precondition Failed$/],
  413: ['large', /^/],
  429: ['limited', /^/],
  503: ['busy', /^/]
}

export function refusalOf(
  asked: Refusal['asked'],
  { status, ok, headers }: Response,
  { message, errors }: Body
): Refusal {
  const [why, words] = REFUSALS[status] ?? ['failed', /^/]
  const text = typeof message === 'string' ? message : ''
  return {
    ok: false,
    asked,
    why: words.test(text) ? why : 'failed',
    message: text !== '' && !ok ? text : `HTTP ${status}`,
    errors: errors ?? {},
    // A proxy may send a date, which is no number.
    waitSeconds: Math.min(MOST_WAIT_SECONDS, Math.max(1, Number(headers.get('Retry-After')) || 1)),
    requestId: headers.get('X-Request-Id') ?? ''
  }
}

export function isWait({ why }: Refusal): boolean {
  return why === 'limited' || why === 'busy'
}

/** An unanswered or failed request may have been carried out. */
export function mayBeDone(answer: Answer<unknown>): boolean {
  return !answer.ok && (answer.why === 'lost' || answer.why === 'failed')
}

export type Operation =
  | 'listEntries'
  | 'getPassword'
  | 'createPassword'
  | 'updatePassword'
  | 'deletePassword'
  | 'deletedPasswords'
  | 'restorePassword'
  | 'historyPassword'
  | 'formerPassword'
  | 'formerNotes'
  | 'whoKnows'
  | 'oneTimeCode'
  | 'changeOwnPassword'
  | 'ownSessions'
  | 'endOwnSessions'

/** What needs no session. */
export type Door = 'login' | 'proxyLogin' | 'logout'

export class Rights {
  #served: { readonly [operation: string]: readonly string[] | null } = {}
  /** Undefined without an account, or if the service does not say. */
  #abilities: readonly string[] | undefined
  readonly #denied = new Set<Operation>()

  serve(operations: { readonly [operation: string]: readonly string[] | null }): void {
    this.#served = operations
  }

  get isOpen(): boolean {
    return this.#served['login'] === undefined
  }

  /** Whether a proxy in front of the service may say who it is. */
  get hasProxyLogin(): boolean {
    return this.#served['proxyLogin'] !== undefined
  }

  begin(abilities?: readonly string[]): void {
    this.#abilities = abilities
    this.#denied.clear()
  }

  deny(operation: Operation): void {
    this.#denied.add(operation)
  }

  may(operation: Operation): boolean {
    const asked = this.#served[operation]
    if (asked === undefined || this.#denied.has(operation)) return false
    const own = this.#abilities
    return asked === null || own === undefined || asked.some(ability => own.includes(ability))
  }
}
