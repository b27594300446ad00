/** The client of the service: the contract's operations, login and logout, and the routes of its extra part. */
import { listIn, SILENCE_MS, textIn, Watch, type OnPart } from './receive.ts'
import type { Operation } from './rights.ts'

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

/** An entry as it is stored now, and the tag of that version, by which a later change finds out whether it still is. */
export interface Stored {
  readonly entry: Entry
  readonly tag: string | undefined
}

/** Who is logged in. */
export interface User {
  readonly email: string
  readonly name: string
  /** What the account allows; undefined if the service does not say. */
  readonly abilities?: readonly string[]
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
   * `lost`: no answer, or not all of it. `login`: wrong credentials. `forbidden`: the account lacks the ability.
   * `unknown`: no such entry. `changed`: it is not what it was. `invalid`: `errors` names the fields. `limited`: over
   * the rate limit. `busy`: the service refuses work for now. Both say how long to wait.
   */
  readonly why: 'lost' | 'login' | 'forbidden' | 'unknown' | 'changed' | 'invalid' | 'limited' | 'busy' | 'failed'
  /** The service's message, or the status where there is none. */
  readonly message: string
  readonly errors: { readonly [field: string]: readonly string[] | undefined }
  readonly waitSeconds: number
  /** By which the operator finds the failure in the log; empty if there is none. */
  readonly requestId: string
}

/** The outcome of an operation. */
export type Answer<T> = { readonly ok: true, readonly value: T } | Refusal

type OnEntries = OnPart<Entry>

interface ApiEvents {
  /** The service wants a login: there was none, or the session has ended. */
  onLoginNeeded(): void
  onForbidden(operation: Operation): void
}

interface Asked {
  readonly body?: object
  readonly headers?: { readonly [name: string]: string }
  /** Whether the request outlives the page. */
  readonly keepalive?: boolean
  readonly onPart?: OnEntries
}

interface Received {
  readonly body: Body
  readonly headers: Headers
}
type Body = { readonly [field: string]: unknown }

/** What the sending of a byte may take, since nothing tells how far that is. */
const SEND_MS_A_BYTE = .25

