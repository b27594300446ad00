/**
 * The ecosystem's own judges: Redocly and Spectral on the description, a client that openapi-typescript makes of it,
 * promtool on the metrics and on the alert rules, axe on the page in Chromium. The npm tools are installed into a
 * scratch folder.
 */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { SETTINGS } from '../../src/settings.ts'
import { startProtected } from '../support/accounts.ts'
import { inBrowser, openService, useEngine } from '../support/page.ts'
import { send, startService } from '../support/service.ts'

const TOOLS = ['@redocly/cli@2', '@stoplight/spectral-cli@6', 'openapi-typescript@7', 'openapi-fetch@0.17',
  'typescript@5.8', 'axe-core@4']
const METRICS_README = fileURLToPath(new URL('../../src/parts/metrics/README.md', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'pes-judges-'))
const noTools = ((): string | false => {
  try {
    writeFileSync(join(scratch, 'package.json'), '{"private":true,"type":"module"}')
    execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', ...TOOLS], { cwd: scratch, stdio: 'pipe' })
    return false
  } catch {
    return 'the npm registry cannot be reached'
  }
})()

after(() => rmSync(scratch, { recursive: true, force: true }))

/** Runs a tool in the scratch folder; gives what it printed, and whether it ended with 0. */
async function run(program: string, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  try {
    const { stdout, stderr } = await promisify(execFile)(program, [...args], { cwd: scratch, env })
    return stdout + stderr
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string, stderr?: string }
    return `failed\n${stdout}${stderr}`
  }
}

const tool = (name: string): string => join(scratch, 'node_modules', '.bin', name)

test('Redocly and Spectral find neither an error nor a warning in the description, open and protected', {
  skip: noTools
}, async t => {
  writeFileSync(join(scratch, '.spectral.yaml'), 'extends: ["spectral:oas"]\n')
  const extra: Record<string, string> = 'extraRoutes' in SETTINGS ? { 'extra-routes': 'on' } : {}
  for (const { url } of [await startService(t, { 'rate-limit': '60', ...extra }), await startProtected(t, extra)]) {
    writeFileSync(join(scratch, 'openapi.json'), (await send(url, 'GET', '/openapi.json')).text)
    const redocly = await run(tool('redocly'), 'lint', '--extends', 'recommended', '--format', 'json', 'openapi.json')
    assert.doesNotMatch(redocly, /^failed|"severity"/)
    assert.match(await run(tool('spectral'), 'lint', '--fail-severity', 'hint', 'openapi.json'), /^No results/)
  }
})

const CLIENT = `
import createClient from 'openapi-fetch'
import type { paths } from './openapi.ts'
const [url, email, password] = process.argv.slice(2) as [string, string, string]
const client = createClient<paths>({ baseUrl: url })
const login = await client.POST('/api/login', { body: { email, password } })
const headers = { Authorization: 'Bearer ' + login.data!.token }
const body = { password: 'S3cr3ta', sistema: 'correo', usuario: 'ana' }
const path = { id: 1 }
const answers = [
  await client.POST('/api/createPassword', { headers, body }),
  await client.GET('/api/listPassword', { headers }),
  await client.GET('/api/getPassword/{id}', { headers, params: { path } }),
  await client.POST('/api/updatePassword/{id}', { headers, params: { path }, body: { usuario: 'eva' } }),
  await client.POST('/api/deletePassword/{id}', { headers, params: { path } }),
  await client.POST('/api/logout', { headers })
]
console.log([login, ...answers].map(one => one.response.status).join(' '))
`

test('a client generated from the description does every operation', { skip: noTools }, async t => {
  const { service, url } = await startProtected(t)
  await service.accounts!.addUser('eva@example.org', 'eva', ['*'], 'correct horse battery staple')
  writeFileSync(join(scratch, 'openapi.json'), (await send(url, 'GET', '/openapi.json')).text)
  assert.doesNotMatch(await run(tool('openapi-typescript'), 'openapi.json', '-o', 'openapi.ts'), /^failed/)
  writeFileSync(join(scratch, 'client.mts'), CLIENT)
  const flags = ['--target', 'es2023', '--module', 'nodenext', '--strict', '--rewriteRelativeImportExtensions',
    '--skipLibCheck']
  assert.equal(await run(tool('tsc'), ...flags, 'client.mts'), '')
  const printed = await run(process.execPath, 'client.mjs', url, 'eva@example.org', 'correct horse battery staple')
  assert.equal(printed.trim(), '200 200 200 200 200 200 200')
})

const noPromtool = ((): string | false => {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'pipe' })
    return false
  } catch {
    return 'promtool (Debian package prometheus) is not installed'
  }
})()

test('promtool has nothing to say about the metrics', { skip: noPromtool }, async t => {
  const { url } = await startService(t)
  const fields = { password: 'S3cr3ta', sistema: 'correo', usuario: 'ana' }
  await send(url, 'POST', '/api/createPassword', fields)
  const input = await (await fetch(`${url}/metrics`)).text()
  assert.equal(execFileSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8', stdio: 'pipe' }), '')
})

test('the alert rules of the metrics\' README are valid', { skip: noPromtool }, async () => {
  const rules = /```yaml\n(groups:\n[^]*?)```/.exec(readFileSync(METRICS_README, 'utf8'))?.[1] ?? ''
  writeFileSync(join(scratch, 'rules.yml'), rules)
  assert.match(await run('promtool', 'check', 'rules', 'rules.yml'), /SUCCESS: [3-9] rules found/)
})

useEngine('chromium', (name, options, body) => test(name, options, body))

/** The states of the page, each by what is clicked on the way to it. */
const STATES = {
  'the list': [], 'an entry whose password is shown': ['#rows .row .system', '#view-password .icon'],
  'the editor with the generator': ['#create', '#generate'], 'the help': ['#show-menu', '#help'],
  'the filter': ['#filter'], 'the deleted ones': ['.to-deleted']
}

inBrowser('axe finds nothing wrong with the list, the dialogs, the help', ['chromium'], async t => {
  const { browser } = await openService(t)
  const axe = readFileSync(join(scratch, 'node_modules/axe-core/axe.min.js'), 'utf8')
  for (const [state, way] of Object.entries(STATES)) {
    await browser.run("history.replaceState(null, '', location.pathname)") // which names the entry that was open
    await browser.reload()
    for (const selector of ['#rows .row', ...way]) {
      await browser.until(`return document.querySelector('${selector}')?.checkVisibility()`)
      if (selector !== '#rows .row') await browser.click(selector)
    }
    const found = await browser.run<string[]>(`if (!window.axe) { ${axe} }
      const said = ({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' | ')
      return axe.run(document).then(({ violations }) => violations.map(said))`)
    assert.deepEqual(found, [], state)
  }
}, () => noTools)
