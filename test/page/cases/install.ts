/** The page installed, below a prefix, and as axe judges it. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openService as openEmbedded } from '../../../src/index.ts'
import {
  CHROMIUM, inBrowser, openService, rowOf, settled, sharedBrowser, systems
} from '../../support/page.ts'
import { atEnd } from '../../support/service.ts'

inBrowser('the page has a manifest and icons, which its policy allows', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await browser.devtools('Page.enable')
  const { errors, data } = await browser.devtools('Page.getAppManifest')
  assert.deepEqual(errors, [])
  const { name, icons, start_url: start } = JSON.parse(data)
  assert.deepEqual([name, start], ['Contraseñas · Passwords', '../'])
  const { installabilityErrors } = await browser.devtools('Page.getInstallabilityErrors')
  assert.deepEqual(installabilityErrors, [])
  for (const { src, type } of icons) {
    assert.deepEqual(await browser.run(`return fetch('web/' + arguments[0]).then(answer => [answer.status, answer.headers.get('Content-Type')])`, src), [200, type])
  }
})

inBrowser('below the prefix of an embedder the page and the description work, with and without the last slash', CHROMIUM, async t => {
  const service = await openEmbedded({ journal: 'memory', prefix: '/in/the/vault', allowedHosts: '127.0.0.1' })
  const server = createServer((request, response) => service.handle(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, async () => {
    server.closeAllConnections()
    server.close()
    await service.close()
  })
  await service.createPassword({ sistema: 'Correo', usuario: 'ana', password: 'p' })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/in/the/vault`
  const browser = await sharedBrowser()
  for (const path of ['/?lang=es', '?lang=es']) {
    await browser.go(base + path)
    await settled(browser)
    assert.deepEqual(await systems(browser), ['Correo'])
    await browser.click(`${await rowOf(browser, 'Correo')} [data-act=edit]`)
    await browser.find('#editor')
  }
  const description = await (await fetch(`${base}/openapi.json`)).json() as { servers: { url: string }[], paths: object }
  const [path = ''] = Object.keys(description.paths)
  const url = new URL(`${description.servers[0]!.url}${path}`, `${base}/openapi.json`)
  assert.equal((await fetch(url)).status, 200, String(url))
})

/** The source of axe-core; undefined until it was fetched, for the tests alone. */
let axe: string | undefined

/** Fetches axe-core into a scratch folder; says if that cannot be done. */
function fetchAxe(): string | false {
  const folder = mkdtempSync(join(tmpdir(), 'pes-axe-'))
  try {
    const args = ['install', '--prefix', folder, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=0']
    execFileSync('npm', [...args, 'axe-core@4'], { stdio: 'ignore', timeout: 20_000 })
    axe = readFileSync(join(folder, 'node_modules/axe-core/axe.min.js'), 'utf8')
    return false
  } catch {
    return 'axe-core cannot be fetched: the package registry is out of reach'
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

inBrowser('axe finds nothing wrong with the list, the dialog, the help', CHROMIUM, async t => {
  const { browser } = await openService(t)
  const judge = async (state: string): Promise<void> => {
    await browser.run(`if (!window.axe) { ${axe} }`)
    const found = await browser.run<string[]>(`return axe.run(document).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' | ')))`)
    assert.deepEqual(found, [], state)
  }
  await browser.click('#rows [data-act=reveal]')
  await judge('list')
  await browser.click('#create')
  await browser.click('#generate')
  await judge('dialog')
  await browser.run("for (const dialog of document.querySelectorAll('dialog')) dialog.close(); document.getElementById('help').click()")
  await judge('help')
}, fetchAxe)
