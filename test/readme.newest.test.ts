/** The documents are true: their examples run as written; tables, links, commands and numbers match the program's. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Setting } from '../src/core-settings.ts'
import { OPERATIONS } from '../src/contract.ts'
import { FIRST_HASH, NONCE_BYTES } from '../src/journal/line.ts'
import {
  MAX_JSON_DEPTH_LEVELS, RATE_LIMIT_REQUESTS, RATE_LIMIT_WINDOW, RATE_LIMIT_WINDOW_SECONDS, SHUTDOWN_TIMEOUT_MS
} from '../src/limits.ts'
import * as parts from '../src/parts.ts'
import type { Part } from '../src/part.ts'
import { SETTINGS } from '../src/settings.ts'
import { done, initialized } from './support/admin.ts'
import { startProgram } from './support/program.ts'
import { missing } from './support/programs.ts'
import { freshFolder, startService } from './support/service.ts'
import { isSource, pathsIn, wordsFrom, wordsOfSources } from './support/words.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MANIFEST = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const SETTINGS_HEADING = ['| variable | flag | default | what it sets |', '| --- | --- | --- | --- |']

const DOCUMENTS: ReadonlyMap<string, string> = new Map(
  ['README.md', 'SECURITY.md', 'CHANGELOG.md', 'test/README.md',
    ...readdirSync(join(ROOT, 'src'), { recursive: true }).map(String)
    .filter(path => path.endsWith('.md')).map(path => join('src', path))]
    .map(path => [path, readFileSync(join(ROOT, path), 'utf8')]))
const README = DOCUMENTS.get('README.md')!
const ALL = [...DOCUMENTS.values()].join('\n')

/** A curl command of an example, and the answer shown on the line after it. */
interface Step {
  readonly command: string
  readonly answer: string
}

/** The commands of the shell block with the curl examples. */
function curlSteps(markdown: string): Step[] {
  const blocks = [...markdown.matchAll(/^```sh\n([^]*?)^```$/gm)].map(found => found[1]!)
  const block = blocks.find(one => one.includes('curl ')) ?? ''
  const steps = [...block.matchAll(/(?<command>curl [^]*?)\n# → (?<answer>.*)\n/g)].map(({ groups }) => groups as never)
  assert.equal(steps.length, block.match(/^curl /gm)?.length, 'each curl has its answer')
  return steps
}

/** Links of a document that lead nowhere: to files that are not there, or headings that no file has. */
function brokenLinks(path: string, markdown: string): string[] {
  const found = markdown.matchAll(/\[[^\]]*\]\(([^)\s]*)[^)]*\)|^\[[^\]]+\]: *(\S+)/gm)
  return [...found].map(([, inline, below]) => inline ?? below!).filter(link => {
    if (/^https:/.test(link)) return !URL.canParse(link)
    const [target = '', heading] = decodeURIComponent(link).split('#')
    const text = target === '' ? markdown : readInside(join(dirname(path), target))
    return text === undefined || (heading !== undefined && !slugs(text).includes(heading))
  })
}

function slugs(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ +(.+)$/gm)].map(found =>
    found[1]!.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-'))
}

/** The text of a file of the repository, empty for a folder; undefined where there is none, or it is outside. */
function readInside(path: string): string | undefined {
  const full = join(ROOT, path)
  if (relative(ROOT, full).startsWith('..') || !existsSync(full)) return undefined
  return statSync(full).isDirectory() ? '' : readFileSync(full, 'utf8')
}

test('the installation goes from top to bottom: the unit is there and was read before it is enabled', () => {
  const text = DOCUMENTS.get('src/parts/operator/README.md')!
  const places = ['admin() {', '[Install]', 'admin init\n', 'systemctl daemon-reload\n',
    'systemctl enable --now'].map(step => text.indexOf(step))
  assert.deepEqual(places, places.toSorted((a, b) => a - b))
  assert.ok(places[0]! > 0)
})

test('the curl examples give what they say, and show each of the five operations', {
  timeout: 10_000,
  skip: missing('curl')
}, async t => {
  const steps = curlSteps(README)
  const shown = new Set(steps.flatMap(({ command }) => /\/api\/(\w+)/.exec(command)?.[1] ?? []))
  assert.deepEqual([...shown].sort(), Object.keys(OPERATIONS).sort())
  const { url } = await startProgram(t, { flags: { 'rate-limit': String(RATE_LIMIT_REQUESTS) } })
  const home = freshFolder(t)
  // No .curlrc, proxy or locale of this machine.
  const env = { PATH: process.env['PATH'], HOME: home, CURL_HOME: home, NO_PROXY: '*', LC_ALL: 'C' }
  const origin = `http://${SETTINGS.host.fallback}:${SETTINGS.port.fallback}`
  for (const { command, answer } of steps) {
    assert.ok(command.includes(origin), `${command} goes to ${origin}`)
    const run = ['-euo', 'pipefail', '-c', command.replaceAll(origin, url)]
    const { stdout } = await promisify(execFile)('bash', run, { env, timeout: 5_000 })
    assert.equal(stdout, answer, command)
  }
})

