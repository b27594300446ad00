/** Two people, or two tabs: nobody overwrites unseen, and nothing typed is lost. */
import assert from 'node:assert/strict'
import {
  CHROMIUM, createEntry, edit, entries, EVERYWHERE, focus, inBrowser, isEditing, keepCopies, logIn, openProtected,
  openService, passwordIn, rowOf, systems, textOf, told, valueOf, view
} from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'
import { deleteEntry, updateEntry } from '../../../src/store/commands.ts'

const isAsked = "return document.getElementById('conflict').open"

inBrowser('the second save of an entry shows both versions, and asks', EVERYWHERE, async t => {
  const { browser, service } = await openService(t, { 'extra-routes': 'on', journal: 'file' })
  await edit(browser, 'Banco Central')
  await updateEntry(service.store, 2, { usuario: 'eva', password: 'of Eva' }, null)
  await browser.fill('#usuario', 'mine')
  await browser.press(KEYS.enter)
  await browser.until(isAsked)
  assert.equal(service.store.state.entries.get(2)?.usuario, 'eva', 'nothing is overwritten')
  assert.equal(await focus(browser), 'button: Seguir editando')
  const shown = await textOf(browser, '#conflict')
  assert.match(shown, /Otra persona ha guardado antes[^]*ha cambiado desde que la abriste[^]*: editada/)
  assert.match(shown, /Igual en las dos\s+Banco Central[^]*Lo tuyo\s+mine\s+Lo guardado ahora\s+eva[^]*Igual en las dos\s+•/)
  assert.doesNotMatch(shown, /of Eva|v7#Kq/, 'passwords are hidden')
  await browser.click('[data-side=both] .secret button')
  assert.match(await textOf(browser, '#conflict'), /of Eva/)
  // Back to what was typed; the next save asks again.
  await browser.press(KEYS.escape)
  await browser.until("return !document.getElementById('conflict').open")
  assert.deepEqual([await isEditing(browser), await valueOf(browser, 'usuario')], [true, 'mine'])
  await browser.until('return !/of Eva/.test(document.documentElement.textContent)')
  await browser.press(KEYS.enter)
  await browser.until(isAsked)
  await browser.click('#take-mine')
  await told(browser, 'Cambios guardados.')
  const { usuario, password } = service.store.state.entries.get(2)!
  assert.deepEqual([usuario, password], ['mine', 'of Eva'], 'what was not typed stays as the other one has it')
  assert.equal(await focus(browser), 'rowheader: Banco Central')
})

inBrowser('behind a proxy that compresses, which makes every tag a weak one, what is changed is saved', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await browser.run(`const { fetch } = window
    window.fetch = async (...asked) => {
      const answer = await fetch(...asked)
      const headers = new Headers(answer.headers)
      if (headers.has('ETag')) headers.set('ETag', 'W/' + headers.get('ETag'))
      return new Response(answer.body, { status: answer.status, headers })
    }`)
  await edit(browser, 'Banco Central')
  await browser.fill('#usuario', 'mine')
  await browser.press(KEYS.enter)
  await told(browser, 'Cambios guardados.')
  assert.equal(service.store.state.entries.get(2)?.usuario, 'mine')
})

inBrowser('what the other person has saved can stay, and is what the list shows', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await edit(browser, 'Banco Central')
  await updateEntry(service.store, 2, { usuario: 'eva' }, null)
  await browser.fill('#password', 'mine')
  await browser.press(KEYS.enter)
  await browser.until(isAsked)
  await browser.click('#take-theirs')
  await browser.until("return !document.getElementById('editor').open")
  assert.equal(service.store.state.entries.get(2)?.password, 'v7#Kq-92nR_wd')
  assert.equal(await textOf(browser, `${await rowOf(browser, 'Banco Central')} .user`), 'eva')
})

