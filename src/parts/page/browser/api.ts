/**
 * The client of the service. An answer counts only by the words of the contract: a proxy's answer
 * is a failure, whatever its status.
 */
import {
  lost,
  refusalOf,
  type Answer,
  type Body,
  type Change,
  type Code,
  type Door,
  type Knowers,
  type List,
  type Listed,
  type Operation,
  type OwnSession,
  type Person,
  type Sent,
  type Stored,
  type User
} from './answers.ts'

type Method = 'GET' | 'HEAD' | 'POST'

interface Received {
  readonly status: number
  readonly body: Body
  readonly headers: Headers
}

type IsAnswer = (body: Body) => unknown

interface More {
  readonly body?: object
  readonly headers?: { readonly [name: string]: string }
  readonly keepalive?: boolean
  readonly signal?: AbortSignal
}

interface ApiEvents {
  onLoginNeeded(): void
  onForbidden(operation: Operation): void
}

/** For the head of an answer; each byte sent adds to it. Then the service counts as gone. */
const ANSWER_MS = 30_000
const SEND_MS_A_BYTE = 0.25
/** For the rest of the answer: a long list on a slow line. */
const BODY_MS = 300_000
/** Relative: the page works below any prefix. The path of this module has a hash in it. */
const WEB = new URL('../', import.meta.url)
const BASE = new URL('../api/', WEB)

/** Why requests of an ended session are rejected: whatever waited for them ends with it. */
export const ENDED: DOMException = new DOMException('the session has ended', 'AbortError')

const says =
  (message: string): IsAnswer =>
  body =>
    body['message'] === message && body['status'] === 200
const lists =
  (name: string): IsAnswer =>
  body =>
    Array.isArray(body[name])
const isEntry =
  (name: string, id: number): IsAnswer =>
  ({ [name]: entry }) =>
    entry?.id === id && typeof entry.password === 'string'

/**
 * The only place of the token. Requests of an ended session are rejected by `ENDED`: an answer
 * would show one person's entries to the next.
 */
export class Api {
  #token: string | undefined
  #user: User | undefined
  #events: ApiEvents | undefined
  #session = new AbortController()

  get user(): User | undefined {
    return this.#user
  }

  connect(events: ApiEvents): void {
    this.#events = events
  }

  /** Undefined if the tag's list is still the list. */
  list(tag?: string): Promise<Answer<List | undefined>> {
    const more = tag === undefined ? {} : { headers: { 'If-None-Match': tag } }
    const listIn = ({ status, body, headers }: Received): List | undefined =>
      status === 304
        ? undefined
        : {
            entries: (body as unknown as readonly Body[]).map(listed),
            tag: headers.get('ETag') ?? undefined
          }
    return this.#ask('GET', 'listEntries', '', Array.isArray, listIn, more)
  }

  get(id: number): Promise<Answer<Stored>> {
    return this.#ask('GET', 'getPassword', id, isEntry('passwords', id), storedIn('passwords'))
  }

  create(body: Sent): Promise<Answer<number>> {
    const idIn = ({ headers }: Received): number =>
      Number(/\d+$/.exec(headers.get('Location') ?? '')?.[0])
    const isAnswer = says('SE CREÓ UNA NUEVA CONTRASEÑA')
    return this.#ask('POST', 'createPassword', '', isAnswer, idIn, { body })
  }

  /** Fails with `changed` if the tag's version is no longer stored. */
  update(id: number, body: Sent, tag: string | undefined): Promise<Answer<Stored>> {
    const more = tag === undefined ? { body } : { body, headers: { 'If-Match': tag } }
    const isAnswer = isEntry('password', id)
    return this.#ask('POST', 'updatePassword', id, isAnswer, storedIn('password'), more)
  }

  /**
   * The tag of an entry, without its secrets. An answer to HEAD has no words: whether the entry is
   * still there, the list says.
   */
  tag(id: number): Promise<Answer<string | undefined>> {
    return this.#ask('HEAD', 'getPassword', id, () => true, tagIn)
  }

  remove(id: number): Promise<Answer<Body>> {
    const more = { keepalive: true }
    return this.#ask('POST', 'deletePassword', id, says('contraseña borrada'), bodyIn, more)
  }

  /** Newest first, one page below the id; without secrets. */
  deleted(below: number | undefined): Promise<Answer<readonly Listed[]>> {
    const rows = ({ body }: Received): readonly Listed[] => body['passwords'].map(listed)
    return this.#ask('GET', 'deletedPasswords', below ?? '', lists('passwords'), rows)
  }

  restore(id: number): Promise<Answer<Body>> {
    return this.#ask('POST', 'restorePassword', id, says('contraseña restaurada'), bodyIn)
  }

  history(id: number): Promise<Answer<readonly Change[]>> {
    return this.#ask('GET', 'historyPassword', id, lists('history'), ({ body }) => body['history'])
  }

  /** The value of a secret field as a change has set it. */
  former(name: 'password' | 'notas', id: number, version: number): Promise<Answer<string>> {
    const operation = name === 'notas' ? 'formerNotes' : 'formerPassword'
    const isAnswer: IsAnswer = body => typeof body[name] === 'string'
    return this.#ask('GET', operation, `${id}/${version}`, isAnswer, ({ body }) => body[name])
  }

  whoKnows(id: number): Promise<Answer<Knowers>> {
    return this.#ask('GET', 'whoKnows', id, lists('knows'), bodyIn<Knowers>)
  }

  code(id: number): Promise<Answer<Code>> {
    const isAnswer: IsAnswer = ({ code, seconds }) => typeof code === 'string' && seconds > 0
    return this.#ask('GET', 'oneTimeCode', id, isAnswer, bodyIn<Code>)
  }

