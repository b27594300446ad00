/** What is drawn: places and sizes of the list, contrast, cut texts, forced colours, print. */
import assert from 'node:assert/strict'
import { createEntry, updateEntry } from '../../../src/entries/entry-commands.ts'
import { CHROMIUM, entries, EVERYWHERE, inBrowser, openService, remove, rowOf, show, view } from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'

inBrowser('rows are 56 px, in two lines 64; copy stays in place, and texts lose no room', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  for (const [width, height, wide] of [[1280, 56, 1120], [1920, 56, 1360], [768, 64, 0], [390, 64, 0]] as const) {
    await browser.resize(width, 800)
    const [row, tile, copy, right, list, aside] = await browser.run<number[]>(`
      const box = selector => document.querySelector(selector).getBoundingClientRect()
      const row = box('#rows .row'), copy = box('#rows [data-act=copy]')
      const middleOf = ({ left, right }) => (left + right) / 2
      return [row.height, box('#rows .tile').height, copy.width, row.right - copy.right, box('#grid').width,
        middleOf(box('#refresh')) - middleOf(copy)]`)
    assert.ok(Math.abs(aside!) <= 1, `${width}: to refresh is above to copy: ${aside}`)
    assert.equal(row, height, `${width}`)
    assert.ok(tile! >= 32 && tile! <= 34)
    assert.ok(width < 960 ? copy === 48 : copy === 40 && Math.abs(right! - 12) < .5, `${width}: ${copy} ${right}`)
    if (wide > 0) assert.ok(list! <= wide && list! > wide - 30, `${width}: ${list}`)
  }
  await browser.resize(1280, 800)
  const startOf = (selector: string): Promise<number> => browser.run(`const range = document.createRange()
    range.selectNodeContents(document.querySelector(arguments[0]))
    return Math.round(range.getBoundingClientRect().x)`, selector)
  for (const [head, text] of [['#sort-sistema', '.system bdi'], ['#sort-usuario', '.user bdi'],
    ['#sort-changed', '.since']] as const) {
    assert.ok(Math.abs(await startOf(head) - await startOf(`#rows ${text}`)) <= 1, `${head} is above its column`)
  }
  const places = `return [...document.querySelectorAll(arguments[0] + ' :is(.system, .user, .changed)')]
    .map(one => one.getBoundingClientRect().x)`
  const row = await rowOf(browser, 'Correo')
  const before = await browser.run(places, row)
  await browser.run("document.querySelector(arguments[0]).focus()", `${row} [data-act=edit]`)
  await browser.drawn()
  assert.deepEqual(await browser.run(places, row), before)
  const gap = await browser.run<number>(`const [user, button] = ['.user', '.copyUser']
      .map(one => document.querySelector(arguments[0] + ' ' + one).getBoundingClientRect())
    return button.left - user.right`, row)
  assert.ok(gap > -.5 && gap < 8, `copy-user is directly behind the text: ${gap}`)
})

inBrowser('when the window changes its size, or the list its length, focus and rows stay', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  for (let i = 0; i < 30; i++) await createEntry(service.store, { sistema: `M ${i}`, usuario: 'u', password: 'p' },
    null)
  await browser.click('#refresh')
  await browser.until("return document.getElementById('grid').ariaRowCount === '39'")
  const button = `${await rowOf(browser, 'Correo')} [data-act=copy]`
  await browser.run('(window.kept = document.querySelector(arguments[0])).focus()', button)
  for (const width of [700, 1200]) {
    await browser.resize(width, 800)
    assert.ok(await browser.run('return document.activeElement === kept'), `${width}`)
  }
  await createEntry(service.store, { sistema: 'Zeta', usuario: 'u', password: 'p' }, null)
  await browser.run("document.getElementById('refresh').click()")
  await browser.until("return document.getElementById('grid').ariaRowCount === '40'")
  await browser.drawn()
  assert.ok(await browser.run('return document.activeElement === kept'))
})

inBrowser('a tile is drawn whole at every width, and the head stays', EVERYWHERE, async t => {
  const { browser, service } = await openService(t, {}, entries(['AAA', 'ana', 'p'], ['Ágora', 'ana', 'x']))
  for (const width of [390, 768, 1366]) {
    await browser.resize(width, 700)
    // What is clipped is not hit either.
    assert.deepEqual(await browser.run(`return [...document.querySelectorAll('#rows .tile')].map(tile => {
      const { left, top, right, bottom } = tile.getBoundingClientRect()
      return [top + 2, bottom - 2].every(y => document.elementsFromPoint((left + right) / 2, y).includes(tile))
    })`), [true, true], `${width}`)
  }
  for (let i = 0; i < 60; i++) await createEntry(service.store, { sistema: `M ${i}`, usuario: 'u', password: 'p' },
    null)
  await browser.click('#refresh')
  await browser.until("return document.getElementById('grid').ariaRowCount === '63'")
  await browser.run("scrollTo({ top: 1500, behavior: 'instant' })")
  await browser.drawn()
  const [head, bar] = await browser.run<[number,
    number]>("return [document.querySelector('.head').getBoundingClientRect().top, " +
      "document.querySelector('header').getBoundingClientRect().bottom]")
  assert.equal(Math.round(head), Math.round(bar))
})

