/** The page by keyboard alone, and what a screen reader is told. */
import assert from 'node:assert/strict'
import { deleteEntry } from '../../../src/entries/entry-commands.ts'
import {
  CHROMIUM, entries, EVERYWHERE, focus, inBrowser, isEditing, keepCopies, openService, textOf, told, until, valueOf,
  view
} from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'

inBrowser('the order of the Tab key, each stop with a name and a role', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  const stops: string[] = []
  await browser.run("document.getElementById('query').focus()")
  for (let i = 0; i < 9; i++) {
    await browser.press(KEYS.tab)
    stops.push(await focus(browser))
  }
  assert.deepEqual(stops, [
    'button: Eliminadas', 'button: Menú', 'button: Nueva', 'button: Filtrar', 'button: Actualizar', 'button: Sistema',
    'button: Usuario', 'button: Cambiada', 'rowheader: Ágora'
  ])
})

inBrowser('in the list, the arrow keys go from row to row and from column to column', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await browser.run("document.getElementById('query').focus()")
  await browser.press(KEYS.down)
  assert.equal(await focus(browser), 'rowheader: Ágora')
  await browser.press(KEYS.down)
  assert.equal(await focus(browser), 'rowheader: Banco Central')
  const columns: string[] = []
  for (let i = 0; i < 8; i++) {
    await browser.press(KEYS.right)
    columns.push((await focus(browser)).trim())
  }
  assert.deepEqual(columns.map(column => column.replace(/^(gridcell: ).*(hoy|día|mes|año).*/, '$1…')), [
    'gridcell: ana.garcia', 'button: Copiar el usuario de Banco Central', 'gridcell: …',
    'button: Mostrar la contraseña de Banco Central', 'button: Editar Banco Central', 'button: Eliminar Banco Central',
    'button: Copiar la contraseña de Banco Central', 'button: Copiar la contraseña de Banco Central'
  ])
  await browser.press(KEYS.home)
  assert.equal(await focus(browser), 'rowheader: Banco Central')
  await browser.press(KEYS.control, KEYS.end)
  assert.equal(await focus(browser), 'button: Copiar la contraseña de Router de la oficina')
  await browser.press(KEYS.up)
  await browser.press(KEYS.shift, KEYS.tab)
  assert.equal(await focus(browser), 'button: Cambiada', 'the whole list is one stop')
  const { id } = [...service.store.state.entries.entries()].find(({ sistema }) => sistema === 'Ágora')!
  await deleteEntry(service.store, id, null)
  await browser.click('#refresh')
  await browser.until("return !document.getElementById('rows').textContent.includes('Ágora')")
  for (let i = 0; i < 4; i++) await browser.press(KEYS.tab)
  assert.equal(await browser.run("return document.activeElement.closest('.row').querySelector('.system " +
    "bdi').textContent"), 'Nómina',
    'and stays with its entry')
})

inBrowser('an entry is made, looked at, changed and deleted by keyboard alone', EVERYWHERE, async t => {
  const { browser } = await openService(t, {}, entries())
  await browser.run("document.getElementById('create').focus()")
  await browser.press(KEYS.enter)
  assert.equal(await focus(browser), 'textbox: Sistema')
  await browser.press(...'Correo', KEYS.tab, ...'ana', KEYS.tab, ...'secreta', KEYS.enter)
  await browser.until("return document.getElementById('editor') === null && document.querySelector('#rows .row')")
  assert.equal(await focus(browser), 'rowheader: Correo', 'the focus is on what was created')
  await browser.press(KEYS.enter)
  await browser.until("return document.getElementById('viewer')?.open")
  assert.equal(await browser.run("return document.getElementById('spoken').textContent"), 'Abrir Correo',
    'Enter is announced')
  assert.equal(await focus(browser), 'button: Copiar la contraseña', 'what a person comes for')
  await browser.run("document.querySelector('#viewer [data-act=edit]').focus()")
  await browser.press(KEYS.enter)
  await browser.until("return document.getElementById('editor')?.open")
  await browser.press(KEYS.end, ...' nuevo', KEYS.enter)
  await browser.until("return document.activeElement.querySelector('bdi')?.textContent === 'Correo nuevo'")
  await browser.press(KEYS.end, KEYS.left, KEYS.enter)
  await browser.until("return document.getElementById('blank') !== null")
  assert.equal(await focus(browser), 'button: Añadir la primera')
})

