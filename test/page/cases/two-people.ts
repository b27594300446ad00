/** Two people, or two tabs: nobody overwrites unseen, and nothing typed is lost. */
import assert from 'node:assert/strict'
import { createEntry as storeEntry, deleteEntry, updateEntry } from '../../../src/entries/entry-commands.ts'
import {
  CHROMIUM, createEntry, edit, EVERYWHERE, focus, inBrowser, isEditing, logIn, openProtected, openService, remove,
  rowOf, systems, textOf, told, valueOf
} from '../../support/page.ts'
import { joined } from '../../support/patterns.ts'
import { KEYS } from '../../support/webdriver.ts'

const isAsked = "return document.getElementById('conflict')?.open"
const isDone = "return document.getElementById('editor') === null"

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
  assert.match(shown, /Esta entrada ha cambiado\s[^]*Editada hoy/)
  assert.match(shown, joined(/Lo tuyo\s+mine\s+/,
    /Lo guardado ahora\s+eva[^]*Cambiado entretanto\s+•/))
  assert.doesNotMatch(shown, /of Eva|v7#Kq/, 'passwords are hidden')
  await browser.click('#conflict dd:last-child .icon')
  await browser.until("return /of Eva/.test(document.getElementById('conflict').textContent)")
  // Back to what was typed; the next save asks again.
  await browser.press(KEYS.escape)
  await browser.until("return document.getElementById('conflict') === null")
  assert.deepEqual([await isEditing(browser), await valueOf(browser, 'usuario')], [true, 'mine'])
  await browser.click('#editor .main')
  await browser.until(isAsked)
  await browser.click('#take-mine')
  await browser.until(isDone)
  const { usuario, password } = service.store.state.entries.get(2)!
  assert.deepEqual([usuario, password], ['mine', 'of Eva'], 'what was not typed stays as the other one has it')
})

inBrowser('what is made, changed, deleted while the list comes stays, as does what others did', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await storeEntry(service.store, { sistema: 'Of Eva', usuario: 'eva', password: 'p' }, null)
  await browser.run(`const real = window.fetch
    window.fetch = async (...asked) => {
      const answer = await real(...asked)
      const isFirst = String(asked[0]).includes('listEntries') && window.release === undefined
      if (isFirst) await new Promise(done => { window.release = done })
      return answer
    }`)
  await browser.click('#refresh')
  await browser.until('return window.release !== undefined')
  await createEntry(browser, 'Zeta')
  await browser.until(isDone)
  await edit(browser, 'Correo')
  await browser.fill('#usuario', 'mine')
  await browser.press(KEYS.enter)
  await browser.until(isDone)
  await remove(browser, 'Impresora')
  await told(browser, 'Eliminada: Impresora')
  await browser.run('release()')
  await browser.until("return document.getElementById('refresh').ariaBusy === null")
  const names = await systems(browser)
  assert.ok(names.includes('Zeta') && names.includes('Of Eva') && !names.includes('Impresora'), String(names))
  assert.equal((await textOf(browser, `${await rowOf(browser, 'Correo')} .user`)).trim(), 'mine')
})

inBrowser('what the other person has saved can stay, and is what the list shows', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await edit(browser, 'Banco Central')
  await updateEntry(service.store, 2, { usuario: 'eva' }, null)
  await browser.click('#change-password')
  await browser.fill('#password', 'mine')
  await browser.press(KEYS.enter)
  await browser.until(isAsked)
  await browser.click('#take-theirs')
  await browser.until(isDone)
  assert.equal(service.store.state.entries.get(2)?.password, 'v7#Kq-92nR_wd')
  assert.equal(await textOf(browser, `${await rowOf(browser, 'Banco Central')} .user`), 'eva')
})

inBrowser('what was typed is not lost when the other person has deleted the entry', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await edit(browser, 'Correo')
  await deleteEntry(service.store, 1, null)
  await browser.fill('#usuario', 'mine')
  await browser.press(KEYS.enter)
  await browser.until(isAsked)
  assert.equal(await textOf(browser, '#conflict h2'), 'No se ha guardado', 'the page knows no more than that')
  assert.match(await textOf(browser, '#conflict'), /ya no existe o ya no está en tus grupos[^]*mine/)
  assert.ok(!(await systems(browser)).includes('Correo'))
  await browser.click('#take-mine')
  await browser.until(isDone)
  const { usuario, password, status } = service.store.state.entries.get(1)!
  assert.deepEqual([usuario, password, status], ['mine', 'S3cr3ta-del-correo', 1])
  assert.ok((await systems(browser)).includes('Correo'))
})

inBrowser('who may not restore it saves what was typed as a new entry', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t, ['password:read', 'password:create', 'password:update'])
  await logIn(browser)
  const lastId = service.store.state.entries.size
  await edit(browser, 'Correo')
  const { id } = [...service.store.state.entries.entries()].find(({ sistema }) => sistema === 'Correo')!
  await deleteEntry(service.store, id, null)
  await browser.fill('#usuario', 'mine')
  await browser.press(KEYS.enter)
  await browser.until(isAsked)
  await browser.click('#take-mine')
  await browser.until(isDone)
  const made = service.store.state.entries.get(lastId + 1)!
  assert.deepEqual([service.store.state.entries.get(id)!.status, made.sistema, made.usuario], [0, 'Correo', 'mine'])
})
