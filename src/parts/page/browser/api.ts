/** The client of the service: the five operations, login and logout, and the routes that `EXTRA_ROUTES=on` adds. */

/** The fields of an entry that a person enters. */
export interface EntryFields {
  readonly password: string
  readonly sistema: string
  readonly usuario: string
}

/** An entry; `status` is 1, or 0 once it is deleted. */
export interface Entry extends EntryFields {
  readonly id: number
  readonly status: number
}

/** The operations that a token may or may not allow. */
export type Operation = 'list' | 'get' | 'create' | 'update' | 'remove'

/** Who is logged in. */
export interface User {
  readonly email: string
  readonly name: string
}

/** A change of an entry: when, by whom, and the fields as they were afterwards. */
export interface Change {
  readonly time: string
  readonly by: string | null
  readonly change: 'created' | 'updated' | 'deleted' | 'restored' | 'kept'
  readonly fields: Partial<EntryFields>
}

/** Why an operation failed. */
export interface Refusal {
  readonly ok: false
  /**
   * `lost`: no answer. `login`: no token, or one that is no longer valid. `forbidden`: the token lacks the ability.
   * `unknown`: no such entry. `invalid`: `errors` names the fields. `limited`: over the rate limit. `busy`: the service
   * refuses work for now. Both say how long to wait.
   */
  readonly why: 'lost' | 'login' | 'forbidden' | 'unknown' | 'invalid' | 'limited' | 'busy' | 'failed'
  /** The service's message; empty if there is none. */
  readonly message: string
  readonly errors: { readonly [field: string]: readonly string[] | undefined }
  readonly waitSeconds: number
  /** By which the operator finds the failure in the log; empty if there is none. */
  readonly requestId: string
}

/** The outcome of an operation. */
export type Answer<T> = { readonly ok: true, readonly value: T } | Refusal

const TIMEOUT_MS = 30_000

const LOST: Refusal = { ok: false, why: 'lost', message: '', errors: {}, waitSeconds: 0, requestId: '' }

/** Relative to this file, so that the page works below any prefix. */
const BASE = new URL('../api/', import.meta.url)

/**
 * The token is kept in this object and nowhere else. A request of a session that has ended is never answered: its
 * answer would show one person's entries to the next. Only the logout is.
 */
export class Api {
  #token: string | undefined
  #user: User | undefined
  /** A new object for each session. */
  #session: object = {}

  /** Who is logged in; undefined in the open configuration, and before the login. */
  get user(): User | undefined { return this.#user }

  /** All active entries. */
  async list(): Promise<Answer<readonly Entry[]>> {
    const answer = await this.#ask('GET', 'listPassword')
    return !answer.ok && answer.why === 'unknown' ? { ok: true, value: [] } : answer as Answer<readonly Entry[]>
  }

  /** One entry, also a deleted one. */
  async get(id: number): Promise<Answer<Entry>> {
    return mapped(await this.#ask('GET', `getPassword/${id}`), body => body['passwords'] as Entry)
  }

  /** Creates an entry; the answer does not hold its id. */
  async create(fields: EntryFields): Promise<Answer<unknown>> { return this.#ask('POST', 'createPassword', fields) }

  /** Changes the given fields, and gives the changed entry. */
  async update(id: number, fields: Partial<EntryFields>): Promise<Answer<Entry>> {
    return mapped(await this.#ask('POST', `updatePassword/${id}`, fields), body => body['password'] as Entry)
  }

  /** Deletes an entry; the request outlives the page. */
  async remove(id: number): Promise<Answer<unknown>> {
    return this.#ask('POST', `deletePassword/${id}`, undefined, { keepalive: true })
  }

  /** The deleted entries, newest first. */
  async deleted(): Promise<Answer<readonly Entry[]>> {
    return mapped(await this.#ask('GET', 'deletedPasswords'), body => body['passwords'] as Entry[])
  }

  /** Makes a deleted entry active again. */
  async restore(id: number): Promise<Answer<unknown>> { return this.#ask('POST', `restorePassword/${id}`) }

  /** The changes of an entry, newest first. */
  async history(id: number): Promise<Answer<readonly Change[]>> {
    return mapped(await this.#ask('GET', `historyPassword/${id}`), body => body['history'] as Change[])
  }

  /** Changes the password of the user who is logged in; all their tokens end. */
  async changePassword(password: string, newPassword: string): Promise<Answer<unknown>> {
    return this.#ask('POST', 'changeOwnPassword', { password, newPassword })
  }

  /** The names of the operations that the service has; of the contract's alone, if it does not say. */
  async operations(): Promise<ReadonlySet<string>> {
    try {
      const response = await fetch(new URL('../web/operations.json', BASE))
      return new Set(response.ok ? await response.json() as string[] : [])
    } catch {
      return new Set()
    }
  }

  /** Gets a token and keeps it. */
  async login(email: string, password: string): Promise<Answer<unknown>> {
    const answer = await this.#ask('POST', 'login', { email, password })
    if (!answer.ok) return answer
    this.#token = String(answer.value['token'])
    this.#user = answer.value['user'] as User
    return answer
  }

  /** Has the token revoked, and forgets it in any case. */
  async logout(): Promise<Answer<unknown>> {
    const answer = this.#send('POST', 'logout', undefined, { keepalive: true })
    this.forget()
    return answer
  }

  /** Forgets the token: the session ends. */
  forget(): void {
    this.#token = undefined
    this.#user = undefined
    this.#session = {}
  }

  async #ask(method: 'GET' | 'POST', operation: string, body?: object, more?: RequestInit): Promise<Answer<Body>> {
    const session = this.#session
    const answer = await this.#send(method, operation, body, more)
    return session === this.#session ? answer : new Promise(() => {})
  }

  async #send(method: 'GET' | 'POST', operation: string, body?: object, more?: RequestInit): Promise<Answer<Body>> {
    const headers: Record<string, string> = { Accept: 'application/json' }
    if (body !== undefined) headers['Content-Type'] = 'application/json'
    if (this.#token !== undefined) headers['Authorization'] = `Bearer ${this.#token}`
    const init: RequestInit = { method, headers, cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT_MS), ...more }
    if (body !== undefined) init.body = JSON.stringify(body)
    try {
      const response = await fetch(new URL(operation, BASE), init)
      const answer = await response.json() as Body
      return response.ok ? { ok: true, value: answer } : refusalOf(response, answer)
    } catch {
      return LOST
    }
  }
}

type Body = { readonly [field: string]: unknown }

function mapped<T>(answer: Answer<Body>, value: (body: Body) => T): Answer<T> {
  return answer.ok ? { ok: true, value: value(answer.value) } : answer
}

const WHY: { readonly [status: number]: Refusal['why'] } = {
  400: 'invalid', 401: 'login', 404: 'unknown', 429: 'limited', 503: 'busy'
}

function refusalOf({ status, headers }: Response, { message, errors }: Body): Refusal {
  // Hosts and origins are refused with 403 as well.
  const isForbidden = status === 403 && message === 'Invalid ability provided.'
  return {
    ok: false,
    why: isForbidden ? 'forbidden' : WHY[status] ?? 'failed',
    message: String(message ?? ''),
    errors: (errors ?? {}) as Refusal['errors'],
    waitSeconds: Math.max(1, Number(headers.get('Retry-After') ?? 1)),
    requestId: headers.get('X-Request-Id') ?? ''
  }
}
