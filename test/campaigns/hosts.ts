/**
 * Tries the package where others would embed it: frameworks, bundlers, other runtimes, TypeScript versions. Not a part
 * of `npm test`: it installs packages into a folder of its own. `node --import tsx test/campaigns/hosts.ts`, after a
 * build, prints the table with the versions that were tried, writes it to hosts.md, and ends with 1 where a row fails.
 * Names as arguments run these rows alone, and write nothing.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const place = mkdtempSync(join(tmpdir(), 'pes-hosts-'))
/** The packages that the row at work has installed, with their versions. */
const versions = new Set<string>()
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')
const GUIDE = readFileSync(join(ROOT, 'src/README.md'), 'utf8')
const EXAMPLE = /^## Embed it\n[^]*?```js\n([^]*?)```/m.exec(README)![1]!

/** Runs a program; throws with what it printed where it does not end with 0. */
function run(cwd: string, command: string, ...args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: 180_000 })
  if (status !== 0) throw new Error(`${command} ${args.slice(0, 3).join(' ')}: ${error?.message ??
    ''}\n${stdout}${stderr}`.slice(0, 1_500))
  return stdout
}

/** A project with the package and others, which are installed once. */
function project(name: string, packages: readonly string[], files: { readonly [name: string]: string },
  type = 'module'): string {
  const folder = join(place, name.replace(/\W+/g, '-'))
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type, private: true }))
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  const [tarball] = JSON.parse(run(ROOT, 'npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', folder))
  run(folder, 'npm', 'install', '--no-audit', '--no-fund', '--loglevel=error', `./${tarball.filename}`, ...packages)
  for (const one of packages) {
    const name = one.replace(/(?<=.)@.*/, '')
    versions.add(`${name} ${JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'),
      'utf8')).version}`)
  }
  return folder
}

/** What a host does: it serves `service.handle` at /vault, and gives its address. The rest is the same for all. */
const served = (imports: string, serve: string): string => `
${imports}
import { openService } from 'password-entry-service'
const service = await openService({ journal: 'memory', page: false, prefix: '/vault', rateLimit: 0 })
for (let n = 0; n < 300; n++) await service.createPassword({ password: 'x'.repeat(500), sistema: 's', usuario: 'u' })
const origin = await (async () => { ${serve} })()
const post = (path, body) => fetch(origin + path, {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body, signal: AbortSignal.timeout(8_000)
})
const made = await post('/vault/api/createPassword', JSON.stringify({ password: 'p', sistema: 'ñ', usuario: 'u' }))
const list = await fetch(origin + '/vault/api/listPassword', { signal: AbortSignal.timeout(8_000) })
const { length } = await list.json()
const changed = await post('/vault/api/updatePassword/301', '{"usuario":"w"}')
const found = await service.getPassword(301)
console.log(made.status, made.headers.get('Location'), list.status, length, changed.status, found?.usuario)
process.exit(0)
`
const EXPECTED = '200 /vault/api/getPassword/301 200 301 200 w\n'
const LISTENING = "await new Promise(done => server.on('listening', done))\n" +
  "return 'http://127.0.0.1:' + server.address().port"
const listen = (app: string): string => `const server = ${app}.listen(0, '127.0.0.1'); ${LISTENING}`

const HANDLE = '(req, res) => service.handle(req, res)'
/** The code of src/README.md that begins so, without the name of its framework. */
function recipe(start: string): string {
  const found = [...GUIDE.matchAll(/```js\n\s*([^]*?)```/g)].map(([, code]) => code!).find(code =>
    code.startsWith(start))
  if (found === undefined) throw new Error(`src/README.md has no code that begins with ${start}`)
  return found
}