inBrowser('dialogs have names, keep the focus, give it back, and say what is wrong at a field', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  const dialog = await browser.find('#editor')
  assert.deepEqual([await dialog.role(), await dialog.name()], ['dialog', 'Nueva contraseña'])
  await browser.click('#generate')
  for (let i = 0; i < 24; i++) {
    await browser.press(KEYS.tab)
    const inside = await browser.run("const { activeElement: at } = document; return at === document.body || " +
      "at.closest('#editor') !== null")
    assert.ok(inside)
  }
  const nameless = await browser.run<string[]>(`const all = '#editor :is(input, textarea, button)'
    return [...document.querySelectorAll(all)].filter(one => one.checkVisibility() && !one.ariaLabel &&
      !one.labels?.length && !one.textContent.trim()).map(one => one.outerHTML)`)
  assert.deepEqual(nameless, [])
  await browser.press(KEYS.escape)
  await browser.click('#confirm .danger')
  await browser.until("return document.getElementById('editor') === null")
  assert.equal(await focus(browser), 'button: Nueva')
})

inBrowser('the keys: search, new, copy user and password of the row, and the list of them', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await keepCopies(browser)
  await browser.run('document.activeElement.blur()')
  await browser.press('/')
  assert.equal(await focus(browser), 'searchbox: Buscar por sistema, usuario, dirección o grupo')
  await browser.press('n')
  assert.equal(await valueOf(browser, 'query'), 'n', 'in a field, a letter is a letter')
  await browser.press(KEYS.escape)
  await browser.press(KEYS.down)
  await browser.press(KEYS.control, 'b')
  await browser.until('return window.copied.length === 1')
  await browser.press(KEYS.control, 'c')
  await browser.until('return window.copied.length === 2')
  assert.deepEqual(await browser.run('return window.copied'), ['ana', 'x'.repeat(24)])
  await browser.press('?')
  assert.match(await textOf(browser, '#more'), /Ctrl B[^]*Copiar el usuario/)
  await browser.click('#single-keys')
  await browser.press(KEYS.escape)
  await browser.press('n')
  assert.equal(await isEditing(browser), false, 'switched off')
})

inBrowser('keys work in the viewer and on the focused row: copy, edit, delete, undo, search', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await keepCopies(browser)
  await view(browser, 'GitHub')
  await browser.press(KEYS.control, 'b')
  await browser.until('return copied.length === 1')
  await browser.press(KEYS.control, 'c')
  await browser.until('return copied.length === 2')
  assert.deepEqual(await browser.run('return copied'), ['anagarcia', 'ghp-no-es-esto'])
  await browser.press('e')
  await browser.until("return document.getElementById('editor')?.open")
  await browser.click('#change-password')
  await browser.fill('#password', 'quite another one')
  await browser.press(KEYS.enter)
  await until(() => service.store.state.entries.get(5)?.password === 'quite another one')
  await browser.until("return document.getElementById('editor') === null && document.querySelector('.message')")
  await browser.press(KEYS.control, 'z')
  await until(() => service.store.state.entries.get(5)?.password === 'ghp-no-es-esto')
  await browser.until("return document.activeElement.querySelector('bdi')?.textContent === 'GitHub'")
  await browser.press(KEYS.delete)
  await until(() => service.store.state.entries.get(5)?.status === 0)
  await told(browser, 'Eliminada: GitHub')
  await browser.press(KEYS.control, 'z')
  await until(() => service.store.state.entries.get(5)?.status === 1)
  await browser.until("return document.activeElement.querySelector('bdi')?.textContent === 'GitHub'")
  await browser.press(KEYS.control, 'k')
  assert.equal(await focus(browser), 'searchbox: Buscar por sistema, usuario, dirección o grupo')
})

inBrowser('each control has a name that contains its visible label', CHROMIUM, async t => {
  const { browser } = await openService(t)
  assert.deepEqual(await browser.run(`return [...document.querySelectorAll('button, a, select')]
    .filter(one => one.checkVisibility() && one.ariaLabel && !one.ariaLabel.includes(one.innerText.trim()))
    .map(one => one.outerHTML)`), [])
})
