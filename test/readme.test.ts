/** The README is true: its example is run as it stands, its tables, links and numbers are held to the program's. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import test, { type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { OPERATIONS } from '../src/api/entries.ts'
import { FIRST_HASH, NONCE_BYTES } from '../src/journal/line.ts'
import { MAX_JSON_DEPTH_LEVELS, RATE_LIMIT_REQUESTS, SHUTDOWN_TIMEOUT_MS } from '../src/limits.ts'
import { SETTINGS } from '../src/settings.ts'
import { freshFolder, send, startService } from './support/service.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')
const SECURITY = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8')
const MANIFEST = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

const ANSWER = '# → '

interface Step {
  readonly command: string
  readonly answer: string
}

/** The fenced blocks of shell commands. */
function shellBlocks(markdown: string): string[] {
  return [...markdown.matchAll(/^```sh\n([^]*?)^```$/gm)].map(found => found[1]!)
}

/** The commands of a block, each with the answer that the line after it shows. */
function stepsOf(block: string): Step[] {
  const steps: Step[] = []
  let command: string[] = []
  for (const line of block.split('\n')) {
    if (!line.startsWith(ANSWER)) { command.push(line); continue }
    steps.push({ command: command.join('\n').trim(), answer: line.slice(ANSWER.length) })
    command = []
  }
  assert.equal(command.join('').trim(), '', 'the block ends in a command without an answer')
  return steps
}

/** Starts the program as built, on a free port, and gives its address; it is stopped after the test. */
async function startProgram(t: TestContext): Promise<string> {
  // Hooks run in the order in which they were given: the program has to end before its folder goes.
  let stop = async (): Promise<void> => {}
  t.after(() => stop())
  const env = { PATH: process.env['PATH'], DATA_DIR: freshFolder(t), PORT: '0' }
  const child = spawn(process.execPath, ['dist/server.js'], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = once(child, 'exit')
  stop = async () => {
    child.kill('SIGTERM')
    assert.deepEqual(await exited, [0, null], 'a stop by SIGTERM ends with 0')
  }
  let errors = ''
  child.stderr.on('data', bytes => { errors += String(bytes) })
  let url = ''
  for await (const line of createInterface(child.stdout)) {
    url = /^address +(\S+)$/.exec(line)?.[1] ?? url
    if (line === 'ready') return url
  }
  throw new Error(`the program ended before it was ready: ${errors}`)
}

/** Links of a text that lead nowhere: to files that are not there, or headings that no file has. */
function brokenLinks(markdown: string, read: (path: string) => string | undefined): string[] {
  const found = markdown.matchAll(/\[[^\]]*\]\(([^)\s]*)[^)]*\)|^\[[^\]]+\]: *(\S+)/gm)
  return [...found].map(([, inline, below]) => inline ?? below!).filter(link => {
    if (/^https:/.test(link)) return !URL.canParse(link)
    const [path = '', heading] = decodeURIComponent(link).split('#')
    const text = path === '' ? markdown : read(path)
    return text === undefined || (heading !== undefined && !slugs(text).includes(heading))
  })
}

/** The names that headings can be linked by. */
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

test('the example with curl gives what it says, command by command', { timeout: 10_000 }, async t => {
  const block = shellBlocks(README).find(one => one.includes('curl '))
  assert.ok(block !== undefined, 'there is an example with curl')
  const steps = stepsOf(block)
  assert.equal(steps.length, block.match(/^curl /gm)?.length, 'each curl has its answer')
  const url = await startProgram(t)
  const home = freshFolder(t)
  // Nothing of the machine's: no .curlrc, no proxy, no other locale.
  const env = { PATH: process.env['PATH'], HOME: home, CURL_HOME: home, NO_PROXY: '*', LC_ALL: 'C' }
  const shown = `http://${SETTINGS.host.fallback}:${SETTINGS.port.fallback}`
  for (const { command, answer } of steps) {
    assert.ok(command.includes(shown), `${command} goes to ${shown}`)
    const run = ['-euo', 'pipefail', '-c', command.replaceAll(shown, url)]
    const { stdout } = await promisify(execFile)('bash', run, { env, timeout: 5_000 })
    assert.equal(stdout, answer, command)
  }
})

test('the example shows each of the five operations', () => {
  const block = shellBlocks(README).find(one => one.includes('curl ')) ?? ''
  const shown = new Set([...block.matchAll(/\/api\/(\w+)/g)].map(found => found[1]))
  assert.deepEqual([...shown].sort(), [...OPERATIONS].sort())
})

test('an example whose last command has no answer is noticed', () => {
  assert.deepEqual(stepsOf('a \\\n  b\n# → 1\n\nc\n# → 2\n'),
    [{ command: 'a \\\n  b', answer: '1' }, { command: 'c', answer: '2' }])
  assert.throws(() => stepsOf('a\n# → 1\nb\n'), /without an answer/)
})

test('the table of settings is the one that the program reads by', () => {
  const [, table] = /^<!-- settings -->\n([^]*?)\n<!-- \/settings -->$/m.exec(README) ?? []
  const rows = Object.values(SETTINGS).map(({ variable, flag, shown, help }) =>
    `| \`${variable}\` | \`--${flag}\` | ${shown} | ${help} |`)
  const header = ['| variable | flag | default | what it sets |', '| --- | --- | --- | --- |']
  assert.equal(table, [...header, ...rows].join('\n'))
})

