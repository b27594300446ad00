/** The page for whoever has a keyboard alone, or a screen reader, a small window, or very many entries. */
import assert from 'node:assert/strict'
import test, { after, type TestContext } from 'node:test'
import { closeSharedBrowser, everyday, openPage, show } from '../support/page.ts'
import { startService, type Started } from '../support/service.ts'
import { KEYS, NO_BROWSER, type Browser } from '../support/webdriver.ts'

after(closeSharedBrowser)

const MANY = 10_000
/** What a frame may take, also on a slow machine that has other things to do. */
const MAX_FRAME_MS = 50

async function open(t: TestContext, fill: (started: Started) => Promise<unknown>): Promise<Browser> {
  const started = await startService(t, { page: 'on', journal: 'memory' })
  await fill(started)
  const browser = await openPage(started.url)
  return browser
}

const few = ({ service }: Started): Promise<void> => everyday(service.store)
const many = async ({ service }: Started): Promise<void> => {
  const create = (_: unknown, i: number): Promise<unknown> => service.store.createEntry(
    { sistema: `Sistema ${String(i).padStart(5, '0')}`, usuario: `usuario${i % 97}@example.org`, password: `p${i}` }, null)
  await Promise.all(Array.from({ length: MANY }, create))
}

/** Milliseconds of each step, and the most rows that were in the document. */
interface Measured {
  readonly scroll: readonly number[]
  readonly filter: readonly number[]
  readonly rows: number
}

/** Name and role of what has the focus. */
async function focus(browser: Browser): Promise<string> {
  const element = await browser.focused()
  return `${await element.role()}: ${await element.name()}`
}

test('the order of the Tab key, each stop with a name and a role', { skip: NO_BROWSER }, async t => {
  const browser = await open(t, few)
  const stops: string[] = []
  for (let i = 0; i < 6; i++) {
    await browser.press(KEYS.tab)
    stops.push(await focus(browser))
  }
  assert.deepEqual(stops, [
    'button: Español', 'button: English', 'searchbox: Buscar por sistema o usuario', 'button: Nueva',
    'button: Actualizar', 'rowheader: Ágora'
  ])
})

test('in the list, the arrow keys go from row to row and from column to column', { skip: NO_BROWSER }, async t => {
  const browser = await open(t, few)
  await browser.run("document.getElementById('query').focus()")
  await browser.press(KEYS.down)
  assert.equal(await focus(browser), 'rowheader: Ágora')
  await browser.press(KEYS.down)
  assert.equal(await focus(browser), 'rowheader: Banco Central')
  const columns: string[] = []
  for (let i = 0; i < 7; i++) {
    await browser.press(KEYS.right)
    columns.push(await focus(browser))
  }
  assert.deepEqual(columns, [
    'gridcell: ana.garcia', 'gridcell: Oculta', 'button: Mostrar la contraseña de Banco Central',
    'button: Copiar la contraseña de Banco Central', 'button: Editar Banco Central', 'button: Eliminar Banco Central',
    'button: Eliminar Banco Central'
  ])
  await browser.press(KEYS.home)
  assert.equal(await focus(browser), 'rowheader: Banco Central')
  await browser.press(KEYS.control, KEYS.end)
  assert.equal(await focus(browser), 'button: Eliminar Router de la oficina')
  await browser.press(KEYS.up)
  await browser.press(KEYS.left)
  await browser.press(KEYS.left)
  await browser.press(KEYS.left)
  await browser.press(KEYS.enter)
  assert.equal(await focus(browser), 'button: Ocultar la contraseña de Nómina')
  await browser.press(KEYS.left)
  assert.equal(await focus(browser), 'gridcell: mesa-nube-faro-trigo-loro')
  await browser.press(KEYS.shift, KEYS.tab)
  assert.equal(await focus(browser), 'button: Actualizar', 'the whole list is one stop')
})

