/**
 * What the page asks the service for, click by click, and which secrets it was told: nothing but what was asked for.
 */
import assert from 'node:assert/strict'
import { updateEntry } from '../../../src/store/commands.ts'
import { CHROMIUM, inBrowser, openService } from '../../support/page.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'

/** Each step, its requests, and the secrets in their answers: of the password, the notes, the key of codes. */
type Row = readonly [what: string, act: (browser: Browser) => Promise<unknown>, requests: readonly string[],
  told: readonly string[]]

const PASSWORD = 'S3cr3ta-del-correo'
const NOTES = 'PIN of the door: 4711'
const KEY = 'GEZDGNBVGY3TQOJQ'
const OTHERS = 'v7#Kq-92nR_wd'

const press = (selector: string) => (browser: Browser): Promise<unknown> =>
  browser.until('const one = document.querySelector(arguments[0]); one?.click(); return one !== null', selector)
const key = (...keys: readonly string[]) => (browser: Browser): Promise<unknown> => browser.press(...keys)
/** In the row of the entry with all fields. */
const row = (act: string): string => `.row[data-id="1"] ${act}`

const ROWS: readonly Row[] = [
  ['look again', press('#refresh'), ['listEntries'], []],
  ['filter by a search', browser => browser.fill('#query', 'correo'), [], []],
  ['end the search', browser => browser.fill('#query', ''), [], []],
  ['sort', press('#sort-usuario'), [], []],
  ['open an entry', press(row('.system')), [], []],
  ['see its history', press('#history summary'), ['historyPassword/1'], []],
  ['show its password', press('#view-password .icon'), ['getPassword/1'], [PASSWORD, NOTES]],
  ['hide it', press('#view-password .icon'), [], []],
  ['show its code', press('#view-code .icon'), ['oneTimeCode/1'], []],
  ['hide the code', press('#view-code .icon'), [], []],
  ['copy its user', press('#viewer [data-act=copyUser]'), [], []],
  ['close it', key(KEYS.escape), [], []],
  ['copy a password from the row', press(row('[data-act=copy]')), ['getPassword/1'], [PASSWORD, NOTES]],
  ['copy a code from the row', press(row('[data-act=copyCode]')), ['oneTimeCode/1'], []],
  ['copy a user from the row', press(row('[data-act=copyUser]')), [], []],
  ['edit an entry', press(row('[data-act=edit]')), ['getPassword/1'], [PASSWORD, NOTES]],
  ['give up', press('#editor .second'), [], []],
  ['begin a new one', press('#create'), [], []],
  ['generate', press('#generate'), [], []],
  ['give that up', press('#editor .second'), [], []],
  ['discard it', press('#confirm .danger'), [], []],
  ['see the help', press('#help'), [], []],
  ['close that', key(KEYS.escape), [], []],
  ['delete an entry', press(row('[data-act=remove]')), ['deletePassword/1'], []],
  ['see the deleted ones', press('.to-deleted'), ['deletedPasswords', 'deletedPasswords/1'], []],
  ['open a deleted one', press(row('.system')), [], []],
  ['close it again', key(KEYS.escape), [], []],
  ['restore it', press(row('[data-act=restore]')), ['restorePassword/1', 'listEntries'], []],
  ['go back to the list', press('.to-deleted'), [], []]
]

inBrowser('each click asks for what it is about, and nothing else is told', CHROMIUM, async t => {
  const { browser, service } = await openService(t, { 'extra-routes': 'on', journal: 'file' })
  await updateEntry(service.store, 1, { notas: NOTES, otp: KEY }, null)
  await browser.run("document.getElementById('refresh').click()")
  await browser.until("return document.querySelector('#rows [data-act=copyCode]') !== null")
  await browser.run(`window.asked = []
    window.running = 0
    const real = window.fetch
    window.fetch = async (url, init) => {
      running++
      const own = [String(url).split('/api/')[1] ?? String(url).split('/').at(-1), '']
      asked.push(own)
      try {
        const answer = await real(url, init)
        own[1] = await answer.clone().text()
        return answer
      } finally { running-- }
    }`)
  for (const [what, act, requests, told] of ROWS) {
    await browser.run('asked.length = 0')
    await act(browser)
    await browser.until('return running === 0 && asked.length >= arguments[0]', requests.length)
    await browser.drawn()
    await browser.until('return running === 0')
    const seen = await browser.run<readonly (readonly [string, string])[]>('return asked')
    assert.deepEqual(seen.map(([path]) => path), requests, what)
    const texts = seen.map(([, text]) => text).join()
    assert.deepEqual([PASSWORD, NOTES, KEY, OTHERS].filter(secret => texts.includes(secret)), told,
      `${what}: what was told`)
  }
})
