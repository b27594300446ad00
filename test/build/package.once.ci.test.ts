/** The package as an embedder has it: packed, installed into an empty project, used from JavaScript and TypeScript. */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import {
  copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, posix } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')
/** What embedders read in full. */
const EMBEDDING = readFileSync(join(ROOT, 'src/README.md'), 'utf8').split('\n## Embedding\n')[1] ?? ''
/** Files besides the compiled program that a package ships, and its documents. */
const DOCUMENTS = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json', 'test/verify.py']
const MANIFEST = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const run = promisify(execFile)
const project = mkdtempSync(join(tmpdir(), 'pes-embedder-'))
let packed: readonly string[] = []
let tarball = ''

before(() => {
  const npm = (...args: string[]): string =>
    execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  const [made] = JSON.parse(npm('pack', '--json', '--ignore-scripts', '--pack-destination', project))
  packed = made.files.map((file: { path: string }) => file.path)
  writeFileSync(join(project, 'package.json'), '{"type":"module","private":true}')
  tarball = made.filename
  npm('install', '--prefix', project, '--offline', '--ignore-scripts', '--no-audit', '--no-fund',
    join(project, tarball))
})
after(() => rmSync(project, { recursive: true, force: true }))

/** Runs a script in the project; gives what it printed. Node runs no longer than the script has something to do. */
async function script(text: string, name: string = 'script.mjs'): Promise<string> {
  writeFileSync(join(project, name), text)
  const { stdout, stderr } = await run(process.execPath, [name], { cwd: project, timeout: 20_000 })
  assert.equal(stderr, '')
  return stdout
}

test('the package holds the compiled program, its types, the page, and what its users read', () => {
  const others = packed.filter(path => !/^dist\/([a-z-]+\/)*[a-z-]+\.(js|d\.ts)$/.test(path))
  const documents = readdirSync(join(ROOT, 'src'), { recursive: true }).map(path => `src/${String(path)}`)
    .filter(path => /\.md$|\/operator\/install\/.|\/page\/[^/]+\.png$/.test(path))
  assert.ok(documents.length > 10)
  assert.deepEqual(others.filter(path =>
    !/\/browser\/[a-z0-9-]+\.(html|css|svg|png|txt|webmanifest)$/.test(path)).sort(),
    [...DOCUMENTS, ...documents].sort())
  assert.ok(packed.includes('dist/parts/page/browser/main.js'))
  assert.deepEqual(packed.filter(path => /\/browser\/.*\.ts$/.test(path)), [])
  for (const path of ['dist/index.js', 'dist/index.d.ts', 'dist/server.js', 'dist/admin.js',
    'dist/parts/page/browser/page.html']) {
    assert.ok(packed.includes(path), path)
  }
})

test('what a document of the package links to is in the package, but for the tests', () => {
  const missing = packed.filter(path => path.endsWith('.md')).flatMap(path => {
    const links = readFileSync(join(ROOT, path), 'utf8').matchAll(/\]\((?!https:|#)([^)#\s]+)/g)
    return [...links].map(([, link]) => posix.join(posix.dirname(path), link!)).map(target => [path, target] as const)
  }).filter(([, target]) => !target.startsWith('test/') && !packed.includes(target))
  assert.deepEqual(missing, [])
})

test('the one file of the package serves a host that has Node and tar, as the README says', async () => {
  const host = mkdtempSync(join(tmpdir(), 'pes-host-'))
  try {
    const [, commands = ''] = /```sh\n(tar -xzf [^]*?)```/.exec(README) ?? []
    const [unpack = '', start = ''] = commands.split('\n')
    copyFileSync(join(project, tarball), join(host, /\S+\.tgz/.exec(unpack)![0]))
    const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` }
    await run('sh', ['-c', unpack], { cwd: host, env })
    const { stdout } = await run('sh', ['-c', `${start.replace(/ *#.*/, '')} --version`], { cwd: host, env })
    assert.equal(stdout, `${MANIFEST.version}\n`)
    await run('sh', ['-c', 'node package/dist/admin.js init'], { cwd: host, env })
    assert.ok(existsSync(join(host, 'data/journal.jsonl')))
  } finally {
    rmSync(host, { recursive: true })
  }
})

test('the example of the README runs in an empty project and prints what it says', async () => {
  const [, example = ''] = /^## Embed it\n[^]*?```js\n([^]*?)```/m.exec(README) ?? []
  const expected = [...example.matchAll(/^\/\/ → (.*)$/gm)].map(([, line]) => `${line}\n`).join('')
  assert.notEqual(expected, '')
  assert.equal(await script(example.replace('listen(8080)', "listen(0, '127.0.0.1')")), expected)
})

test('the table for embedders names all there is', async () => {
  const surface = await script(`import * as all from 'password-entry-service'
const service = await all.openService({ journal: 'memory' })
console.log([all, service, service.accounts].flatMap(Object.keys).join(' '))`)
  const names = [...surface.trim().split(' '), 'log', 'signal', 'prefix', 'production', 'init']
  assert.deepEqual(names.filter(name => !new RegExp(`\\b${name}\\b`).test(EMBEDDING)), [])
})

test('it compiles under strict TypeScript with Node\'s own resolution, and wrong use does not', async () => {
  mkdirSync(join(project, 'node_modules/@types'), { recursive: true })
  for (const name of ['@types/node', 'undici-types']) {
    symlinkSync(join(ROOT, 'node_modules', name), join(project, 'node_modules', name))
  }
  writeFileSync(join(project, 'use.mts'), `
import { createServer } from 'node:http'
import { Failure, openService, type Entry, type EntryChanges, type FailureCode, type Issued, type ListedToken,
  type ListedUser, type Log, type Options, type PublicUser, type Service } from 'password-entry-service'
const log: Log = { info: () => {}, warn: () => {}, access: { write: () => {}, pendingBytes: () => 0 } }
const options: Options = { journal: 'memory', auth: 'bearer', port: 0, allowedHosts: 'a.example,b.example' }
const service: Service = await openService({ ...options, log, prefix: '/vault' })
createServer((request, response) => service.handle(request, response))
const entry: Entry = await service.createPassword({ password: 'a', sistema: 'b', usuario: 'c' })
const changes: EntryChanges = { password: 'd' }
const changed: Entry | undefined = await service.updatePassword(entry.id, changes)
const users: ListedUser[] = await service.accounts.users()
const issued: Issued | undefined = await service.accounts.issue({ email: 'a@b.example', abilities: null, groups: null })
const user: PublicUser | undefined = issued?.user
const tokens: ListedToken[] = await service.accounts.tokens()
const code: FailureCode = 'input-invalid'
try { await service.listen() } catch (error) { if (error instanceof Failure) console.log(error.code === code) }
// @ts-expect-error: not a setting
await openService({ colour: 'red' })
// @ts-expect-error: not a number
await openService({ port: '3000' })
// @ts-expect-error: a field is missing
await service.createPassword({ password: 'a', sistema: 'b' })
// @ts-expect-error: not for embedders
service.store
console.log(changed, users, user, tokens)
`)
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2023', '--skipLibCheck', 'false']
  const { stdout } = await run(process.execPath, [tsc, ...flags, 'use.mts'], { cwd: project }).catch(error => error)
  assert.equal(stdout, '')
})