test('a revealed password of any length can be read to its end, by keyboard too, at 360 px', { skip: NO_BROWSER }, async t => {
  const password = `${'0123456789'.repeat(60)}END`
  const browser = await open(t, ({ service }) => service.store.createEntry({ sistema: 'Larga', usuario: 'ana', password }, null))
  await show(browser, 360, 740, 'light')
  await browser.click('#rows [data-act=reveal]')
  await browser.press(KEYS.left)
  assert.equal(await focus(browser), `gridcell: ${password}`)
  /** How far the text reaches beyond its cell on either side, in pixels. */
  const hidden = (): Promise<{ readonly before: number, readonly behind: number }> => browser.run(`
    const cell = document.querySelector('#rows .password'), text = document.createRange()
    text.selectNodeContents(cell)
    const [inner, outer] = [text.getBoundingClientRect(), cell.getBoundingClientRect()]
    return { before: outer.left - inner.left, behind: inner.right - outer.right }`)
  assert.ok((await hidden()).before <= 0 && (await hidden()).behind > 1_000)
  let presses = 0
  for (; (await hidden()).behind > 0 && presses < 100; presses++) await browser.press(KEYS.right)
  assert.equal(await focus(browser), `gridcell: ${password}`)
  await browser.press(KEYS.right)
  assert.equal(await focus(browser), 'button: Ocultar la contraseña de Larga', 'and on, from its end')
  await browser.press(KEYS.left)
  for (; presses > 0; presses--) await browser.press(KEYS.left)
  assert.ok((await hidden()).before <= 0)
  await browser.press(KEYS.left)
  assert.equal(await focus(browser), 'gridcell: ana')
  assert.equal(await browser.run('return document.documentElement.scrollWidth > innerWidth'), false)
  await browser.devtools('Emulation.clearDeviceMetricsOverride')
})

test('an entry is made, changed and deleted by keyboard alone', { skip: NO_BROWSER }, async t => {
  const browser = await open(t, async () => {})
  await browser.run("document.getElementById('create').focus()")
  await browser.press(KEYS.enter)
  assert.equal(await focus(browser), 'textbox: Sistema')
  await browser.press(...'Correo', KEYS.tab, ...'ana', KEYS.tab, ...'secreta', KEYS.enter)
  await browser.until("return !document.getElementById('editor').open && document.querySelector('#rows .row')")
  assert.equal(await focus(browser), 'button: Nueva', 'the focus is back where it was')
  await browser.press(KEYS.tab, KEYS.tab, KEYS.enter)
  await browser.until("return document.getElementById('editor').open")
  await browser.press(KEYS.end, ...' nuevo', KEYS.enter)
  await browser.until("return document.activeElement.textContent.endsWith('Correo nuevo')")
  assert.equal(await focus(browser), 'rowheader: Correo nuevo')
  await browser.press(KEYS.end, KEYS.enter)
  assert.equal(await focus(browser), 'button: Cancelar')
  await browser.press(KEYS.tab, KEYS.enter)
  await browser.until("return document.getElementById('blank').checkVisibility()")
  assert.equal(await focus(browser), 'searchbox: Buscar por sistema o usuario')
})

test('the dialogs have names, keep the focus, and say what is wrong at the field', { skip: NO_BROWSER }, async t => {
  const browser = await open(t, few)
  await browser.click('#create')
  const dialog = await browser.find('#editor')
  assert.deepEqual([await dialog.role(), await dialog.name()], ['dialog', 'Nueva contraseña'])
  await browser.click('#generate')
  for (let i = 0; i < 20; i++) {
    await browser.press(KEYS.tab)
    const inside = await browser.run("const { activeElement: at } = document; return at === document.body || at.closest('#editor') !== null")
    assert.ok(inside)
  }
  const nameless = await browser.run<string[]>(`return [...document.querySelectorAll('#editor input, #editor button')]
    .filter(one => one.checkVisibility() && !one.ariaLabel && !one.labels?.length && !one.textContent.trim()).map(one => one.outerHTML)`)
  assert.deepEqual(nameless, [])
  await browser.press(KEYS.escape)
  await browser.click('#rows [data-act=remove]')
  const alert = await browser.find('#removal')
  assert.deepEqual([await alert.role(), await alert.name()], ['alertdialog', '¿Eliminar esta contraseña?'])
})

test('in both schemes and at every width, text has the contrast of AA and nothing is cut', { skip: NO_BROWSER }, async t => {
  const browser = await open(t, few)
  await browser.click('#create')
  await browser.click('#editor .end .main')
  await browser.click('#generate')
  for (const scheme of ['light', 'dark'] as const) {
    for (const width of [360, 768, 1440]) {
      await show(browser, width, 800, scheme)
      assert.deepEqual(await browser.run(FAINT), [], `${scheme} ${width}`)
      assert.equal(await browser.run('return document.documentElement.scrollWidth > innerWidth'), false, `${width}`)
      const small = await browser.run(`return [...document.querySelectorAll('button')].filter(one => one.checkVisibility())
        .map(one => [one.outerHTML, one.getBoundingClientRect()]).filter(([, box]) => box.height < 40 || box.width < 44)`)
      assert.deepEqual(small, [], `targets at ${width}`)
    }
  }
  await browser.devtools('Emulation.clearDeviceMetricsOverride')
  // With the colours that the system forces, what is chosen still looks otherwise than what is not.
  await browser.devtools('Emulation.setEmulatedMedia', { features: [{ name: 'forced-colors', value: 'active' }] })
  const alike = await browser.run(`return [['[data-language=es]', '[data-language=en]'], ['.choice label', '.choice label + label']]
    .filter(pair => new Set(pair.map(one => getComputedStyle(document.querySelector(one)).color)).size === 1)`)
  await browser.devtools('Emulation.setEmulatedMedia', { features: [] })
  assert.deepEqual(alike, [])
})