/** Frameworks: packages, imports, and how they serve. */
const FRAMEWORKS: readonly (readonly [name: string, packages: readonly string[], imports: string, serve: string])[] = [
  ['Express 4', ['express@4'], "import express from 'express'",
    `const app = express(); app.use('/vault', ${HANDLE}); ${listen('app')}`],
  ['Express 5', ['express@5'], "import express from 'express'",
    `const app = express(); app.use('/vault', ${HANDLE}); ${listen('app')}`],
  ['Express 5, compression before it', ['express@5', 'compression'],
    "import express from 'express'\nimport compression from 'compression'",
    `const app = express(); app.use(compression()); app.use('/vault', ${HANDLE}); ${listen('app')}`],
  ['Express 5, express.json() before it', ['express@5'], "import express from 'express'",
    `const app = express(); app.use(express.json()); app.use('/vault', ${HANDLE}); ${listen('app')}`],
  ['node:http', [], "import { createServer } from 'node:http'",
    `const app = createServer(${HANDLE}); ${listen('app')}`],
  ['Fastify 5, with a route of its own', ['fastify@5'], "import fastify from 'fastify'", `const app = fastify()
     app.post('/mine', async q => ({ got: q.body }))
     ${recipe('app.register')}
     const url = await app.listen({ port: 0, host: '127.0.0.1' })
     const headers = { 'Content-Type': 'application/json' }
     const mine = await fetch(url + '/mine', { method: 'POST', headers, body: '{"a":1}' })
     const bare = await fetch(url + '/vault', { redirect: 'manual' })
     const body = await mine.text()
     if (body !== '{"got":{"a":1}}' || bare.status !== 308) throw new Error(body + bare.status)
     return url`],
  ['Koa 3', ['koa@3'], "import Koa from 'koa'",
    `const app = new Koa()
     app.use(ctx => { ctx.respond = false; service.handle(ctx.req, ctx.res) }); ${listen('app')}`],
  ['Koa 3, koa-mount', ['koa@3', 'koa-mount'], "import Koa from 'koa'\nimport mount from 'koa-mount'",
    `const app = new Koa(); app.use(mount('/vault', ctx => { ctx.req.originalUrl = ctx.originalUrl; ctx.respond = false;
       service.handle(ctx.req, ctx.res) })); ${listen('app')}`],
  ['Hono 4 on Node', ['hono@4', '@hono/node-server'],
    "import { Hono } from 'hono'\nimport { serve } from '@hono/node-server'\nimport { RESPONSE_ALREADY_SENT } from " +
      "'@hono/node-server/utils/response'",
    `const app = new Hono()
     app.all('/vault/*', c => { service.handle(c.env.incoming, c.env.outgoing); return RESPONSE_ALREADY_SENT })
     const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }); ${LISTENING}`]
]

const NODE_HTTP = FRAMEWORKS.find(([name]) => name === 'node:http')!

/** A server whose requests are not of node:http: `handle` says so, and the operations work. */
const foreign = (imports: string, serve: string): string => `
${imports}
import { openService } from 'password-entry-service'
const service = await openService({ journal: 'memory', page: false })
const { id } = await service.createPassword({ password: 'p', sistema: 's', usuario: 'u' })
const answer = async request => {
  try { service.handle(request, {}); return 'taken' } catch (error) {
    return error.code + ' ' + (await service.getPassword(id)).usuario
  }
}
const origin = await (async () => { ${serve} })()
console.log(await (await fetch(origin)).text())
process.exit(0)
`
const FOREIGN = 'request-foreign u\n'

/** Next's app router: its pages behind a server that has node:http, and a route that uses the operations. */
const NEXT = {
  'next.config.mjs': 'export default {}',
  'app/layout.jsx': 'export default ({ children }) => <html><body>{children}</body></html>',
  'app/page.jsx': 'export default () => <p>a page of Next</p>',
  'app/foreign/route.js': `export async function GET(request) {
  const { service } = globalThis.vault
  try { service.handle(request, {}) } catch (error) {
    return new Response(error.code + ' ' + (await service.listPassword()).length)
  }
}`,
  'main.mjs': served("import { createServer } from 'node:http'\nimport next from 'next'", `
    globalThis.vault = { service }
    const app = next({ dev: true }); await app.prepare(); const handle = app.getRequestHandler()
    const server = createServer((req, res) =>
      /^\\/vault(?![^/?])/.test(req.url) ? service.handle(req, res) : handle(req, res)).listen(0, '127.0.0.1')
    await new Promise(done => server.on('listening', done))
    const origin = 'http://127.0.0.1:' + server.address().port
    const page = await (await fetch(origin + '/')).text(), route = await (await fetch(origin + '/foreign')).text()
    if (!page.includes('a page of Next') || route !== 'request-foreign 300') throw new Error(route + page.slice(0, 300))
    return origin`)
}