test('the commands of "Protect it" make three users and a token, and what they say of them holds; the entries stay',
  async t => {
    const [, block] = /^## Protect it\n[^]*?^```sh\n([^]*?)^```$/m.exec(README)!
    const lines = block!.trimEnd().split('\n').map(line => line.replace(/ +#.*/, ''))
    assert.equal(lines.pop(), 'AUTH=bearer node dist/server.js')
    const folder = await initialized(t)
    for (const group of ['servers', 'office', 'other']) {
      await done(folder, `entry add --system ${group} --user u --group ${group} --password-stdin`, 'p')
    }
    const secret = 'a long password of somebody'
    const printed: string[] = []
    for (const line of lines) {
      const [, words] = /^node dist\/admin\.js (.*)$/.exec(line)!
      const asks = words!.startsWith('user add')
      printed.push(await done(folder, `${words}${asks ? ' --password-stdin' : ''}`, asks ? secret : ''))
    }
    const [script] = /\bpes_\S+/.exec(printed.at(-1)!)!
    const { url } = await startProgram(t, { flags: { data: folder, auth: 'bearer' } })
    const headers = { 'Content-Type': 'application/json' }
    const systemsOf = async (token?: string): Promise<unknown> => {
      const asked = token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } }
      const answer = await fetch(`${url}/api/listPassword`, asked)
      return answer.status === 200 ? ((await answer.json()) as any[]).map(({ sistema }) => sistema) : answer.status
    }
    const loggedIn = async (email: string): Promise<string> => {
      const body = JSON.stringify({ email, password: secret })
      const answer = await fetch(`${url}/api/login`, { method: 'POST', headers, body })
      return (await answer.json() as any).token
    }
    assert.deepEqual([await systemsOf(), await systemsOf(script), await systemsOf(await loggedIn('ana@example.org')),
      await systemsOf(await loggedIn('eva@example.org'))],
      [401, ['servers'], ['servers', 'office', 'other'], ['servers', 'office']])
    const body = JSON.stringify({ password: 'p', sistema: 's', usuario: 'u' })
    const denied = await fetch(`${url}/api/createPassword`,
      { method: 'POST', headers: { ...headers, Authorization: `Bearer ${script}` }, body })
    assert.equal(denied.status, 403, 'it may only read')
  })

test('each settings table is what the program reads by: the core\'s on its page, a part\'s in its README', () => {
  const ofParts = Object.entries<Part>(parts).map(([name, { settings }]) => [`src/parts/${name.replace(/[A-Z]/g,
    '-$&').toLowerCase()}/README.md`, settings] as const)
  const inParts = new Set(ofParts.flatMap(([, settings]) => Object.keys(settings)))
  const ofCore = Object.fromEntries(Object.entries(SETTINGS).filter(([name]) => !inParts.has(name)))
  const operator = 'src/parts/operator/README.md' // this part has no settings of its own
  const page = 'src/parts/operator/COMMANDS.md'
  for (const [path, settings] of [...ofParts.filter(([path]) => path !== operator), [page, ofCore]] as const) {
    const table = SETTINGS as unknown as { readonly [name: string]: Setting<unknown> }
    const rows = Object.keys(settings).map(name => table[name]!).map(({ variable, flag, shown, help }) =>
      `| \`${variable}\` | \`--${flag}\` | ${shown} | ${help} |`)
    const [found] = /(?<=^<!-- settings -->\n)[^]*?(?=\n<!-- \/settings -->$)/m.exec(DOCUMENTS.get(path) ?? '') ?? []
    assert.equal(found, rows.length === 0 ? undefined : [...SETTINGS_HEADING, ...rows].join('\n'), path)
  }
})

test('every link leads somewhere', () => {
  assert.deepEqual(brokenLinks('README.md', '[a](src/README.md#words) [b](B.md) [c](#d)'), ['B.md', '#d'])
  for (const [path, text] of DOCUMENTS) assert.deepEqual(brokenLinks(path, text), [], path)
})

