/**
 * Compares two builds of the program over the wire: both are given the same connections, and every difference in what
 * they say is judged. `MEANT` has the differences that are meant, each with the sentence of CHANGELOG.md that tells it;
 * every other one is a fault, told by kinds with one example each: then the exit code is 1. What comes by chance is
 * replaced before: `Date`, tags, tokens, ids of failures, times; but a tag must mean the same bytes, and a token work.
 *
 *     node --import tsx test/campaigns/compare/wire.ts OLD_DIST NEW_DIST
 *         [--count N] [--seed S] [--only NAME] [--every N]
 *
 * `--every 5` takes each fifth row of the tables.
 */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { cpSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { gunzipSync } from 'node:zlib'
import { certificateFiles } from '../../support/certificate.ts'
import { type Program } from '../../support/program.ts'
import { seeded } from '../../support/random.ts'
import { message, parseAnswer, type RawAnswer } from '../../support/raw.ts'
import { freshFolder, Steps } from '../../support/service.ts'
import { Build, fromCommandLine } from './programs.ts'
import { judge, MEANT, type Shown } from './meant.ts'
import { script, tables, type Script, type Sort } from './requests.ts'
import { assertInChangelog, Verdicts } from './verdicts.ts'

const PASSWORD = 'correct horse battery staple'
/** How long nothing may come before a connection counts as one that stands still. */
const STILL_MS = 1_500
/** The same where a password is hashed. */
const STILL_HASHING_MS = 15_000

interface Configuration {
  readonly flags: Record<string, string>
  readonly env?: Record<string, string>
  readonly sort: Sort
  /** Every client has an address of its own, so that its limits are its own. */
  readonly countsClients?: boolean
  /** How much of the count it gets. */
  readonly share?: number
}

const scope = new Steps()
const only = process.argv.includes('--only') ? process.argv.splice(process.argv.indexOf('--only'), 2)[1] : undefined
const every = process.argv.includes('--every') ? Number(process.argv.splice(process.argv.indexOf('--every'), 2)[1]) : 1
const { old, new: young, count, seed } = fromCommandLine(20_000)

/** A folder as the old program leaves it, with users, tokens and entries of all kinds. */
const origin = join(freshFolder(scope), 'data')
old.admin(origin, ['init'])
const password = ['--password-stdin']
for (const [email, ...more] of [['ana@example.org'], ['leo@example.org', '--abilities', 'password:read'],
  ['eva@example.org', '--abilities', 'password:create,password:update']]) {
  old.admin(origin, ['user', 'add', email!, ...more, ...password], `${PASSWORD}\n`)
}
const issue = (...words: string[]): string => /pes_\S+/.exec(old.admin(origin, ['token', 'issue', ...words]))?.[0] ?? ''
const tokens = [issue('ana@example.org'), issue('leo@example.org'), issue('eva@example.org'),
  issue('ana@example.org', '--abilities', 'password:read'),
  issue('ana@example.org', '--abilities', 'password:delete,password:history'),
  issue('leo@example.org', '--ttl-minutes', '0.0001')]
await (async () => {
  const program = await old.start(scope, origin, { auth: 'none' })
  for (let id = 1; id <= 40; id++) {
    const entry = { password: `p${id} ñ😀"\\`, sistema: 's'.repeat(id * id), usuario: `u${id}` }
    await fetch(`${program.url}/api/createPassword`, { method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(entry) })
    if (id % 7 === 0) await fetch(`${program.url}/api/deletePassword/${id}`, { method: 'POST' })
  }
  await program.stop()
})()
old.admin(origin, ['entry', 'purge', '35', '--yes'])

const bearers = [...tokens.map(token => `Authorization: Bearer ${token}`), 'Authorization: Bearer {{token}}',
  'Authorization: bearer  pes_none']
const open = { 'extra-routes': 'on', page: 'off' }
const bearer = { auth: 'bearer', 'login-limit': '0', page: 'off' }
const CONFIGURATIONS: { readonly [name: string]: Configuration } = {
  open: { flags: { ...open, 'extra-routes': 'off' }, sort: { fields: [] }, share: 3 },
  'page, names and origins': { flags: { page: 'on', 'cors-origins': 'https://app.example',
    'allowed-hosts': 'vault.example' }, sort: { fields: ['Origin: https://app.example'] } },
  'extra routes': { flags: open, sort: { fields: [] } },
  bearer: { flags: { ...bearer, 'extra-routes': 'on' }, sort: { fields: bearers }, share: 2 },
  'bearer, abilities and origins': { flags: { ...bearer, abilities: 'listPassword=any,createPassword=admin',
    'cors-origins': 'https://app.example', 'token-ttl-minutes': '60' }, sort: { fields: bearers } },
  TLS: { flags: { ...open, ...certificateFiles(freshFolder(scope)) }, sort: { fields: [] } },
  'TLS, bearer': { flags: { ...bearer, ...certificateFiles(freshFolder(scope)), 'cors-origins': 'https://app.example' },
    sort: { fields: bearers } },
  'production behind a proxy': { flags: { ...bearer, 'trust-proxy': '127.0.0.1' }, env: { NODE_ENV: 'production' },
    sort: { fields: bearers.flatMap(one => [`${one}\r\nX-Forwarded-Proto: https`, one]) } },
  'production with TLS': { flags: { ...open, ...certificateFiles(freshFolder(scope)) },
    env: { NODE_ENV: 'production', AUTH: 'none' }, sort: { fields: [] }, share: 0.5 },
  limited: { flags: { ...open, 'rate-limit': '5' }, sort: { fields: [] }, countsClients: true },
  'limited by user': { flags: { ...bearer, 'login-limit': '2', 'rate-limit': '1000', 'rate-limit-by': 'user' },
    sort: { fields: bearers }, countsClients: true },
  'limited behind a proxy': { flags: { ...open, 'rate-limit': '8', 'trust-proxy': '127.0.0.0/8' },
    sort: { fields: ['X-Forwarded-For: 10.0.0.1', 'X-Forwarded-For: 2001:db8::1'] }, share: 0.5 },
  'small bodies': { flags: { ...open, 'max-body-bytes': '60' }, sort: { fields: [], maxBody: 60 } },
  'large bodies': { flags: { ...open, 'max-body-bytes': '300000' }, sort: { fields: [], maxBody: 300_000 },
    share: 0.3 },
  'in memory, health for all': { flags: { ...open, journal: 'memory', health: 'public', metrics: 'off' },
    sort: { fields: [], paths: ['/healthz', '/metrics'] } }
}

/** What a connection heard: each answer, or what stands for the end of it. */
interface Heard {
  readonly answers: readonly RawAnswer[]
  /** `stays`, `ends`, `stands still`, or what could not be read. */
  readonly end: string
}

/** One of the two programs, and what it has said that the next requests may use. */
class Side {
  readonly build: Build
  readonly configuration: Configuration
  program: Program | undefined
  #steps = new Steps()
  #tags = new Map<string, string[]>()
  #meanings = new Map<string, string>()
  #token = 'pes_none'
  readonly wrong: string[] = []

  constructor(build: Build, configuration: Configuration) {
    this.build = build
    this.configuration = configuration
  }

  async start(): Promise<void> {
    await this.end()
    const data = join(freshFolder(this.#steps), 'data')
    cpSync(origin, data, { recursive: true })
    this.#tags.clear()
    this.#meanings.clear()
    this.program = await this.build.start(this.#steps, data, this.configuration.flags, this.configuration.env)
  }

  async end(): Promise<void> {
    await this.#steps.end()
    this.#steps = new Steps() // one that has ended takes no more
  }

  #filled(piece: string | Buffer): Buffer {
    const bytes = Buffer.from(piece)
    if (!bytes.includes('{{')) return bytes
    const text = bytes.toString('latin1').replace(/\{\{(tag|old|token) ?(\d*)\}\}/g, (_all, what: string, id: string) =>
      what === 'token' ? this.#token : (this.#tags.get(id) ?? [])[what === 'tag' ? 0 : 1] ?? '"none"')
    return Buffer.from(text, 'latin1')
  }

  async hear({ pieces, requests, awaitsLeave = false, halfCloses = false,
    from = '127.0.0.1' }: Script): Promise<Heard> {
    const { hostname, port, protocol } = new URL(this.program!.url)
    const place = { host: hostname, port: Number(port), localAddress: from, allowHalfOpen: true }
    const socket: Socket = protocol === 'https:' ? connectTls({ ...place, rejectUnauthorized: false })
      : connectTcp(place)
    socket.setNoDelay(true)
    const answers: RawAnswer[] = []
    let received = Buffer.alloc(0)
    let isOver = false
    let problem = ''
    let finals = 0
    let wake = (): void => {}
    const lines = [...requests]
    socket.on('data', bytes => {
      received = Buffer.concat([received, bytes])
      try {
        for (;;) {
          const line = lines[finals] ?? 'GET /'
          const isToHead = line.startsWith('HEAD ') || line.startsWith('? ') &&
            /^HTTP\/1\.1 [^\0]*?\r\n\r\n(HTTP\/1\.1|$)/.test(received.toString('latin1'))
          const parsed = parseAnswer(received, isToHead)
          if (parsed === undefined) break
          received = received.subarray(parsed.bytes)
          if (parsed.answer.status >= 200) finals++
          answers.push(parsed.answer)
        }
      } catch (error) { problem = (error as Error).message }
      wake()
    })
    socket.on('error', () => {})
    socket.on('end', () => { isOver = true; wake() })
    socket.on('close', () => { isOver = true; wake() })
    const stillMs = requests.some(line => /\/(login|changeOwnPassword)/.test(line)) ? STILL_HASHING_MS : STILL_MS
    const until = async (holds: () => boolean): Promise<boolean> => {
      const endMs = performance.now() + stillMs
      while (!holds() && !isOver && problem === '') {
        if (performance.now() > endMs) return false
        await new Promise<void>(resolve => {
          const timer = setTimeout(resolve, stillMs)
          wake = () => { clearTimeout(timer); resolve() }
        })
      }
      return true
    }
    await once(socket, protocol === 'https:' ? 'secureConnect' : 'connect')
    for (const [at, piece] of pieces.entries()) {
      if (at === 1 && awaitsLeave && (!await until(() => answers.length > 0) || answers[0]?.status !== 100)) break
      if (socket.writable) await new Promise<void>(resolve => { socket.write(this.#filled(piece), () => resolve()) })
      if (!awaitsLeave && pieces.length === 2 && at === 0) await new Promise(resolve => setTimeout(resolve, 2))
    }
    if (halfCloses) socket.end()
    let end = 'stays'
    const isDone = await until(() => !halfCloses && finals >= requests.length &&
      answers.at(-1)?.headers['connection'] !== 'close')
    if (problem !== '') end = problem
    else if (isOver) end = received.length > 0 ? `ends within an answer: ${received.toString('latin1', 0, 100)}`
      : 'ends'
    else if (!isDone) end = `stands still after ${finals} answers`
    else {
      const wanted = finals + 1
      lines.push('GET /')
      lines[finals] = 'GET /probe'
      if (socket.writable) socket.write(message('GET', '/probe'))
      if (!await until(() => finals >= wanted)) end = 'stays, and does not answer'
      else if (finals >= wanted) answers.pop()
      else end = 'ends behind the answer'
    }
    socket.destroy()
    this.#learn(requests, answers)
    return { answers, end }
  }

  /** Takes note of tags and tokens, and of a tag that stands for two texts. */
  #learn(requests: readonly string[], answers: readonly RawAnswer[]): void {
    for (const [i, { json, headers }] of answers.filter(({ status }) => status >= 200).entries()) {
      const entry = json?.passwords ?? json?.password
      const tag = headers['etag']
      if (typeof json?.token === 'string') this.#token = json.token
      if (tag === undefined || typeof entry?.id !== 'number') continue
      const id = String(entry.id)
      const meaning = JSON.stringify(entry)
      if ((this.#meanings.get(`${id} ${tag}`) ??
        meaning) !== meaning) this.wrong.push(`${tag} stands for two texts (${requests[i]})`)
      this.#meanings.set(`${id} ${tag}`, meaning)
      const known = this.#tags.get(id) ?? []
      if (known[0] !== tag) this.#tags.set(id, [tag, ...known].slice(0, 2))
    }
  }
}

/** What of an answer is compared. */
function shown(answer: RawAnswer): Shown {
  const { status, line, headers, body } = answer
  const fields: Record<string, string> = { status: line }
  for (const [name, value = ''] of Object.entries(headers)) fields[name] = normalized(name, value, answer)
  const isJson = (headers['content-type'] ?? '').includes('json')
  const bytes = isJson && headers['content-encoding'] === 'gzip' && body.length > 0 ? gunzipSync(body) : body
  const text = isJson || status < 200 ? bytes.toString() : bytes.toString('latin1')
  fields['body'] = text
    .replace(/"id":"[0-9a-f]{12}"/g, '"id":"…"') // of a session
    .replace(/"token":"pes_[A-Za-z0-9_-]+"/, '"token":"pes_…"')
    .replace(/"(time|changed|deleted|issued|expires|unrecordedBefore)":"[0-9T:.Z-]+"/g, '"$1":"…"')
  // Metrics count what went before, differences included: their names and labels are compared.
  if (headers['content-type']?.startsWith('text/plain')) {
    fields['body'] = [...new Set(text.replace(/"[^"]*"/g, '""').replace(/ [0-9.e+-]+$/gm, '').split('\n'))].join('\n')
  }
  const isOther = fields['body'] !== text || bytes !== body
  if (isOther && fields['content-length'] !== undefined) fields['content-length'] = '…'
  return fields
}

function normalized(name: string, value: string, { status, headers }: RawAnswer): string {
  if (name === 'date') return Number.isNaN(Date.parse(value)) ? value : '…'
  if (name === 'x-request-id') return /^[0-9a-f-]{36}$/.test(value) ? '…' : value
  if (name === 'etag' && (headers['content-type']?.includes('json') ?? true)) { // a 304 has no type
    return /^"[A-Za-z0-9_-]{1,64}"$/.test(value) ? '"…"' : value
  }
  // The two windows have not begun in the same second.
  if (name === 'retry-after' && status === 429) return /^([1-9]|[1-5]\d|60)$/.test(value)
    ? '1 to 60' : value
  if (name === 'content-length' && headers['content-type']?.startsWith('text/plain')) return '…'
  return value
}

interface Difference { readonly what: string, readonly of: string, readonly by: string }

const brief = (text: string, length = 300): string => text.length > length
  ? `${text.slice(0, length)}… (${text.length})` : text

/** Which request an answer is to; all that was sent, if that is no request. */
function requestOf({ pieces, requests }: Script, finals: number): string {
  const line = requests[finals] ?? '?'
  if (!line.startsWith('?') && !line.endsWith('?')) return requests.length > 1 ? `${line} and others` : line
  return pieces.map(one => Buffer.from(one).toString('latin1')).join('')
}

/** The first difference that is not meant, and why the others are. */
function compared(a: Heard, b: Heard, sent: Script): { readonly fault?: Difference, readonly why: readonly string[] } {
  const why: string[] = []
  let finals = 0
  for (let i = 0; i < Math.max(a.answers.length, b.answers.length); i++) {
    const [one, other] = [a.answers[i], b.answers[i]]
    if (one === undefined || other === undefined) return { why, fault: {
      what: `answers ${a.answers.length}, ${b.answers.length}`, of: one?.line ?? a.end, by: other?.line ?? b.end } }
    const [old, young] = [shown(one), shown(other)]
    const verdict = judge(MEANT, requestOf(sent, finals), old, young)
    why.push(...verdict.why)
    if (verdict.isOther) return { why }
    const [name] = verdict.left
    if (name !== undefined) return { why, fault: { what: name, of: old[name] ?? 'none', by: young[name] ?? 'none' } }
    if (one.status >= 200) finals++
  }
  return a.end === b.end ? { why } : { why, fault: { what: 'connection', of: a.end, by: b.end } }
}

const keyOf = ({ what, of, by }: Difference): string => {
  const [left, right] = what === 'body' ? bodiesFrom(of, by) : [of, by]
  return `${what}: ${brief(left, 80)} | ${brief(right, 80)}`.replace(/\d{5,}/g, 'N')
}

/** From a little before they differ. */
function bodiesFrom(of: string, by: string): readonly [string, string] {
  const at = Math.max(0, [...of].findIndex((character, i) => character !== by[i]) - 40)
  return [of.slice(at), by.slice(at)]
}

const verdicts = new Verdicts()

function note(name: string, { kind, pieces }: Script, found: Difference): void {
  const { what, of, by } = found
  const [left, right] = what === 'body' ? bodiesFrom(of, by) : [of, by]
  const sent = JSON.stringify(Buffer.concat(pieces.map(one => Buffer.from(one))).toString('latin1'))
  verdicts.fault(keyOf(found), `[${name}] ${kind}\n    sent ${brief(sent, 500)}\n    old  ${brief(left)}\n    new  ${
    brief(right)}`)
}

/** What a program holds, as far as clients can see it: the first user's count too. */
async function stateOf(side: Side): Promise<string> {
  const fields = [`Authorization: Bearer ${tokens[0]}`, 'X-Forwarded-Proto: https', 'X-Forwarded-For: 192.0.2.77']
  const heard = await side.hear({ kind: '', pieces: [message('GET', '/api/listPassword', undefined, fields)],
    requests: ['GET /api/listPassword'], from: '127.77.0.1' })
  const [answer] = heard.answers
  return answer === undefined ? heard.end : `${answer.headers['x-ratelimit-remaining']} ${answer.text}`
}

/** Starts both again with the same entries, if they have others by now, or have counted otherwise. */
async function inStep(sides: readonly [Side, Side]): Promise<void> {
  const [old, young] = await Promise.all(sides.map(stateOf))
  if (old !== young) await Promise.all(sides.map(side => side.start()))
}

/** How often the old program has answered what, in a configuration: so that a table that reaches nothing is seen. */
const statuses = new Map<number, number>()

async function compare(name: string, configuration: Configuration, random: ReturnType<typeof seeded>,
  most: number): Promise<number> {
  const sides = [new Side(old, configuration), new Side(young, configuration)] as const
  try {
    await Promise.all(sides.map(side => side.start()))
  } catch (error) {
    verdicts.fault(`start of ${name}`, brief((error as Error).message))
    return 0
  }
  statuses.clear()
  const scripts = [...tables(configuration.sort)].filter((_, row) => row % every === 0)
  let done = 0
  for (; done < Math.max(most, scripts.length); done++) {
    const one = scripts[done] ?? script(random, configuration.sort)
    // A hundred of them have an address in common, so that limits are reached, and seconds do not matter much.
    const client = Math.floor(done / 20)
    const from = configuration.countsClients === true ? `127.${1 + (client >> 14 & 63)}.${client >> 7 & 127}.${1 +
      (client & 127)}` : '127.0.0.1'
    const both = (): Promise<readonly [Heard, Heard]> => Promise.all([heardBy(sides[0]), heardBy(sides[1])])
    const heardBy = (side: Side): Promise<Heard> => side.hear({ ...one, from })
      .catch((error: Error) => ({ answers: [], end: error.message }))
    const [a, b] = await both()
    verdicts.comparisons++
    for (const { status } of a.answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    const { fault, why } = compared(a, b, one)
    // Older trees end tokens of programs, too.
    if (one.requests.some(line => /endOwnSessions/.test(line)) && a.answers.some(({ status }) => status === 200)) {
      await Promise.all(sides.map(side => side.start()))
    }
    for (const sentence of why) verdicts.meant(sentence)
    if (fault === undefined && why.length === 0) continue
    await inStep(sides)
    if (fault === undefined) continue
    if (verdicts.hasFault(keyOf(fault))) { note(name, one, fault); continue }
    // What comes by chance in one of them does not come again.
    let isByChance = false
    for (let tries = 0; tries < 3 && !isByChance; tries++) {
      await inStep(sides)
      isByChance = compared(...await both(), one).fault === undefined
    }
    if (isByChance) verdicts.meant(`by chance, and not again: ${keyOf(fault)}`)
    else note(name, one, fault)
    await inStep(sides)
  }
  for (const side of sides) {
    for (const one of side.wrong) note(name, { kind: 'tags', pieces: [], requests: [] },
      { what: 'tag', of: side.build.dist, by: one })
    await side.end()
  }
  return done
}

assertInChangelog(MEANT.map(({ said, section = 'Client authors' }) => ({ said, section })))
console.log(`--count ${count} --seed ${seed}`)
const random = seeded(seed)
const names = Object.keys(CONFIGURATIONS).filter(name => only === undefined || name.includes(only))
const shares = names.reduce((sum, name) => sum + (CONFIGURATIONS[name]!.share ?? 1), 0)
for (const name of names) {
  const begunMs = performance.now()
  const done = await compare(name, CONFIGURATIONS[name]!, random,
    Math.ceil(count * (CONFIGURATIONS[name]!.share ?? 1) / shares))
  const seconds = ((performance.now() - begunMs) / 1000).toFixed(1)
  const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, times]) => `${status}: ${times}`).join(', ')
  console.log(`${name}: ${done} connections, ${seconds} s, ${verdicts.faults} kinds of fault so far; ${counts}`)
}
await scope.end()
verdicts.end()
