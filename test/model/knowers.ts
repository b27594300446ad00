/** Who was told which password: an oracle that knows every byte that a client was sent, and what it asked for. */
import { connect } from 'node:net'
import { Defect } from './state.ts'

/** As they stand in a request or an answer: the nth password, and the user name that goes with it. */
export const passwordOf = (n: number): string => `PW${n}Z`
export const usuarioOf = (password: string): string => password.replace('PW', 'U')
const passwordsIn = (text: string): string[] => [...new Set(text.match(/PW\d+Z/g))]

export interface Exchange {
  /** Undefined if no whole head came. */
  readonly status: number | undefined
  /** All bytes that came. */
  readonly text: string
  readonly isWhole: boolean
  readonly json: any
}

/** `soon`: the client goes as soon as it has sent its request; `half`: with the first bytes of the answer. */
export type Cut = 'soon' | 'half' | undefined

/** Sends a request on a connection of its own. */
export function exchange(url: string, token: string, method: string, path: string, body: object | undefined,
  cut: Cut): Promise<Exchange> {
  const { hostname, port } = new URL(url)
  const sent = body === undefined ? '' : JSON.stringify(body)
  const fields = sent === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(sent)}\r\n`
  return new Promise(resolve => {
    let text = ''
    const socket = connect(Number(port), hostname)
    socket.setEncoding('latin1')
    socket.on('error', () => {})
    socket.on('data', piece => { text += piece; if (cut === 'half') socket.destroy() })
    socket.on('close', () => resolve(exchangeOf(text, method)))
    socket.write(`${method} ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${token}\r\n` +
      `Connection: close\r\n${fields}\r\n${sent}`, () => { if (cut === 'soon') socket.destroy() })
  })
}

function exchangeOf(text: string, method: string): Exchange {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]
  const body = rest.join('\r\n\r\n')
  const length = /^content-length: (\d+)$/im.exec(head)?.[1]
  const isWhole = status !== undefined && rest.length > 0 && (method === 'HEAD' || body.length === Number(length ?? 0))
  return { status: status === undefined ? undefined : Number(status), text, isWhole,
    json: isWhole && body.startsWith('{') || body.startsWith('[') ? parsed(body) : undefined }
}

function parsed(text: string): any { try { return JSON.parse(text) } catch { return undefined } }

export interface Asked {
  readonly who: string
  readonly operation: string
  /** 0: a list. */
  readonly id: number
  /** The password that it sets. */
  readonly sets?: string | undefined
}

/** A row of `audit`. */
export interface Row { readonly id: number, readonly who: string, readonly how: 'read' | 'equal',
  readonly status: 'active' | 'deleted' }

const keyOf = (...parts: readonly (string | number)[]): string => parts.join(' ')

/** See the fields of `Oracle`. */
type Copied = { readonly [field in 'has' | 'set' | 'told' | 'ever']: ReadonlySet<string> }

export class Oracle {
  /** Who has it, from an answer, from a history, or since they set it: `WHO PASSWORD`. */
  readonly #has = new Set<string>()
  /** Who was told the password of an entry: `WHO ID PASSWORD`. */
  readonly #told = new Set<string>()
  readonly #set = new Set<string>()
  /** Who may have been told, since an answer was cut off: `WHO PASSWORD`. */
  readonly #cut = new Set<string>()
  /** By entry, all passwords that it may have had. */
  readonly #of = new Map<number, Set<string>>()
  /** What may have been read unrecorded. */
  #unrecorded = new Set<string>()
  readonly passwords: string[] = []
  /** Those that were seen to be present, and of which the journal may know who knows them. */
  ever = new Set<string>()
  readonly people = new Set<string>()

  /** Another password, which nobody has had. */
  next(): string {
    const made = passwordOf(this.passwords.length + 1)
    this.passwords.push(made)
    return made
  }

  mayHave(id: number, password: string): void {
    this.#of.set(id, (this.#of.get(id) ?? new Set()).add(password))
  }

  wasOf(id: number, password: string): boolean { return this.#of.get(id)?.has(password) === true }

  /** From now on, what was set so far may have been read by others. */
  gap(): void { this.#unrecorded = new Set(this.passwords) }

  /** What a copy of the journal has. */
  copied(): Copied {
    return { has: new Set(this.#has), set: new Set(this.#set), told: new Set(this.#told), ever: new Set(this.ever) }
  }

  /** The copy is the journal now: what was set since counts as new, and what was forgotten since is known again. */
  restored({ has, set, told, ever }: Copied): void {
    this.gap()
    for (const [keys, known] of [[this.#has, has], [this.#set, set], [this.#told, told]] as const) {
      for (const key of known) keys.add(key)
    }
    this.ever = new Set(ever)
  }

  /** A compaction: who knew a value that no entry has is forgotten. */
  forget(present: Iterable<string>): void {
    const there = new Set(present)
    for (const keys of [this.#has, this.#set, this.#told, this.#unrecorded, this.ever]) {
      for (const key of keys) if (!there.has(key.split(' ').at(-1)!)) keys.delete(key)
    }
  }

  /** `mayHaveFailed`: also without an answer it may have been recorded. */
  answered(asked: Asked, { status, text, isWhole, json }: Exchange, mayHaveFailed: boolean): void {
    const { who, operation, id, sets } = asked
    this.people.add(who)
    const isFormer = operation === 'formerPassword'
    const found = passwordsIn(text.slice(text.indexOf('\r\n\r\n')))
    for (const password of found) this.#has.add(keyOf(who, password))
    const rows = Array.isArray(json) ? json : [json?.passwords, json?.password].filter(one => one?.id !== undefined)
    for (const row of rows) if (row.password !== undefined) this.#told.add(keyOf(who, row.id, row.password))
    if (isFormer) for (const password of found) this.#told.add(keyOf(who, id, password))
    const isUnknown = !isWhole || (mayHaveFailed && status! >= 500)
    if (sets !== undefined && id > 0) this.mayHave(id, sets)
    if (sets !== undefined && (status === 200 || isUnknown)) this.#set.add(keyOf(who, sets))
    if (sets !== undefined && status === 200) this.#has.add(keyOf(who, sets))
    if (isUnknown) this.mayHaveBeenTold(who, id)
  }

  /** An answer that was cut off, or a command that names more than it has shown; 0: any entry. */
  mayHaveBeenTold(who: string, id: number): void {
    this.people.add(who)
    const young = this.passwords.slice(-MAX_YOUNG)
    for (const password of id === 0 ? this.passwords : [...this.#of.get(id) ?? [], ...young]) {
      this.#cut.add(keyOf(who, password))
    }
  }

  /** Records may be lost, and entries older: whoever was told a value that is lost may be named for an older one. */
  salvaged(): void {
    for (const key of this.#told) {
      const [who = '', id] = key.split(' ')
      for (const password of this.#of.get(Number(id)) ?? []) this.#cut.add(keyOf(who, password))
    }
    this.gap()
  }

  /** What a command has shown. */
  shown(who: string, entries: readonly { readonly id: number, readonly password: string }[]): void {
    this.people.add(who)
    for (const { id, password } of entries) {
      this.#has.add(keyOf(who, password))
      this.#told.add(keyOf(who, id, password))
    }
  }

  set(who: string, id: number, password: string): void {
    this.people.add(who)
    this.#set.add(keyOf(who, password))
    this.#has.add(keyOf(who, password))
    if (id > 0) this.mayHave(id, password)
  }

  /** `present`: the password of each entry. Throws a `Defect`. */
  judge(present: ReadonlyMap<number, string>, rows: readonly Row[], unrecorded: ReadonlySet<number>): void {
    for (const [id, password] of present) {
      this.mayHave(id, password)
      this.ever.add(password)
      const named = new Map(rows.filter(row => row.id === id).map(({ who, how }) => [personIn(who), how]))
      const isUnrecorded = this.#unrecorded.has(password)
      if (isUnrecorded !== unrecorded.has(id)) {
        throw new Defect(`it is ${isUnrecorded ? 'not ' : ''}said that reads were not recorded: ${id}, ${password}`)
      }
      for (const who of this.people) {
        if (this.#has.has(keyOf(who, password)) && !named.has(who) && !isUnrecorded) {
          throw new Defect(`somebody is missing: ${who} has ${id}, ${password}`)
        }
      }
      for (const [who, how] of named) {
        const hasSet = this.#set.has(keyOf(who, password))
        const may = hasSet || (how === 'read' ? this.#told.has(keyOf(who, id, password))
          : this.#has.has(keyOf(who, password)))
        const isUnsure = this.#cut.has(keyOf(who, password))
        if (!may && !isUnsure && !who.startsWith('#')) {
          throw new Defect(`somebody is named who was not told: ${who} ${how} ${id}, ${password}`)
        }
      }
    }
  }
}

/** More than a step makes. */
const MAX_YOUNG = 40

/** A removed user is the same person. */
export const personIn = (who: string): string => who.replace(/ \(removed\)$/, '')
