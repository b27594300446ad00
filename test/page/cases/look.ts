/** What is drawn: contrast, cut texts, sizes, forced colours, print. */
import assert from 'node:assert/strict'
import { CHROMIUM, entries, EVERYWHERE, inBrowser, openService, rowOf, show } from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'

inBrowser('at every width a row\'s tile is drawn whole, and a revealed password, its spaces and look-alikes marked', EVERYWHERE, async t => {
  const password = 'O0l1I| \u0430bc  '
  const long = `${'0123456789'.repeat(6)}END`
  const { browser } = await openService(t, {}, entries(['AAA', 'ana', password], ['AAB', 'ana', long], ['Ágora', 'ana', 'x']))
  for (const width of [360, 768, 1366]) {
    await browser.resize(width, 700)
    // What is clipped is not hit either.
    assert.deepEqual(await browser.run(`return [...document.querySelectorAll('#rows .tile')].map(tile => {
      const { left, top, right, bottom } = tile.getBoundingClientRect()
      return [top + 2, bottom - 2].every(y => document.elementsFromPoint((left + right) / 2, y).includes(tile))
    })`), [true, true, true], `${width}`)
    // A narrow row has one button; the rest is in the dialog.
    if (width > 700) for (const [system, text] of [['AAA', password], ['AAB', long]] as const) {
      const row = await rowOf(browser, system)
      await browser.click(`${row} [data-act=reveal]`)
      await browser.find(`${row} .revealed`)
      const [shown, cut, below] = await browser.run<[string, boolean, number]>(`
        const row = document.querySelector(arguments[0]), cell = row.querySelector('.password'), box = cell.getBoundingClientRect()
        const next = row.nextElementSibling.getBoundingClientRect()
        return [cell.textContent, cell.scrollWidth > cell.clientWidth || cell.scrollHeight > cell.clientHeight || box.right > innerWidth,
          next.top - box.bottom]`, row)
      assert.equal(shown, text)
      assert.ok(!cut, `${system} is cut at ${width}`)
      assert.ok(below >= 0, `${system} at ${width} covers the next row`)
      if (system === 'AAA') {
        assert.deepEqual(await browser.run(`return ['space', 'digit', 'foreign', 'symbol'].map(kind =>
          [...document.querySelectorAll(arguments[0] + ' .' + kind)].map(one => one.textContent).join(''))`, row), ['   ', '01', '\u0430', '|'])
      }
      await browser.click(`${row} [data-act=reveal]`)
    }
  }
})

inBrowser('the ring of the focus goes around a name, not through its tile, and the bin is apart from the pencil', CHROMIUM, async t => {
  const { browser } = await openService(t)
  const edge = (selector: string, side: 'left' | 'right'): Promise<number> =>
    browser.run('return document.querySelector(arguments[0]).getBoundingClientRect()[arguments[1]]', selector, side)
  await browser.resize(1200, 700)
  const gap = async (left: string, right: string): Promise<number> =>
    await edge(`#rows [data-act=${right}]`, 'left') - await edge(`#rows [data-act=${left}]`, 'right')
  assert.ok(await gap('edit', 'remove') > await gap('copy', 'edit') + 16)
  await browser.resize(360, 700)
  for (const name of ['.system', '.user']) assert.ok(await edge(`#rows ${name}`, 'left') >= await edge('#rows .tile', 'right'), name)
})

inBrowser('a password of thousands of characters can be read to its end by keyboard', EVERYWHERE, async t => {
  const { browser } = await openService(t, {},
    entries(['AAA', 'ana', `${'0123456789'.repeat(500)}END`], ['Ágora', 'ana', 'x']))
  await browser.resize(768, 400)
  await browser.click('#rows [data-act=reveal]')
  await browser.find('#rows .revealed')
  await browser.press(KEYS.left)
  const left = (): Promise<number> => browser.run(`const cell = document.querySelector('#rows .revealed')
    return cell.scrollHeight - cell.clientHeight - cell.scrollTop`)
  assert.ok(await left() > 100)
  for (let i = 0; i < 20 && await left() > 1; i++) await browser.press(KEYS.down)
  assert.ok(await left() <= 1)
  await browser.press(KEYS.down)
  assert.equal(await browser.run("return document.activeElement.closest('.row').querySelector('.system').textContent"), 'Ágora')
})

inBrowser('the buttons of the generator stay in sight in a small window', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  await browser.click('#generate')
  for (const [width, height] of [[1366, 625], [683, 312], [360, 640]] as const) {
    await browser.resize(width, height)
    const seen = await browser.run(`return ['again', 'use'].map(id => {
      const { left, top, right, bottom } = document.getElementById(id).getBoundingClientRect()
      return top >= 0 && bottom <= innerHeight && document.elementFromPoint((left + right) / 2, (top + bottom) / 2)?.closest('button')?.id === id
    })`)
    assert.deepEqual(seen, [true, true], `${width} x ${height}`)
  }
})

inBrowser('on paper there is a sentence and no list', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await browser.devtools('Emulation.setEmulatedMedia', { media: 'print' })
  const printed = await browser.run('return document.body.innerText.trim()')
  await browser.devtools('Emulation.setEmulatedMedia', { media: '' })
  assert.equal(printed, 'La lista de contraseñas no se imprime.')
})

inBrowser('in both schemes and at every width, text has the contrast of AA and nothing is cut', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  await browser.click('#editor .end .main')
  await browser.click('#generate')
  for (const scheme of browser.native.prefer === undefined ? ['light'] as const : ['light', 'dark'] as const) {
    for (const width of [360, 768, 1440]) {
      await show(browser, width, 800, scheme)
      assert.deepEqual(await browser.run(FAINT), [], `${scheme} ${width}`)
      assert.equal(await browser.run('return document.documentElement.scrollWidth > innerWidth'), false, `${width}`)
      const small = await browser.run(`return [...document.querySelectorAll('button')].filter(one => one.checkVisibility())
        .map(one => [one.outerHTML, one.getBoundingClientRect()]).filter(([, box]) => box.height < 39.9 || box.width < 43.9)`)
      assert.deepEqual(small, [], `targets at ${width}`)
    }
  }
})

inBrowser('with forced colours, what is pressed looks otherwise than what is not', ['chromium', 'firefox'], async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  await browser.click('#generate')
  await browser.click('#peek')
  await show(browser, 1440, 800, 'light', true)
  await browser.until("return matchMedia('(forced-colors: active)').matches")
  const alike = await browser.run(`return [['[data-language=es]', '[data-language=en]'], ['.choice label', '.choice label + label'],
    ['#peek', '#editor [data-close]'], ['#generate', '#editor [data-close]']]
    .filter(pair => new Set(pair.map(one => getComputedStyle(document.querySelector(one)).backgroundColor)).size === 1)`)
  await show(browser, 1440, 800, 'light')
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