inBrowser('on a phone the viewer is a sheet that is dragged shut; the editor fills the screen', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await browser.resize(390, 700)
  await view(browser, 'Correo')
  const [top, bottom, foot] = await browser.run<number[]>(`
    const box = document.getElementById('viewer').getBoundingClientRect()
    const last = document.querySelector('#viewer .end .main').getBoundingClientRect()
    return [box.top, innerHeight - box.bottom, innerHeight - last.bottom]`)
  assert.ok(top! >= 105 && bottom === 0 && foot! < 40, `${top} ${bottom} ${foot}`)
  await browser.run(`const top = document.querySelector('#viewer .top'), { x, y } = top.getBoundingClientRect()
    top.setPointerCapture = () => {}
    for (const [type, dy] of [['pointerdown', 5], ['pointermove', 150], ['pointerup', 150]]) {
      top.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 1, clientX: x + 5, clientY: y + dy }))
    }`)
  await browser.until("return document.getElementById('viewer') === null")
  await browser.click('#create')
  const boxes = await browser.run<number[]>(`const box = document.getElementById('editor').getBoundingClientRect()
    const tops = ['.end .second', '.end .main'].map(one =>
      document.querySelector('#editor ' + one).getBoundingClientRect().top)
    return [box.width, box.height, ...tops]`)
  assert.deepEqual(boxes.slice(0, 2), [390, 700])
  assert.ok(boxes[2]! < 20 && boxes[3]! < 20, 'Cancel and Save are in its bar')
  assert.equal(await browser.run("return getComputedStyle(document.getElementById('sistema')).fontSize"), '16px')
})

inBrowser('a message stays above the buttons of a sheet, also once the window becomes narrow', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await browser.resize(1200, 800)
  await remove(browser, 'GitHub')
  await view(browser, 'Correo')
  for (const width of [390, 1200, 390]) {
    await browser.resize(width, 800)
    await browser.drawn()
    assert.equal(await browser.run(`const button = document.querySelector('#viewer .end .main')
      const { x, y, width, height } = button.getBoundingClientRect()
      return document.elementFromPoint(x + width / 2, y + height / 2).closest('.message')?.textContent ?? ''`), '',
        `${width} px`)
  }
})

inBrowser('a dialog is as high as what it holds, as a card and as a sheet; notes are whole', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await updateEntry(service.store, 1, { notas: 'one\ntwo\nthree\nfour' }, null)
  for (const width of [1200, 390]) {
    await browser.resize(width, 800)
    await view(browser, 'Correo')
    assert.ok(await browser.run<number>(`const last = document.querySelector('#viewer .content').lastElementChild
      const { bottom } = last.getBoundingClientRect()
      return document.querySelector('#viewer .end').getBoundingClientRect().top - bottom`) < 40, `${width}`)
    await browser.click('#viewer .end .main')
    await browser.find('#editor')
    await browser.click('#change-notas')
    await browser.find('#notas')
    assert.ok(await browser.run("const { scrollHeight, clientHeight } = document.getElementById('notas'); return " +
      "scrollHeight <= clientHeight"))
    await browser.press(KEYS.escape)
  }
})

inBrowser('choices of the generator that stand in one row are of one width', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  await browser.click('#generate')
  await browser.find('#generator')
  for (const width of [1280, 390]) {
    await show(browser, width, 800, 'light')
    assert.deepEqual(await browser.run(`return [...document.querySelectorAll('.choice')].map(choice =>
      new Set([...choice.children].map(one => one.getBoundingClientRect().width.toFixed(1))).size)
      .filter(widths => widths !== 1)`), [], `${width}`)
  }
})

inBrowser('a long address breaks behind its signs, and nowhere else', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  const url = 'https://intranet.administracion.example.org/acceso/personal'
  const usuario = 'un.nombre.de.usuario.muy.largo@administracion.example.org'
  await updateEntry(service.store, 1, { sistema: url, url, usuario }, null)
  await browser.click('#refresh')
  await browser.click('.row[data-id="1"] .system')
  for (const width of [1280, 390, 360]) {
    await show(browser, width, 800, 'light')
    assert.deepEqual(await browser.run(BROKEN), [], `${width}`)
  }
})