const BUNDLED = `
import { openService } from 'password-entry-service'
void (async () => {
  const service = await openService({ journal: 'memory', page: false, port: 0 })
  const { id } = await service.createPassword({ password: 'p', sistema: 's', usuario: 'u' })
  const url = await service.listen()
  const answer = await fetch(url + '/api/getPassword/' + id)
  await answer.text()
  await service.close()
  const withPage = openService({ journal: 'memory', page: true })
  const why = await withPage.then(async one => { await one.close(); return 'page' }, error => error.code)
  console.log(answer.status, why)
})()
`

/** A bundle of the program above, run by Node: without the page, which says so where it is asked for. */
function bundle(format: 'esm' | 'cjs'): string {
  // in CommonJS a bundle does not know where it is
  const other = { 'browser/page.html': 'not the page of the service' }
  const folder = project(`esbuild ${format}`, ['esbuild'], { 'main.mjs': BUNDLED, ...format === 'cjs' ? other : {} })
  const out = format === 'esm' ? 'out.mjs' : 'out.cjs'
  run(folder, 'npx', 'esbuild', 'main.mjs', '--bundle', '--platform=node', `--format=${format}`, '--target=node20',
    '--log-level=error', `--outfile=${out}`)
  rmSync(join(folder, 'node_modules/password-entry-service'), { recursive: true })
  equal(run(folder, process.execPath, out), '200 page-unusable\n')
  return folder
}

function singleExecutable(): void {
  const folder = bundle('cjs')
  run(folder, 'npm', 'install', '--no-audit', '--no-fund', '--loglevel=error', 'postject')
  writeFileSync(join(folder, 'sea.json'), JSON.stringify({ main: 'out.cjs', output: 'sea.blob',
    disableExperimentalSEAWarning: true }))
  run(folder, process.execPath, '--experimental-sea-config', 'sea.json')
  cpSync(process.execPath, join(folder, 'vault'))
  run(folder, 'npx', 'postject', 'vault', 'NODE_SEA_BLOB', 'sea.blob', '--sentinel-fuse',
    'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2')
  equal(run(folder, join(folder, 'vault')), '200 page-unusable\n')
}

const ACCOUNTS = `
import { openService } from 'password-entry-service'
const service = await openService({ journal: 'memory', auth: 'bearer', page: false, port: 0 })
await service.accounts.addUser({ email: 'a@x.org', abilities: ['*'], password: 'a long password', groups: null })
const url = await service.listen()
const login = await fetch(url + '/api/login', {
  method: 'POST', headers: { 'Content-Type': 'application/json' },
  body: '{"email":"a@x.org","password":"a long password"}'
})
const { token } = await login.json()
const list = await fetch(url + '/api/listPassword', { headers: { Authorization: 'Bearer ' + token } })
console.log(login.status, list.status)
await service.close()
process.exit(0)
`

function typeScript(version: string): void {
  for (const [module, resolution] of [['nodenext', 'nodenext'], ['esnext', 'bundler']]) {
    const types = version === '5.0' ? '@types/node@18' : '@types/node@20'
    const folder = project(`typescript ${version} ${resolution}`, [`typescript@${version}`, types],
      { 'example.ts': EXAMPLE })
    const options = { strict: true, module, moduleResolution: resolution, target: 'es2022', noEmit: true,
      types: ['node'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['example.ts'] }))
    run(folder, 'npx', 'tsc', '-p', '.')
  }
}

function equal(seen: string, expected: string): void {
  if (seen !== expected) throw new Error(`printed ${JSON.stringify(seen)} and not ${JSON.stringify(expected)}`)
}