  sessions(): Promise<Answer<readonly OwnSession[]>> {
    return this.#ask('GET', 'ownSessions', '', lists('sessions'), ({ body }) => body['sessions'])
  }

  endSessions(session: OwnSession['id'] | 'others'): Promise<Answer<Body>> {
    const isAnswer: IsAnswer = ({ status }) => status === 200
    return this.#ask('POST', 'endOwnSessions', '', isAnswer, bodyIn, { body: { session } })
  }

  changePassword(password: string, newPassword: string): Promise<Answer<Body>> {
    const more = { body: { password, newPassword } }
    return this.#ask('POST', 'changeOwnPassword', '', says('contraseña cambiada'), bodyIn, more)
  }

  async words(name: 'words-es' | 'words-en' | 'common'): Promise<readonly string[]> {
    const response = await fetch(new URL(`${name}.txt`, WEB), {
      signal: AbortSignal.timeout(ANSWER_MS)
    })
    return response.ok ? (await response.text()).trim().split(/\s+/) : []
  }

  /** `code` is empty without a second factor. */
  async login(email: string, password: string, code: string = ''): Promise<Answer<User>> {
    return this.#begin('login', { email, password, ...(code !== '' && { code }) })
  }

  /** As whom a proxy in front of the service says. */
  async proxyLogin(): Promise<Answer<User>> {
    return this.#begin('proxyLogin', {})
  }

  async #begin(operation: 'login' | 'proxyLogin', body: object): Promise<Answer<User>> {
    const isAnswer: IsAnswer = ({ token, user }) =>
      typeof token === 'string' && typeof user === 'object'
    const answer = await this.#send('POST', operation, '', isAnswer, bodyIn, { body })
    if (!answer.ok) return answer
    this.#token = answer.value['token']
    this.#user = answer.value['user'] as User
    return { ok: true, value: this.#user }
  }

  /** Forgets the token, whatever the service answers; the request outlives the page. */
  async logout(): Promise<Answer<Body>> {
    const headers = this.#authorization()
    this.forget()
    if (headers['Authorization'] === undefined) return lost('logout')
    const isAnswer: IsAnswer = ({ message }) => message === 'Logged out successfully'
    return this.#send('POST', 'logout', '', isAnswer, bodyIn, { headers, keepalive: true })
  }

  forget(): void {
    this.#token = this.#user = undefined
    this.#session.abort(ENDED)
    this.#session = new AbortController()
  }

  #authorization(): Record<string, string> {
    return this.#token === undefined ? {} : { Authorization: `Bearer ${this.#token}` }
  }

  async #ask<T>(
    method: Method,
    operation: Operation,
    id: number | string,
    isAnswer: IsAnswer,
    value: (received: Received) => T,
    more: More = {}
  ): Promise<Answer<T>> {
    const { signal } = this.#session
    const headers = { ...this.#authorization(), ...more.headers }
    // A change that is under way is carried out, even if nobody sees the answer.
    const own = method === 'POST' ? { ...more, headers } : { ...more, headers, signal }
    const answer = await this.#send(method, operation, id, isAnswer, value, own)
    signal.throwIfAborted()
    if (!answer.ok && answer.why === 'login') this.#events?.onLoginNeeded()
    signal.throwIfAborted()
    if (!answer.ok && answer.why === 'forbidden') this.#events?.onForbidden(operation)
    return answer
  }

  async #send<T>(
    method: Method,
    operation: Operation | Door,
    id: number | string,
    isAnswer: IsAnswer,
    value: (received: Received) => T,
    { body, headers = {}, keepalive = false, signal }: More
  ): Promise<Answer<T>> {
    const text = body === undefined ? null : JSON.stringify(body)
    const watch = new AbortController()
    let timer = setTimeout(() => watch.abort(), ANSWER_MS + (text?.length ?? 0) * SEND_MS_A_BYTE)
    const content: Record<string, string> =
      text === null ? {} : { 'Content-Type': 'application/json' }
    try {
      const response = await fetch(new URL(id === '' ? operation : `${operation}/${id}`, BASE), {
        method,
        body: text,
        cache: 'no-store',
        keepalive,
        signal: signal === undefined ? watch.signal : AbortSignal.any([watch.signal, signal]),
        headers: { Accept: 'application/json', ...content, ...headers }
      })
      clearTimeout(timer)
      timer = setTimeout(() => watch.abort(), BODY_MS)
      const said = parsed(await response.text())
      const isKnown = response.status === 304 && headers['If-None-Match'] !== undefined
      if (!isKnown && (!response.ok || !isAnswer(said))) return refusalOf(operation, response, said)
      return {
        ok: true,
        value: value({ status: response.status, body: said, headers: response.headers })
      }
    } catch {
      return lost(operation)
    } finally {
      clearTimeout(timer)
    }
  }
}

function parsed(text: string): Body {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

function listed({ url, grupo, notas, otp, status, exposedTo, ...row }: Body): Listed {
  return {
    ...(row as Listed),
    url: url ?? '',
    grupo: grupo ?? '',
    hasNotes: notas === true,
    hasCode: otp === true,
    ...(exposedTo && { exposedTo: exposedTo.map(({ user }: { user: Person }) => user) })
  }
}

function storedIn(name: string): (received: Received) => Stored {
  return received => {
    const { id, status, url = '', notas = '', grupo = '', ...others } = received.body[name]
    const { sistema, usuario, password } = others
    const fields = { sistema, usuario, password, url, notas, grupo }
    return { id, isActive: status === 1, fields, tag: tagIn(received) }
  }
}

/** A compressing proxy makes the tag weak (`W/`), and a weak tag never matches. */
function tagIn({ headers }: Received): string | undefined {
  return headers.get('ETag')?.replace(/^W\//, '')
}

function bodyIn<T = Body>({ body }: Received): T {
  return body as T
}