/** A timer of more than 24 days would be over at once. */
const MOST_WAIT_SECONDS = 86_400
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
  #events: ApiEvents | undefined
  /** A new object for each session. */
  #session: object = {}

  /** Who is logged in; undefined in the open configuration, and before the login. */
  get user(): User | undefined { return this.#user }

  /** Says whom to tell what concerns the whole page. */
  connect(events: ApiEvents): void { this.#events = events }

  /** All active entries; `onPart` gets those that have come, each time that more have. */
  async list(onPart?: OnEntries): Promise<Answer<readonly Entry[]>> {
    const answer = await this.#ask('GET', 'listPassword', '', { onPart: onPart ?? (() => {}) })
    if (!answer.ok && answer.why === 'unknown') return { ok: true, value: [] }
    return mapped(answer, ({ body }) => body['entries'] as readonly Entry[])
  }

  /** One entry, also a deleted one. */
  async get(id: number): Promise<Answer<Stored>> {
    return mapped(await this.#ask('GET', 'getPassword', id), received => storedIn(received, 'passwords'))
  }

  /** Creates an entry, and gives it with its id. */
  async create(fields: EntryFields): Promise<Answer<Entry>> {
    const answer = await this.#ask('POST', 'createPassword', '', { body: fields })
    return mapped(answer, ({ headers }) =>
      ({ ...fields, id: Number(/\d+$/.exec(headers.get('Location') ?? '')?.[0]), status: 1 }))
  }

  /** Changes the given fields, and gives the changed entry; `changed` if it is not the version of the tag any more. */
  async update(id: number, fields: Partial<EntryFields>, tag: string | undefined): Promise<Answer<Stored>> {
    const headers: Record<string, string> = tag === undefined ? {} : { 'If-Match': tag }
    const answer = await this.#ask('POST', 'updatePassword', id, { body: fields, headers })
    return mapped(answer, received => storedIn(received, 'password'))
  }

  /** Deletes an entry; the request outlives the page. */
  async remove(id: number): Promise<Answer<unknown>> {
    return this.#ask('POST', 'deletePassword', id, { keepalive: true })
  }

  /** The deleted entries below an id, newest first, as many as the service gives at a time; without one the newest. */
  async deleted(below: number | undefined, onPart: OnEntries): Promise<Answer<readonly Entry[]>> {
    const answer = await this.#ask('GET', 'deletedPasswords', below ?? '', { onPart })
    return mapped(answer, ({ body }) => body['entries'] as readonly Entry[])
  }

  /** Makes a deleted entry active again. */
  async restore(id: number): Promise<Answer<unknown>> { return this.#ask('POST', 'restorePassword', id) }

  /** The changes of an entry, newest first. */
  async history(id: number): Promise<Answer<readonly Change[]>> {
    return mapped(await this.#ask('GET', 'historyPassword', id), ({ body }) => body['history'] as Change[])
  }

  /** Changes the password of the user who is logged in; all their tokens end. */
  async changePassword(password: string, newPassword: string): Promise<Answer<unknown>> {
    return this.#ask('POST', 'changeOwnPassword', '', { body: { password, newPassword } })
  }

  /** The operations that the service has, and the ability that each asks for; undefined if it does not say. */
  async operations(): Promise<ReadonlyMap<string, string | null> | undefined> {
    try {
      const response = await fetch(new URL('../web/operations.json', BASE), { signal: AbortSignal.timeout(SILENCE_MS) })
      return response.ok ? new Map(Object.entries(await response.json() as Record<string, string | null>)) : undefined
    } catch {
      return undefined
    }
  }

  /** Gets a token and keeps it. */
  async login(email: string, password: string): Promise<Answer<User>> {
    const answer = await this.#send('POST', 'login', { body: { email, password } })
    if (!answer.ok) return answer
    this.#token = String(answer.value.body['token'])
    this.#user = answer.value.body['user'] as User
    return { ok: true, value: this.#user }
  }

  /**
   * Forgets the token at once and has it revoked. Where the service asks to wait, that is done again when the time is
   * over; `onWait` is called then.
   */
  async logout(onWait: () => void): Promise<Answer<unknown>> {
    const headers = this.#authorization()
    this.forget()
    for (;;) {
      const answer = await this.#send('POST', 'logout', { headers, keepalive: true })
      if (answer.ok || (answer.why !== 'limited' && answer.why !== 'busy')) return answer
      onWait()
      await new Promise(resolve => setTimeout(resolve, answer.waitSeconds * 1000))
    }
  }

  /** Forgets the token: the session ends. */
  forget(): void {
    this.#token = undefined
    this.#user = undefined
    this.leave()
  }

  /** What was asked before is not answered any more; the token is kept for what is asked from now on. */
  leave(): void { this.#session = {} }

  /** Waits, as a question does: where the session ends meanwhile, for ever. */
  async pause(ms: number): Promise<void> {
    const session = this.#session
    await new Promise(resolve => setTimeout(resolve, ms))
    if (session !== this.#session) await new Promise(() => {})
  }

  #authorization(): Record<string, string> {
    return this.#token === undefined ? {} : { Authorization: `Bearer ${this.#token}` }
  }

  /** A request of the session. When that has ended the whole page is told, and whoever has asked hears no more. */
  async #ask(method: 'GET' | 'POST', operation: Operation, id: number | '', asked: Asked = {}):
    Promise<Answer<Received>> {
    const session = this.#session
    const isOver = (): boolean => session !== this.#session
    const onPart: OnEntries = (entries, share) => { if (!isOver()) asked.onPart?.(entries, share) }
    const headers = { ...this.#authorization(), ...asked.headers }
    const own = { ...asked, headers, ...asked.onPart !== undefined && { onPart } }
    const answer = await this.#send(method, id === '' ? operation : `${operation}/${id}`, own)
    if (!isOver() && !answer.ok && answer.why === 'login') this.#events?.onLoginNeeded()
    else if (!isOver()) {
      if (!answer.ok && answer.why === 'forbidden') this.#events?.onForbidden(operation)
      return answer
    }
    return new Promise(() => {})
  }

  async #send(method: 'GET' | 'POST', path: string, { body, headers, keepalive, onPart }: Asked):
    Promise<Answer<Received>> {
    const text = body === undefined ? null : JSON.stringify(body)
    const watch = new Watch()
    const init: RequestInit = {
      method, body: text, cache: 'no-store', keepalive: keepalive === true, signal: watch.signal,
      headers: { Accept: 'application/json', ...text !== null && { 'Content-Type': 'application/json' }, ...headers }
    }
    watch.renew((text?.length ?? 0) * SEND_MS_A_BYTE)
    try {
      const response = await fetch(new URL(path, BASE), init)
      watch.renew()
      // The status counts also where a proxy has its own page in the place of what the service says.
      if (!response.ok) return refusalOf(response, await textIn(response, watch).then(JSON.parse).catch(() => ({})))
      const answer: Body = onPart === undefined ? JSON.parse(await textIn(response, watch))
        : { entries: await listIn<Entry>(response, watch, onPart) }
      return { ok: true, value: { body: answer, headers: response.headers } }
    } catch {
      return LOST
    }
  }
}

/** A proxy that compresses makes the tag a weak one (`W/`), which never matches; it is still that of the version. */
function storedIn({ body, headers }: Received, name: string): Stored {
  return { entry: body[name] as Entry, tag: headers.get('ETag')?.replace(/^W\//, '') }
}

function mapped<T>(answer: Answer<Received>, value: (received: Received) => T): Answer<T> {
  return answer.ok ? { ok: true, value: value(answer.value) } : answer
}

const WHY: { readonly [status: number]: Refusal['why'] } = {
  400: 'invalid', 401: 'login', 403: 'forbidden', 404: 'unknown', 412: 'changed', 429: 'limited', 503: 'busy'
}

function refusalOf({ status, headers }: Response, { message = status, errors }: Body): Refusal {
  // Hosts and origins are refused with 403 as well; a proxy's own 401 and 404 say nothing of a token or an entry.
  const isOther = status === 403 ? message !== 'Invalid ability provided.' : status < 405 && message === status
  return {
    ok: false,
    why: (isOther ? undefined : WHY[status]) ?? 'failed',
    message: String(message),
    errors: (errors ?? {}) as Refusal['errors'],
    // A proxy may say a date, which is no number.
    waitSeconds: Math.min(MOST_WAIT_SECONDS, Math.max(1, Number(headers.get('Retry-After')) || 1)),
    requestId: headers.get('X-Request-Id') ?? ''
  }
}
