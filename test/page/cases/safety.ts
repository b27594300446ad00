/** What an entry holds is text, whatever it is, and the policy stops the rest. */
import assert from 'node:assert/strict'
import { entries, EVERYWHERE, inBrowser, openService, rowOf, systems } from '../../support/page.ts'

inBrowser('what an entry holds is shown as text, and cannot rearrange the page', EVERYWHERE, async t => {
  const texts = ['<img src=x onerror="document.title=1">', 'abc\u202egnp.exe', 'a\u0000b\nc\u2066', 'x\u200dy',
    '\ud800', '   ',
    `${'x'.repeat(399)}👨${'y'.repeat(9)}`]
  const { browser } = await openService(t, {}, entries(...texts.map(text => [text, text, text] as const)))
  const shown = ['<img src=x onerror="document.title=1">', 'abcU+202Egnp.exe', 'aU+0000bU+000AcU+2066', 'xU+200Dy',
    'U+D800', 'U+0020U+0020U+0020', `${'x'.repeat(399)}…`]
  assert.deepEqual(new Set(await systems(browser)), new Set(shown))
  assert.deepEqual(new Set(await browser.run<string[]>("return [...document.querySelectorAll('#rows .user " +
    "bdi')].map(one => one.textContent)")),
    new Set(shown))
  // A number that stands for a character does not look like one that somebody has typed.
  assert.deepEqual((await browser.run<string[]>(`return [...document.querySelectorAll('#rows .system .unseeable')]
    .map(one => one.textContent)`)).sort(), shown.flatMap(text => text.match(/U\+[0-9A-F]{4}/g) ?? []).sort())
  assert.equal(await browser.run("return document.querySelectorAll('#rows img').length"), 0)
  assert.equal(await browser.run('return document.title'), 'Contraseñas')
  const name = await (await browser.find(`${await rowOf(browser, 'abcU+202Egnp.exe')} [data-act=copy]`)).name()
  assert.equal(name, 'Copiar la contraseña de abc⟨U+202E⟩gnp.exe')
})

inBrowser('an injected script, handler, style or foreign request is stopped by the policy', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  const stopped = await browser.run<string[]>(`
    const stopped = []
    document.addEventListener('securitypolicyviolation', event => stopped.push(event.effectiveDirective))
    const script = document.createElement('script')
    try { script.text = 'window.injected = 1' } catch { stopped.push('trusted-types') }
    document.body.append(script)
    try { document.body.innerHTML += '<p>' } catch { stopped.push('trusted-types') }
    setTimeout(() => { try { eval('1') } catch { stopped.push('eval') } })
    const image = document.createElement('img')
    try { image.setAttribute('onerror', 'window.injected = 2') } catch { stopped.push('trusted-types') }
    image.src = 'http://127.0.0.2:9/x'
    document.body.append(image)
    document.body.append(document.createElement('style'))
    document.body.lastChild.textContent = 'body { display: none }'
    document.body.setAttribute('style', 'color: red')
    return fetch('http://127.0.0.2:9/').catch(() => {}).then(() => new Promise(done => setTimeout(done, 50, stopped)))`)
  const isChromium = browser.native.devtools !== undefined // the others do not let the driver's own scripts be stopped
  for (const one of [...isChromium ? ['eval'] : [], 'trusted-types', 'img-src', 'connect-src', 'style-src-elem',
    'style-src-attr']) {
    assert.ok(stopped.includes(one), `${one} in ${stopped}`)
  }
  assert.equal(await browser.run('return window.injected'), null)
})