inBrowser('what was typed is not lost where the other person has deleted the entry', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await edit(browser, 'Correo')
  await deleteEntry(service.store, 1, null)
  await browser.fill('#usuario', 'mine')
  await browser.press(KEYS.enter)
  await browser.until(isAsked)
  assert.match(await textOf(browser, '#conflict'), /se eliminó después de que la abrieras[^]*mine/)
  assert.ok(!(await systems(browser)).includes('Correo'))
  await browser.click('#take-mine')
  await told(browser, 'Cambios guardados.')
  assert.deepEqual({ ...service.store.state.entries.get(1) }, { id: 1, sistema: 'Correo', usuario: 'mine', password: 'S3cr3ta-del-correo', status: 1 })
  assert.ok((await systems(browser)).includes('Correo'))
})

inBrowser('who may not restore it saves what was typed as a new entry where the other person has deleted it', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t, ['password:read', 'password:create', 'password:update'])
  await logIn(browser)
  const name = (await systems(browser))[0]!
  const { id } = [...service.store.state.entries.entries()].find(({ sistema }) => sistema === name)!
  const last = service.store.state.entries.size
  await edit(browser, name)
  await deleteEntry(service.store, id, null)
  await browser.fill('#usuario', 'mine')
  await browser.press(KEYS.enter)
  await browser.until(isAsked)
  await browser.click('#take-mine')
  await browser.until("return !document.getElementById('editor').open")
  const made = service.store.state.entries.get(last + 1)!
  assert.deepEqual([service.store.state.entries.get(id)!.status, made.sistema, made.usuario], [0, name, 'mine'])
})

inBrowser('showing and copying give what is stored now', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await updateEntry(service.store, 1, { password: 'the newer one', usuario: 'newer user' }, null)
  await keepCopies(browser)
  const row = await rowOf(browser, 'Correo')
  await browser.click(`${row} [data-act=reveal]`)
  await browser.find(`${row} .revealed`)
  assert.equal(await textOf(browser, `${row} .password`), 'the newer one')
  await updateEntry(service.store, 1, { password: 'the newest one', usuario: 'newest user' }, null)
  await browser.click(`${row} [data-act=copy]`)
  await told(browser, 'Copiada')
  await browser.click(`${row} [data-act=copyUser]`)
  await told(browser, 'Usuario copiado.')
  assert.deepEqual(await browser.run('return window.copied'), ['the newest one', 'newest user'])
  // Looked at, it is brought up to date, and closed where it is gone.
  await updateEntry(service.store, 1, { usuario: 'last user' }, null)
  await view(browser, 'Correo')
  await browser.until("return document.querySelector('#view-user bdi').textContent === 'last user'")
  const isShown = "return document.querySelector('#view-password .revealed .code')?.textContent === arguments[0]"
  await browser.click('#view-password button')
  await browser.until(isShown, 'the newest one')
  await updateEntry(service.store, 1, { password: 'the last one' }, null)
  await browser.click('#viewer [data-act=copyUser]')
  await browser.until(isShown, 'the last one')
  await browser.press(KEYS.escape)
  await deleteEntry(service.store, 1, null)
  await browser.click(`${await rowOf(browser, 'Correo')} .system`)
  await told(browser, 'Otra persona ha eliminado')
  await browser.until("return !document.getElementById('viewer').open")
})

inBrowser('a new entry is there without another question for the list', CHROMIUM, async t => {
  const { browser, service } = await openService(t, {}, entries(['Ágora', 'ana', 'x']))
  await createEntry(browser)
  await told(browser, 'Contraseña guardada.')
  assert.deepEqual(await systems(browser), ['Ágora', 'sistema'])
  const asked = await browser.run<string[]>("return performance.getEntriesByType('resource').map(one => one.name)")
  assert.equal(asked.filter(name => name.includes('listPassword')).length, 1)
  await edit(browser, 'sistema')
  assert.equal(await passwordIn(browser), 'password')
  await browser.fill('#usuario', 'changed')
  await browser.press(KEYS.enter)
  await told(browser, 'Cambios guardados.')
  assert.equal(service.store.state.entries.get(2)?.usuario, 'changed')
})
