/**
 * The client of the service. An answer counts only by the words of the contract: a proxy's answer
 * is a failure, whatever its status.
 */
import {
  LOST,
  refusalOf,
  type Answer,
  type Body,
  type Change,
  type Code,
  type Knowers,
  type List,
  type Listed,
  type Operation,
  type OwnSession,
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

interface Asked {
  readonly body?: object
  readonly headers?: { readonly [name: string]: string }
  readonly keepalive?: boolean
  readonly signal?: AbortSignal
  isAnswer(body: Body): boolean
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
  (message: string) =>
  (body: Body): boolean =>
    body['message'] === message && body['status'] === 200
const isEntry = (entry: any, id: number): boolean =>
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
  async list(tag?: string): Promise<Answer<List | undefined>> {
    const headers: Record<string, string> = tag === undefined ? {} : { 'If-None-Match': tag }
    const answer = await this.#ask('GET', 'listEntries', '', { headers, isAnswer: Array.isArray })
    return mapped(answer, ({ status, body, headers }) =>
      status === 304
        ? undefined
        : {
            entries: (body as unknown as readonly Body[]).map(listed),
            tag: headers.get('ETag') ?? undefined
          }
    )
  }

  async get(id: number): Promise<Answer<Stored>> {
    const answer = await this.#ask('GET', 'getPassword', id, {
      isAnswer: body => isEntry(body['passwords'], id)
    })
    return mapped(answer, received => storedIn(received, 'passwords'))
  }

  async create(fields: Sent): Promise<Answer<number>> {
    const asked = { body: fields, isAnswer: says('SE CREÓ UNA NUEVA CONTRASEÑA') }
    const answer = await this.#ask('POST', 'createPassword', '', asked)
    return mapped(answer, ({ headers }) => Number(/\d+$/.exec(headers.get('Location') ?? '')?.[0]))
  }

  /** Fails with `changed` if the tag's version is no longer stored. */
  async update(id: number, fields: Sent, tag: string | undefined): Promise<Answer<Stored>> {
    const headers: Record<string, string> = tag === undefined ? {} : { 'If-Match': tag }
    const asked = { body: fields, headers, isAnswer: (body: Body) => isEntry(body['password'], id) }
    return mapped(await this.#ask('POST', 'updatePassword', id, asked), received =>
      storedIn(received, 'password')
    )
  }

  /**
   * The tag of an entry, without its secrets. An answer to HEAD has no words: whether the entry is
   * still there, the list says.
   */
  async tag(id: number): Promise<Answer<string | undefined>> {
    const answer = await this.#ask('HEAD', 'getPassword', id, { isAnswer: () => true })
    return mapped(answer, ({ headers }) => tagIn(headers))
  }

  async remove(id: number): Promise<Answer<unknown>> {
    return this.#ask('POST', 'deletePassword', id, {
      keepalive: true,
      isAnswer: says('contraseña borrada')
    })
  }

  /** Newest first, one page below the id; without secrets. */
  async deleted(below: number | undefined): Promise<Answer<readonly Listed[]>> {
    const asked = { isAnswer: (body: Body) => Array.isArray(body['passwords']) }
    const answer = await this.#ask('GET', 'deletedPasswords', below ?? '', asked)
    return mapped(answer, ({ body }) => (body['passwords'] as readonly Body[]).map(listed))
  }

  async restore(id: number): Promise<Answer<unknown>> {
    return this.#ask('POST', 'restorePassword', id, { isAnswer: says('contraseña restaurada') })
  }

  async history(id: number): Promise<Answer<readonly Change[]>> {
    const asked = { isAnswer: (body: Body) => Array.isArray(body['history']) }
    return mapped(
      await this.#ask('GET', 'historyPassword', id, asked),
      ({ body }) => body['history']
    )
  }

  /** The secret that a change has set. */
  async former(
    id: number,
    version: number,
    name: 'password' | 'notas'
  ): Promise<Answer<string>> {
    const operation = name === 'password' ? 'formerPassword' : 'formerNotes'
    const asked = { isAnswer: (body: Body) => typeof body[name] === 'string' }
    return mapped(
      await this.#ask('GET', operation, `${id}/${version}`, asked),
      ({ body }) => body[name]
    )
  }

  async whoKnows(id: number): Promise<Answer<Knowers>> {
    const asked = { isAnswer: (body: Body) => Array.isArray(body['knows']) }
    return mapped(
      await this.#ask('GET', 'whoKnows', id, asked),
      ({ body }) => body as unknown as Knowers
    )
  }

  async code(id: number): Promise<Answer<Code>> {
    const asked = {
      isAnswer: ({ code, seconds }: Body) => typeof code === 'string' && typeof seconds === 'number'
    }
    return mapped(
      await this.#ask('GET', 'oneTimeCode', id, asked),
      ({ body }) => body as unknown as Code
    )
  }

  async sessions(): Promise<Answer<readonly OwnSession[]>> {
    const asked = { isAnswer: (body: Body) => Array.isArray(body['sessions']) }
    return mapped(await this.#ask('GET', 'ownSessions', '', asked), ({ body }) => body['sessions'])
  }

  async endSessions(session: OwnSession['id'] | 'others'): Promise<Answer<unknown>> {
    const asked = { body: { session }, isAnswer: (body: Body) => body['status'] === 200 }
    return this.#ask('POST', 'endOwnSessions', '', asked)
  }

  async changePassword(password: string, newPassword: string): Promise<Answer<unknown>> {
    const asked = { body: { password, newPassword }, isAnswer: says('contraseña cambiada') }
    return this.#ask('POST', 'changeOwnPassword', '', asked)
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
    const isAnswer = (body: Body): boolean =>
      typeof body['token'] === 'string' && typeof body['user'] === 'object'
    const answer = await this.#send('POST', operation, { body, isAnswer })
    if (!answer.ok) return answer
    this.#token = answer.value.body['token']
    this.#user = answer.value.body['user'] as User
    return { ok: true, value: this.#user }
  }

  /** Forgets the token, whatever the service answers; the request outlives the page. */
  async logout(): Promise<Answer<unknown>> {
    const headers = this.#authorization()
    this.forget()
    if (headers['Authorization'] === undefined) return LOST
    const isAnswer = (body: Body): boolean => body['message'] === 'Logged out successfully'
    return this.#send('POST', 'logout', { headers, keepalive: true, isAnswer })
  }

  forget(): void {
    this.#token = this.#user = undefined
    this.#session.abort(ENDED)
    this.#session = new AbortController()
  }

  #authorization(): Record<string, string> {
    return this.#token === undefined ? {} : { Authorization: `Bearer ${this.#token}` }
  }

  async #ask(
    method: Method,
    operation: Operation,
    id: number | string,
    asked: Asked
  ): Promise<Answer<Received>> {
    const { signal } = this.#session
    const headers = { ...this.#authorization(), ...asked.headers }
    // A change that is under way is carried out, even if nobody sees the answer.
    const own = method === 'POST' ? { ...asked, headers } : { ...asked, headers, signal }
    const answer = await this.#send(method, id === '' ? operation : `${operation}/${id}`, own)
    signal.throwIfAborted()
    if (!answer.ok && answer.why === 'login') this.#events?.onLoginNeeded()
    signal.throwIfAborted()
    if (!answer.ok && answer.why === 'forbidden') this.#events?.onForbidden(operation)
    return answer
  }

  async #send(method: Method, path: string, asked: Asked): Promise<Answer<Received>> {
    const { body, headers = {}, keepalive = false, signal, isAnswer } = asked
    const text = body === undefined ? null : JSON.stringify(body)
    const watch = new AbortController()
    let timer = setTimeout(() => watch.abort(), ANSWER_MS + (text?.length ?? 0) * SEND_MS_A_BYTE)
    const content: Record<string, string> =
      text === null ? {} : { 'Content-Type': 'application/json' }
    try {
      const response = await fetch(new URL(path, BASE), {
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
      if (!isKnown && (!response.ok || !isAnswer(said))) return refusalOf(response, said)
      return { ok: true, value: { status: response.status, body: said, headers: response.headers } }
    } catch {
      return LOST
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

function listed({ id, sistema, usuario, url, grupo, notas, otp, ...others }: Body): Listed {
  const { changed, reused, exposed, deleted, deletedBy } = others
  return {
    id,
    sistema,
    usuario,
    url: url ?? '',
    grupo: grupo ?? '',
    hasNotes: notas === true,
    hasCode: otp === true,
    ...(changed && { changed }),
    ...(reused > 0 && { reused }),
    ...(exposed > 0 && { exposed }),
    ...(deleted && { deleted }),
    ...(deletedBy && { deletedBy })
  }
}

function storedIn({ body, headers }: Received, name: string): Stored {
  const { id, status, sistema, usuario, password, url, notas, grupo } = body[name]
  const fields = {
    sistema,
    usuario,
    password,
    url: url ?? '',
    notas: notas ?? '',
    grupo: grupo ?? ''
  }
  return { id, isActive: status === 1, fields, tag: tagIn(headers) }
}

/** A compressing proxy makes the tag weak (`W/`), and a weak tag never matches. */
function tagIn(headers: Headers): string | undefined {
  return headers.get('ETag')?.replace(/^W\//, '')
}

function mapped<T>(answer: Answer<Received>, value: (received: Received) => T): Answer<T> {
  return answer.ok ? { ok: true, value: value(answer.value) } : answer
}