/** Texts whose contrast with what is behind them is under 4.5 (WCAG 2.2, 1.4.3), worked out by a canvas. */
const FAINT = `
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  const over = (below, color) => {
    canvas.fillStyle = below; canvas.fillRect(0, 0, 1, 1)
    canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1)
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data
    return 'rgb(' + r + ' ' + g + ' ' + b + ')'
  }
  const luminance = color => {
    const [r, g, b] = color.match(/\\d+/g).map(Number).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    return .2126 * r + .7152 * g + .0722 * b
  }
  const behind = element => element === null ? 'rgb(255 255 255)' : over(behind(element.parentElement), getComputedStyle(element).backgroundColor)
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const faint = []
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement
    if (walker.currentNode.data.trim() === '' || !element.checkVisibility({ opacityProperty: true }) || element.closest('.unseen')) continue
    const back = behind(element)
    const [a, b] = [luminance(over(back, getComputedStyle(element).color)), luminance(back)].sort((x, y) => y - x)
    const ratio = (a + .05) / (b + .05)
    if (ratio < 4.5) faint.push(walker.currentNode.data.trim() + ' ' + ratio.toFixed(2))
  }
  return faint`

test(`${MANY} entries scroll and filter without a long frame, a few rows at a time`, { skip: NO_BROWSER }, async t => {
  const browser = await open(t, many)
  const grid = await browser.find('#grid')
  assert.deepEqual([await grid.role(), await browser.run("return document.getElementById('grid').ariaRowCount")],
    ['grid', String(MANY + 1)])
  // Each step as often as it takes to have it once without another program in between.
  const { scroll, filter, rows } = await browser.run<Measured>(`return (async () => {
    const best = async (act, prepare = () => {}) => {
      let least = Infinity
      for (let i = 0; i < 3 || least >= ${MAX_FRAME_MS} && i < 12; i++) {
        prepare()
        document.body.getBoundingClientRect()
        await new Promise(done => setTimeout(done, 5))
        const start = performance.now()
        await act(i)
        document.body.getBoundingClientRect()
        least = Math.min(least, performance.now() - start)
      }
      return least
    }
    const scroll = [], filter = []
    let rows = 0
    for (let i = 1; i <= 12; i++) {
      scroll.push(await best(async again => {
        scrollTo({ top: i * 50000 + again * 5000, behavior: 'instant' })
        await new Promise(done => requestAnimationFrame(done))
      }))
      rows = Math.max(rows, document.querySelectorAll('#rows .row').length)
    }
    const query = document.getElementById('query')
    const search = text => {
      query.value = text
      query.dispatchEvent(new Event('input', { bubbles: true }))
    }
    for (const text of ['s', 'si', 'sis', 'sis 9', 'sis 99', 'usuario3', 'nada']) {
      filter.push(await best(() => search(text), () => search('')))
      filter.push(await best(() => search(''), () => search(text)))
    }
    search('')
    return { scroll, filter, rows }
  })()`)
  t.diagnostic(`a step of scrolling, with the wait for its frame: ${Math.max(...scroll).toFixed(1)} ms at most`)
  t.diagnostic(`a search, or its end: ${Math.max(...filter).toFixed(1)} ms at most`)
  assert.ok(rows < 60, `${rows} rows in the document`)
  for (const ms of [...scroll, ...filter]) assert.ok(ms < MAX_FRAME_MS, `${ms} ms`)
  // Any of them in reach of the keyboard, and told which it is.
  await browser.run("document.getElementById('query').focus()")
  await browser.press(KEYS.down)
  await browser.press(KEYS.control, KEYS.end)
  assert.equal(await focus(browser), 'button: Eliminar Sistema 09999')
  assert.equal(await browser.run("return document.activeElement.closest('.row').ariaRowIndex"), String(MANY + 1))
  await browser.press(KEYS.pageUp)
  const index = await browser.run<string>("return document.activeElement.closest('.row').ariaRowIndex")
  assert.ok(Number(index) < MANY && Number(index) > MANY - 50, index)
  // Scrolled far away, the row with the focus is still there.
  await browser.run("scrollTo({ top: 0, behavior: 'instant' })")
  await browser.until('return document.querySelector(\'#rows .row[aria-rowindex="2"]\')')
  assert.equal(await browser.run("return document.activeElement.closest('.row').ariaRowIndex"), index)
})