test('every link leads somewhere', () => {
  const read = (path: string): string | undefined => path === 'A.md' ? '## One, two & `three`' : undefined
  const bad = '[a](A.md) [b](B.md) [c](A.md#one-two--three) [d](A.md#four) [e](https://) [f](#g) ' +
    '[h](http://h/)\n[i]: J.md'
  assert.deepEqual(brokenLinks(bad, read), ['B.md', 'A.md#four', 'https://', '#g', 'http://h/', 'J.md'])
  assert.deepEqual(brokenLinks(README, readInside), [])
  assert.deepEqual(brokenLinks(SECURITY, readInside), [])
})

test('every command that the texts name is there', () => {
  const text = README + SECURITY
  const programs = new Set([...text.matchAll(/\bdist\/([a-z-]+)\.js\b/g)].map(found => found[1]!))
  assert.ok(programs.has('server'))
  assert.deepEqual([...programs].filter(name => readInside(`src/${name}.ts`) === undefined), [])
  const scripts = new Set([...text.matchAll(/\bnpm (?:run )?(start|test|[a-z-]+(?=`))/g)].map(found => found[1]!))
  assert.ok(scripts.has('start') && scripts.has('test'))
  assert.deepEqual([...scripts].filter(name => !(name in MANIFEST.scripts)), [])
})

test('every flag and variable that the texts name is one of the settings', () => {
  const known = Object.values(SETTINGS).map(({ variable }) => variable)
  const notOurs = ['NODE_ENV', 'O_APPEND', 'O_DSYNC']
  const named = [...(README + SECURITY).matchAll(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g)].map(found => found[1]!)
  assert.ok(named.includes('DATA_DIR'))
  assert.deepEqual(named.filter(name => !known.includes(name) && !notOurs.includes(name)), [])
})

const CLAIMS: readonly (readonly [claim: string, isTrue: boolean])[] = [
  [`allows ${RATE_LIMIT_REQUESTS} requests a minute`, RATE_LIMIT_REQUESTS === SETTINGS.rateLimit.fallback],
  [`nests deeper than ${MAX_JSON_DEPTH_LEVELS} levels`, true],
  [`nonce (${NONCE_BYTES} bytes)`, true],
  [`(${FIRST_HASH.length} zeros before the first line)`, /^0+$/.test(FIRST_HASH)],
  ['within about ten seconds', SHUTDOWN_TIMEOUT_MS === 10_000],
  [`It needs Node ${String(MANIFEST.engines.node).replace('>=', '')} or later`, true],
  [`serves on http://${SETTINGS.host.fallback}:${SETTINGS.port.fallback}`, true],
  [`it listens on \`${SETTINGS.host.fallback}\``, true]
]

for (const [claim, isTrue] of CLAIMS) {
  test(`the README says "${claim}", and so does the program`, () => {
    assert.ok(README.replaceAll('\n', ' ').includes(claim), 'the README says so')
    assert.ok(isTrue, 'the program does so')
  })
}

test('every source and test that SECURITY.md names stands', () => {
  const named = [...SECURITY.matchAll(/`((?:src|test)\/[^`]+)`/g)].map(match => match[1]!)
  assert.ok(named.length > 30)
  for (const path of named) assert.ok(existsSync(path), path)
})

test('the order to read in leaves out no source but those of the page', () => {
  const [, order] = /^## Reading this code\n([^]*?)^## /m.exec(README) ?? []
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true }).map(String).filter(path => path.endsWith('.ts'))
  assert.ok(sources.includes(join('journal', 'memory.ts')))
  assert.deepEqual(sources.filter(path => {
    const [room, name] = path.split('/')
    return ![path, name, `${room}/`].some(one => order!.includes(`\`${one}\``))
  }), [])
})

test('the journal looks as the README says: the keys in their order, the types, the key file', async t => {
  const { url, folder } = await startService(t)
  await send(url, 'POST', '/api/createPassword', { password: 'p', sistema: 'ñ', usuario: 'u' })
  await send(url, 'POST', '/api/updatePassword/1', { password: 'q' })
  await send(url, 'POST', '/api/deletePassword/1')
  const [, example] = /^ {4}(\{"seq":1,.*\})$/m.exec(README) ?? []
  const order = Object.keys(JSON.parse(example!))
  const text = readFileSync(join(folder, 'journal.jsonl'), 'latin1')
  assert.match(text, /^[\x21-\x7e\n]*$/, 'ASCII without white space')
  const records = text.trimEnd().split('\n').map(line => JSON.parse(line))
  for (const record of records) assert.deepEqual(Object.keys(record), order)
  const types = records.map(({ type }) => type)
  assert.deepEqual(types, ['entry.created', 'entry.updated', 'entry.deleted'])
  for (const type of types) assert.ok(README.includes(`\`${type}\``), type)
  assert.match(readFileSync(join(folder, 'journal.key'), 'latin1'), /^[0-9a-f]{64}\n$/)
  for (const file of ['journal.jsonl', 'journal.key']) {
    assert.equal(statSync(join(folder, file)).mode & 0o777, 0o600, file)
  }
})

test('the README names every metric, and no other', async t => {
  const { url } = await startService(t)
  const text = await (await fetch(`${url}/metrics`)).text()
  const measured = [...text.matchAll(/^# TYPE (\S+) /gm)].map(found => found[1]!)
  const [, table] = /^\| metric \| what it counts \|\n([^]*?)\n\n/m.exec(README) ?? []
  const named = table!.split('\n').slice(1).flatMap(row => [...row.split('|')[1]!.matchAll(/`(\w+)`/g)])
  assert.deepEqual(named.map(found => found[1]).sort(), measured.sort())
})