test('every program, script and setting that the documents name is there', () => {
  const programs = new Set([...ALL.matchAll(/\bdist\/([a-z-]+)\.js\b/g)].map(found => found[1]!))
  assert.deepEqual([...programs].filter(name => readInside(`src/${name}.ts`) === undefined), [])
  const scripts = new Set([...ALL.matchAll(/\bnpm (?:run )?(start|test|[a-z]+(?::[a-z]+)?(?=[` ]))/g)].map(found =>
    found[1]!))
  const ofNpm = ['ci', 'pack', 'install']
  assert.deepEqual([...scripts].filter(name => !(name in MANIFEST.scripts) && !ofNpm.includes(name)), [])
  const inBraces = Object.entries<string>(MANIFEST.scripts).filter(([, text]) => /(?<!\$)\{[^}]*,/.test(text))
  assert.deepEqual(inBraces, [], 'sh, which runs scripts, expands no braces')
  const known = Object.values(SETTINGS).map(({ variable }) => variable)
  const notOurs = ['NODE_ENV', 'F_FULLFSYNC', 'O_APPEND', 'O_DSYNC', 'PREFIX', 'SEEDS', 'COUNT', 'ALL_STEPS', 'LIVES_S']
  const named = [...ALL.matchAll(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g)].map(found => found[1]!)
  assert.ok(named.includes('DATA_DIR') && programs.has('server') && scripts.has('start'))
  assert.deepEqual(named.filter(name => !known.includes(name) && !notOurs.includes(name)), [])
})

test('every source and test that the documents name exists', () => {
  const named = [...ALL.matchAll(/`((?:src|test)\/[^`*<\s]+)`/g)].map(match => match[1]!)
  assert.ok(named.length > 30)
  for (const path of named) assert.ok(existsSync(join(ROOT, path)), path)
})

const WORDS: { readonly [number: number]: string } = { 6: 'six', 10: 'ten' }

/** Sentences of the documents, each made of the number that the program goes by. */
const CLAIMS: readonly string[] = [
  `allows ${SETTINGS.rateLimit.fallback} requests ${RATE_LIMIT_WINDOW}`,
  `may make ${SETTINGS.rateLimit.fallback} ${RATE_LIMIT_WINDOW}.`,
  `may try ${WORDS[SETTINGS.loginLimit.fallback]} logins ${RATE_LIMIT_WINDOW}`,
  `the current second and the ${RATE_LIMIT_WINDOW_SECONDS - 1} seconds before it`,
  `nests deeper than ${MAX_JSON_DEPTH_LEVELS} levels`,
  `nonce (${NONCE_BYTES} bytes)`,
  `(${FIRST_HASH.length} zeros before the first line)`,
  `within about ${WORDS[SHUTDOWN_TIMEOUT_MS / 1000]} seconds`,
  `The service needs Node ${String(MANIFEST.engines.node).replace('>=', '')} or later`,
  `serves on http://${SETTINGS.host.fallback}:${SETTINGS.port.fallback}`,
  `listens on \`${SETTINGS.host.fallback}\``
]

test('the numbers in the documents are those of the program', () => {
  const text = ALL.replaceAll('\n', ' ')
  for (const claim of CLAIMS) assert.ok(text.includes(claim), claim)
})

/** In thousands, as documents say it. */
const thousands = (words: number): string => `${Math.round(words / 1000)},000 words`

test('how much code there is to read, in all and for each of the three questions, is said in words, as counted', () => {
  const { core, parts } = wordsOfSources()
  const text = README.replaceAll('\n', ' ')
  assert.ok(text.includes(`${thousands(core)} of code`), `the core has ${core} words`)
  assert.ok(text.includes(`${thousands(parts)} more`), `the parts have ${parts} words`)
  const [, table = ''] = /^## Three questions\n([^]*?)(?=^## )/m.exec(DOCUMENTS.get('src/README.md')!) ?? []
  const rows = table.split('\n').filter(line => line.startsWith('| ')).slice(2)
  assert.equal(rows.length, 3)
  for (const row of rows) {
    const [question = '', begin = '', given = ''] = row.split('|').slice(1).map(cell => cell.trim())
    const [roots, taken] = [pathsIn(begin), pathsIn(given)]
    assert.deepEqual([...roots, ...taken].filter(path => !isSource(path)), [], question)
    const words = wordsFrom(roots, taken)
    assert.ok(question.includes(thousands(words)), `${question} asks to read ${words} words`)
  }
})

test('the documents name every metric, and no other', async t => {
  const { url } = await startService(t)
  const text = await (await fetch(`${url}/metrics`)).text()
  const measured = [...text.matchAll(/^# TYPE (\S+) /gm)].map(found => found[1]!)
  const [, table] = /^\| metric \| what it is \|\n([^]*?)\n(?!\|)/m.exec(ALL) ?? []
  const named = table!.split('\n').slice(1).flatMap(row => [...row.split('|')[1]!.matchAll(/`(\w+)`/g)])
  // Only a service with a certificate of its own has this one.
  assert.deepEqual(named.map(found => found[1]).sort(), [...measured, 'pes_certificate_end_seconds'].sort())
})
