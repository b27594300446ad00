/** The client of the contract: the five operations, login and logout, and nothing else. */

/** What an entry is made of. */
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

/** The operations that a token may or may not be able to do. */
export type Operation = 'list' | 'get' | 'create' | 'update' | 'remove'

/** Why an operation was not done. */
export interface Refusal {
  readonly ok: false
  /**
   * `lost`: nothing came back. `login`: there is no token, or it is good no more. `unable`: the token lacks the
   * ability. `unknown`: there is no such entry. `invalid`: `errors` says which fields. `wait`: come again in
   * `waitSeconds`.
   */
  readonly why: 'lost' | 'login' | 'unable' | 'unknown' | 'invalid' | 'wait' | 'failed'
  /** As the service said it; empty where it said nothing. */
  readonly message: string
  readonly errors: { readonly [field: string]: readonly string[] | undefined }
  readonly waitSeconds: number
  /** What the service's operator finds the failure by; empty where there is none. */
  readonly requestId: string
}

/** What came of an operation. */
export type Answer<T> = { readonly ok: true, readonly value: T } | Refusal

const TIMEOUT_MS = 30_000

const LOST: Refusal = { ok: false, why: 'lost', message: '', errors: {}, waitSeconds: 0, requestId: '' }

/**
 * Speaks to the service that the page came from; the token lives in this object and nowhere else. What was asked in a
 * session that is over is never answered: it would show one person's entries to the next. Only logging out is.
 */
export class Api {
  #token: string | undefined
  /** Another one for each session. */
  #session: object = {}

  /** Whether there is a token. */
  get isLoggedIn(): boolean { return this.#token !== undefined }

  /** All active entries; none is a list as well. */
  async list(): Promise<Answer<readonly Entry[]>> {
    const answer = await this.#ask('GET', 'listPassword')
    return !answer.ok && answer.why === 'unknown' ? { ok: true, value: [] } : answer as Answer<readonly Entry[]>
  }

  /** One entry, also a deleted one. */
  async get(id: number): Promise<Answer<Entry>> {
    return mapped(await this.#ask('GET', `getPassword/${id}`), body => body['passwords'] as Entry)
  }

  /** Makes an entry; the service does not tell its id. */
  async create(fields: EntryFields): Promise<Answer<unknown>> { return this.#ask('POST', 'createPassword', fields) }

  /** Changes the fields that are given; the entry as it is then. */
  async update(id: number, fields: Partial<EntryFields>): Promise<Answer<Entry>> {
    return mapped(await this.#ask('POST', `updatePassword/${id}`, fields), body => body['password'] as Entry)
  }

  /** Deletes an entry. */
  async remove(id: number): Promise<Answer<unknown>> { return this.#ask('POST', `deletePassword/${id}`) }

  /** Gets a token and keeps it. */
  async login(email: string, password: string): Promise<Answer<unknown>> {
    const answer = await this.#ask('POST', 'login', { email, password })
    if (answer.ok) this.#token = String(answer.value['token'])
    return answer
  }

  /** Has the token revoked, and forgets it whatever comes of that. */
  async logout(): Promise<Answer<unknown>> {
    const answer = this.#send('POST', 'logout')
    this.forget()
    return answer
  }

  /** Forgets the token: the session is over. */
  forget(): void {
    this.#token = undefined
    this.#session = {}
  }

  async #ask(method: 'GET' | 'POST', operation: string, body?: object): Promise<Answer<Body>> {
    const session = this.#session
    const answer = await this.#send(method, operation, body)
    return session === this.#session ? answer : new Promise(() => {})
  }

  async #send(method: 'GET' | 'POST', operation: string, body?: object): Promise<Answer<Body>> {
    const headers: Record<string, string> = { Accept: 'application/json' }
    if (body !== undefined) headers['Content-Type'] = 'application/json'
    if (this.#token !== undefined) headers['Authorization'] = `Bearer ${this.#token}`
    const init: RequestInit = { method, headers, cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT_MS) }
    if (body !== undefined) init.body = JSON.stringify(body)
    try {
      const response = await fetch(`/api/${operation}`, init)
      const said = await response.json() as Body
      return response.ok ? { ok: true, value: said } : refusalOf(response, said)
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
  400: 'invalid', 401: 'login', 404: 'unknown', 429: 'wait', 503: 'wait'
}

function refusalOf({ status, headers }: Response, { message, errors }: Body): Refusal {
  // The service refuses whole hosts and origins by 403 as well; that is no matter of the token.
  const isUnable = status === 403 && message === 'Invalid ability provided.'
  return {
    ok: false,
    why: isUnable ? 'unable' : WHY[status] ?? 'failed',
    message: String(message ?? ''),
    errors: (errors ?? {}) as Refusal['errors'],
    waitSeconds: Math.max(1, Number(headers.get('Retry-After') ?? 1)),
    requestId: headers.get('X-Request-Id') ?? ''
  }
}
