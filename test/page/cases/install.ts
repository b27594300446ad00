/** The page installed, and below a prefix. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { Asset } from '../../../src/parts/page/asset.ts'
import { openService as openEmbedded } from '../../../src/embedding/embedded-service.ts'
import {
  CHROMIUM, EVERYWHERE, inBrowser, openService, rowOf, settled, sharedBrowser, systems
} from '../../support/page.ts'
import { atEnd } from '../../support/service.ts'

inBrowser('the page has a manifest and icons, which its policy allows', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await browser.devtools('Page.enable')
  const { errors, data } = await browser.devtools('Page.getAppManifest')
  assert.deepEqual(errors, [])
  const { name, icons, start_url: start } = JSON.parse(data)
  assert.deepEqual([name, start], ['Contraseñas · Passwords', '../../'])
  const { installabilityErrors } = await browser.devtools('Page.getInstallabilityErrors')
  assert.deepEqual(installabilityErrors, [])
  for (const { src, type } of icons) {
    assert.deepEqual(await browser.run(`const base = document.querySelector('[rel=manifest]').href
      return fetch(new URL(arguments[0], base)).then(({ status, headers }) => [status, headers.get('Content-Type')])`,
    src), [200, type])
  }
})

inBrowser('a second visit asks for the page and the list alone', CHROMIUM, async t => {
  const { browser, url } = await openService(t)
  const { reply } = Asset.prototype
  const asked: string[] = []
  Asset.prototype.reply = function (head) {
    asked.push(head.path)
    return reply.call(this, head)
  }
  atEnd(t, async () => { Asset.prototype.reply = reply })
  await browser.go(`${url}/?lang=en`)
  await settled(browser)
  assert.deepEqual(asked, ['/'])
})

/** An embedded service with one entry behind a server of the host, which may hold a request back. */
async function openHost(
  t: TestContext, prefix: string, heldMs: (path: string) => number = () => 0
): Promise<string> {
  const service = await openEmbedded({ journal: 'memory', prefix, allowedHosts: '127.0.0.1' })
  const server = createServer((request, response) =>
    void setTimeout(() => service.handle(request, response), heldMs(request.url!))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, async () => {
    server.closeAllConnections()
    server.close()
    await service.close()
  })
  await service.createPassword({ sistema: 'Correo', usuario: 'ana', password: 'p' })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`
}

inBrowser('whichever of its files comes last, the page is shown', EVERYWHERE, async t => {
  for (const late of ['texts-es.js', 'main.js']) {
    const url = await openHost(t, '', path => path.endsWith(`/${late}`) ? 500 : 0)
    const browser = await sharedBrowser()
    await browser.go(`${url}/?lang=es`)
    await settled(browser)
    assert.deepEqual(await systems(browser), ['Correo'], late)
  }
})

inBrowser('below an embedder’s prefix page and description work, with and without a last slash', CHROMIUM, async t => {
  const base = await openHost(t, '/in/the/vault')
  const browser = await sharedBrowser()
  for (const path of ['/?lang=es', '?lang=es']) {
    await browser.go(base + path)
    await settled(browser)
    assert.deepEqual(await systems(browser), ['Correo'])
    await browser.click(`${await rowOf(browser, 'Correo')} [data-act=edit]`)
    await browser.find('#editor')
  }
  const description = await (await fetch(`${base}/openapi.json`)).json() as { servers: { url: string }[],
    paths: object }
  const [path = ''] = Object.keys(description.paths)
  const url = new URL(`${description.servers[0]!.url}${path}`, `${base}/openapi.json`)
  assert.equal((await fetch(url)).status, 200, String(url))
})