inBrowser('on a phone marks end beside what a row can copy', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  for (const id of [1, 2]) await updateEntry(service.store, id, { password: 'one for both' }, null)
  await updateEntry(service.store, 1, { otp: 'GEZDGNBVGY3TQOJQ' }, null)
  await browser.click('#refresh')
  await browser.until("return document.querySelectorAll('#rows .badge').length === 2")
  await browser.resize(390, 800)
  assert.ok(await browser.run(`return [...document.querySelectorAll('#rows .row:has(.badge)')].every(row => {
    const next = row.querySelector('.copyCode .icon') ?? row.querySelector('.copy .icon')
    const gap = next.getBoundingClientRect().left - row.querySelector('.marks').getBoundingClientRect().right
    return gap >= 0 && gap <= 8
  })`))
})

inBrowser('menus end where their buttons end, also beside the space of a scroll bar', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await show(browser, 1280, 800, 'light')
  for (const [button, menu] of [['show-menu', 'menu'], ['filter', 'choices']]) {
    const ends = await browser.run<readonly number[]>(`document.getElementById(arguments[0]).click()
      return [...arguments].map(id => Math.round(document.getElementById(id).getBoundingClientRect().right))`,
      button, menu)
    assert.equal(ends[0], ends[1], menu)
    await browser.run('document.getElementById(arguments[0]).hidePopover()', menu)
  }
})

inBrowser('on paper there is a sentence and no list', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await browser.devtools('Emulation.setEmulatedMedia', { media: 'print' })
  const printed = await browser.run('return document.body.innerText.trim()')
  await browser.devtools('Emulation.setEmulatedMedia', { media: '' })
  assert.equal(printed, 'La lista de contraseñas no se imprime.')
})

inBrowser('in both schemes at every width text has the contrast of AA and no target is small', EVERYWHERE, async t => {
  const { browser } = await openService(t, {}, entries(['Uno', 'ana', 'p'], ['Dos', 'ana', 'p'],
    ['https://bank.example/login', 'ana', 'q']))
  const look = async (): Promise<void> => {
    for (const scheme of browser.native.prefer === undefined ? ['light'] as const : ['light', 'dark'] as const) {
      for (const width of [360, 768, 1440]) {
        await show(browser, width, 800, scheme)
        assert.deepEqual(await browser.run(FAINT), [], `${scheme} ${width}`)
        assert.equal(await browser.run('return document.documentElement.scrollWidth > innerWidth'), false, `${width}`)
        const small = await browser.run(`return [...document.querySelectorAll('button:not(.badge)')]
          .filter(one => one.checkVisibility()).map(one => [one.outerHTML, one.getBoundingClientRect()])
          .filter(([, box]) => box.height < 39.9 || box.width < 31.9)`)
        assert.deepEqual(small, [], `targets at ${width}`)
      }
    }
  }
  await look()
  await browser.click('#create')
  await browser.click('#editor .main')
  await browser.click('#generate')
  await look()
  await show(browser, 1200, 900, 'light')
})

inBrowser('with forced colours, what is pressed looks otherwise than what is not', ['chromium', 'firefox'], async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  await browser.click('#generate')
  await browser.find('#peek[aria-pressed=true]')
  await show(browser, 1440, 800, 'light', true)
  await browser.until("return matchMedia('(forced-colors: active)').matches")
  const alike = await browser.run(`return [['.choice label', '.choice label + label'], ['#peek', '#editor .top .icon']]
    .map(pair => pair.map(one => getComputedStyle(document.querySelector(one)).backgroundColor))
    .filter(([one, other]) => one === other)`)
  await show(browser, 1440, 800, 'light')
  assert.deepEqual(alike, [])
})

/** Lines of the viewer that end within a word. */
const BROKEN = `
  const texts = [...document.querySelectorAll('#viewer :is(h2, .facts bdi)')]
  return texts.flatMap(text => {
    const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT), range = document.createRange()
    const found = []
    let last
    while (walker.nextNode()) for (let i = 0; i < walker.currentNode.length; i++) {
      const { data } = walker.currentNode
      range.setStart(walker.currentNode, i)
      range.setEnd(walker.currentNode, i + 1)
      const { top } = range.getBoundingClientRect()
      if (last !== undefined && top > last.top + 4 && /\\w/.test(last.sign) && /\\w/.test(data[i])) found.push(data)
      last = { top, sign: data[i] }
    }
    return found
  })`

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
    const [r, g, b] = color.match(/\\d+/g).map(v => Number(v) / 255)
      .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    return .2126 * r + .7152 * g + .0722 * b
  }
  const behind = element => element === null ? 'rgb(255 255 255)' :
    over(behind(element.parentElement), getComputedStyle(element).backgroundColor)
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const faint = []
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement
    const isSeen = element.checkVisibility({ opacityProperty: true }) && !element.closest('.unseen')
    if (walker.currentNode.data.trim() === '' || !isSeen) continue
    const back = behind(element)
    const [a, b] = [luminance(over(back, getComputedStyle(element).color)), luminance(back)].sort((x, y) => y - x)
    const ratio = (a + .05) / (b + .05)
    if (ratio < 4.5) faint.push(walker.currentNode.data.trim() + ' ' + ratio.toFixed(2))
  }
  return faint`