const ROWS: { readonly [name: string]: () => void } = {
  ...Object.fromEntries(FRAMEWORKS.map(([name, packages, imports, serve]) => [name, () => {
    const folder = project(name, packages, { 'main.mjs': served(imports, serve) })
    equal(run(folder, process.execPath, 'main.mjs'), EXPECTED)
  }])),
  'esbuild, ESM': () => { bundle('esm') },
  'esbuild, CommonJS, as a single executable': singleExecutable,
  'node src/server.ts on Node 24': () => {
    const folder = project('node 24', ['node@24'], {})
    const node = join(folder, 'node_modules/node/bin/node')
    run(ROOT, node, 'src/server.ts', '--version')
    run(ROOT, node, 'src/admin.ts', 'init', '--data', join(folder, 'data'))
    equal(run(ROOT, node, 'src/admin.ts', 'entry', 'list', '--json', '--data', join(folder, 'data')), '[]\n')
  },
  'Bun': () => equal(run(project('bun', ['bun'], { 'main.mjs': ACCOUNTS }), './node_modules/.bin/bun', 'main.mjs'),
    '200 404\n'),
  'Deno': () => equal(run(project('deno', ['deno'], { 'main.mjs': ACCOUNTS }), './node_modules/.bin/deno', 'run', '-A',
    'main.mjs'), '200 404\n'),
  'Bun, its node:http': () => equal(run(project('bun http', ['bun'],
    { 'main.mjs': served(NODE_HTTP[2], NODE_HTTP[3]) }), './node_modules/.bin/bun', 'main.mjs'), EXPECTED),
  'Deno, its node:http': () => equal(run(project('deno http', ['deno'],
    { 'main.mjs': served(NODE_HTTP[2], NODE_HTTP[3]) }), './node_modules/.bin/deno', 'run', '-A', 'main.mjs'),
  EXPECTED),
  'Hono 4 on Bun.serve': () => equal(run(project('hono bun', ['bun', 'hono@4'], { 'main.mjs': foreign(
    "import { Hono } from 'hono'", `const app = new Hono(); app.get('/', async c => c.text(await answer(c.req.raw)))
     return Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: app.fetch }).url.href`) }),
  './node_modules/.bin/bun', 'main.mjs'), FOREIGN),
  'Deno.serve': () => equal(run(project('deno serve', ['deno'], { 'main.mjs': foreign('',
    `const options = { port: 0, hostname: '127.0.0.1', onListen: () => {} }
     const server = Deno.serve(options, async request => new Response(await answer(request)))
     return 'http://127.0.0.1:' + server.addr.port`) }), './node_modules/.bin/deno', 'run', '-A', 'main.mjs'), FOREIGN),
  'Next, app router': () => {
    const printed = run(project('next', ['next', 'react', 'react-dom'], NEXT), process.execPath, 'main.mjs')
    equal(printed.slice(printed.lastIndexOf('\n', printed.length - 2) + 1), EXPECTED)
  },
  'TypeScript 5.0': () => typeScript('5.0'),
  'TypeScript, newest': () => typeScript('latest')
}

let failed = 0
const lines = [
  `Tried on ${new Date().toISOString().slice(0,
    10)} with Node ${process.version} on ${process.platform} by \`test/campaigns/hosts.ts\`.`,
  '', '| host | versions | result |', '| --- | --- | --- |'
]
console.log(lines.join('\n'))
for (const [name, row] of Object.entries(ROWS)) {
  if (process.argv.length > 2 && !process.argv.slice(2).includes(name)) continue
  versions.clear()
  let result = 'works'
  try {
    row()
  } catch (error) {
    failed++
    result = 'fails'
    console.error(`${name}: ${(error as Error).message}`)
  }
  lines.push(`| ${name} | ${[...versions].join(', ')} | ${result} |`)
  console.log(lines.at(-1))
}
if (process.argv.length === 2) writeFileSync(join(ROOT, 'test/campaigns/hosts.md'),
  `# Where the package was embedded\n\n${lines.join('\n')}\n`)
rmSync(place, { recursive: true, force: true })
process.exitCode = failed === 0 ? 0 : 1
