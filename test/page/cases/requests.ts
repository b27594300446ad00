/**
 * What the page asks the service for, click by click, which secrets it was told, and what the journal records of it:
 * nothing but what was asked for.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { createEntry, updateEntry } from '../../../src/entries/entry-commands.ts'
import { ANA, PASSWORD as PASSWORD_OF_ANA } from '../../support/accounts.ts'
import { CHROMIUM, inBrowser, keepCopies, logIn, logInElsewhere, openProtected } from '../../support/page.ts'
import { atEnd, type Started } from '../../support/service.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'

/**
 * Each step, its requests, the secrets in their answers (of the password, the notes, the key of codes), and the types
 * of the records that the journal has of it.
 */
type Row = readonly [what: string, act: (browser: Browser) => Promise<unknown>, requests: readonly string[],
  told: readonly string[], records?: readonly string[]]

const PASSWORD = 'S3cr3ta-del-correo'
const NOTES = 'PIN of the door: 4711'
const KEY = 'GEZDGNBVGY3TQOJQ'
const FORMER = 'Antigua-del-correo'
const OTHERS = 'v7#Kq-92nR_wd'

const press = (selector: string) => (browser: Browser): Promise<unknown> =>
  browser.until('const one = document.querySelector(arguments[0]); one?.click(); return one !== null', selector)
const key = (...keys: readonly string[]) => (browser: Browser): Promise<unknown> => browser.press(...keys)
const choose = (id: string, value: string) => (browser: Browser): Promise<unknown> =>
  browser.run(`const select = document.getElementById(arguments[0])
    select.value = arguments[1]
    select.dispatchEvent(new Event('change'))`, id, value)
/** In the row of the entry with all fields. */
const row = (act: string): string => `.row[data-id="1"] ${act}`

/** A tag, and then the list that is not older: so that a change in between is a conflict. */
const EDIT = ['HEAD getPassword/1', 'listEntries']

const ROWS: readonly Row[] = [
  ['look again', press('#refresh'), ['listEntries'], []],
  ['filter by a search', browser => browser.fill('#query', 'correo'), [], []],
  ['end the search', press('#search .icon'), [], []],
  ['sort', press('#sort-usuario'), [], []],
  ['sort by the list', choose('order', 'changed'), [], []],
  ['see the choices of the filter', press('#filter'), [], []],
  ['filter by a group', press('#choices [role=group]:last-of-type .item:nth-of-type(3)'), [], []],
  ['end the filter', press('#chip'), [], []],
  ['see what is the same', press(row('.reused')), [], []],
  ['see all again', press('#chip'), [], []],
  ['see the menu', press('#show-menu'), [], []],
  ['change the language', press('#menu [data-language=en]'), [], []],
  ['change it back', press('#menu [data-language=es]'), [], []],
  ['open an entry', press(row('.system')), [], []],
  ['see its history', press('#history summary'), ['historyPassword/1'], []],
  ['show a former password', press('#history li:first-child .was .icon'), ['formerPassword/1/3'], [FORMER],
    ['passwords.told']],
  ['hide that', press('#history li:first-child .was .icon'), [], []],
  // Somebody who knows a password is told it again without a record.
  ['copy a former password', press('#history li:first-child .was .icon:last-child'), ['formerPassword/1/3'],
    [FORMER]],
  ['close the history', press('#history summary'), [], []],
  ['see who knows it', press('#knowers summary'), ['whoKnows/1'], []],
  ['close that again', press('#knowers summary'), [], []],
  ['show its password', press('#view-password .icon'), ['getPassword/1'], [PASSWORD, NOTES], ['passwords.told']],
  ['hide it', press('#view-password .icon'), [], []],
  ['show its code', press('#view-code .icon'), ['oneTimeCode/1'], []],
  ['hide the code', press('#view-code .icon'), [], []],
  ['copy its password', press('#viewer [data-act=copy]'), ['getPassword/1'], [PASSWORD, NOTES]],
  ['show its notes', press('#view-notes .icon'), ['getPassword/1'], [PASSWORD, NOTES]],
  ['hide the notes', press('#view-notes .icon'), [], []],
  ['copy its notes', press('#viewer [data-act=copyNotes]'), ['getPassword/1'], [PASSWORD, NOTES]],
  ['copy its code', press('#viewer [data-act=copyCode]'), ['oneTimeCode/1'], []],
  ['copy its address', press('#viewer [data-act=copyUrl]'), [], []],
  ['copy its user', press('#viewer [data-act=copyUser]'), [], []],
  ['close it', key(KEYS.escape), [], []],
  ['copy a password from the row', press(row('[data-act=copy]')), ['getPassword/1'], [PASSWORD, NOTES]],
  ['copy a code from the row', press(row('[data-act=copyCode]')), ['oneTimeCode/1'], []],
  ['copy a user from the row', press(row('[data-act=copyUser]')), [], []],
  ['edit an entry', press(row('[data-act=edit]')), EDIT, []],
  ['show its password there', press('#show-password'), ['getPassword/1'], [PASSWORD, NOTES]],
  ['hide it there', press('#show-password'), [], []],
  ['change its password', press('#change-password'), [], []],
  ['see what is typed', press('#peek'), [], []],
  ['keep the old one', press('#keep-old'), [], []],
  ['change its notes', press('#change-notas'), [], []],
  ['replace its key of codes', press('#replace-code'), [], []],
  ['keep that', press('#keep-typed'), [], []],
  ['give up', press('#editor .second'), [], []],
  ['edit it again', press(row('[data-act=edit]')), EDIT, []],
  ['change the password without a look at it', press('#change-password'), ['getPassword/1'], [PASSWORD, NOTES]],
  ['give that up, too', press('#editor .second'), [], []],
  ['edit once more', press(row('[data-act=edit]')), EDIT, []],
  ['change the notes', press('#change-notas'), ['getPassword/1'], [PASSWORD, NOTES]],
  ['give up once more', press('#editor .second'), [], []],
  ['edit to rename', press(row('[data-act=edit]')), EDIT, []],
  ['rename', browser => browser.fill('#usuario', 'ana'), [], []],
  // The contract answers a change with the whole entry.
  ['save the name', press('#editor .main'), ['updatePassword/1 {"usuario":"ana"}'], [PASSWORD, NOTES],
    ['entry.updated']],
  ['begin a new one', press('#create'), [], []],
  ['generate', press('#generate'), [], []],
  ['give that up', press('#editor .second'), [], []],
  ['discard it', press('#confirm .danger'), [], []],
  ['see the help', press('#help'), [], []],
  ['close that', key(KEYS.escape), [], []],
  ['delete an entry', press(row('[data-act=remove]')), ['deletePassword/1'], [], ['entry.deleted']],
  ['undo that', press('.message .offer'), ['restorePassword/1'], [], ['entry.restored']],
  ['delete it again', press(row('[data-act=remove]')), ['deletePassword/1'], [], ['entry.deleted']],
  ['see the deleted ones', press('.to-deleted'), ['deletedPasswords', 'deletedPasswords/1'], []],
  ['open a deleted one', press(row('.system')), [], []],
  ['see the history of a deleted one', press('#history summary'), ['historyPassword/1'], []],
  ['show the password of a deleted one', press('#view-password .icon'), ['getPassword/1'], [PASSWORD, NOTES]],
  ['close it again', key(KEYS.escape), [], []],
  ['ask to restore all', press('#restore-all'), [], []],
  ['not yet', press('#confirm .second'), [], []],
  ['restore it', press(row('[data-act=restore]')), ['restorePassword/1', 'listEntries'], [], ['entry.restored']],
  ['go back to the list', press('.to-deleted'), [], []]
]

const MINE = '{"email":"ana@example.org","password":"correct horse battery staple"}'

const ACCOUNT: readonly Row[] = [
  ['type who it is', browser => browser.fill('#email', ANA), [], []],
  ['and the password', browser => browser.fill('#secret', PASSWORD_OF_ANA), [], []],
  ['see what is typed', press('#login .icon'), [], []],
  ['log in', press('#login .main'), [`login ${MINE}`, 'listEntries'], [], ['token.issued']],
  ['see the account', press('#show-account'), ['ownSessions'], []],
  ['end the others', press('#end-others'), ['endOwnSessions {"session":"others"}', 'ownSessions'], [],
    ['token.revoked', 'token.revoked']],
  ['see the field of the own password', press('#show-own'), [], []],
  ['put that away', key(KEYS.escape), [], []],
  ['close the account', key(KEYS.escape), [], []],
  ['see who knows a password', press(row('.system')), [], []],
  ['ask for it', press('#knowers summary'), ['whoKnows/1'], []],
  ['close the entry', key(KEYS.escape), [], []],
  ['log out', press('#logout'), ['logout'], [], ['token.revoked']]
]

/** Keeps the type of each record of the journal, until the test ends. */
function recordsOf(t: TestContext, { service: { store } }: Started): string[] {
  const types: string[] = []
  const { events } = store.state
  const { reduce } = events
  events.reduce = (state, record, ms) => {
    // A draft has it, too, before it is durable.
    if (state === store.state) types.push(record.type)
    reduce.call(events, state, record, ms)
  }
  atEnd(t, async () => { events.reduce = reduce })
  return types
}

/** Follows the rows, each once the page has had all its answers. */
async function follow(
  t: TestContext, started: Started & { readonly browser: Browser }, rows: readonly Row[]
): Promise<void> {
  const { browser } = started
  const recorded = recordsOf(t, started)
  await keepCopies(browser)
  await browser.run(`window.asked = []
    window.running = 0
    const real = window.fetch
    window.fetch = async (url, init) => {
      running++
      const method = init?.method === 'HEAD' ? 'HEAD ' : ''
      const path = String(url).split('/api/')[1] ?? String(url).split('/').at(-1)
      const own = [method + path + (init?.body && init.body !== '{}' ? ' ' + init.body : ''), '']
      asked.push(own)
      try {
        const answer = await real(url, init)
        own[1] = await answer.clone().text()
        return answer
      } finally { running-- }
    }`)
  for (const [what, act, requests, told, records = []] of rows) {
    await browser.run('asked.length = 0')
    recorded.length = 0
    await act(browser)
    await browser.until('return running === 0 && asked.length >= arguments[0]', requests.length)
    await browser.drawn()
    await browser.until('return running === 0')
    const seen = await browser.run<readonly (readonly [string, string])[]>('return asked')
    assert.deepEqual(seen.map(([path]) => path), requests, what)
    const texts = seen.map(([, text]) => text).join()
    assert.deepEqual([PASSWORD, NOTES, KEY, FORMER, OTHERS].filter(secret => texts.includes(secret)), told,
      `${what}: what was told`)
    assert.deepEqual(recorded, records, `${what}: what was recorded`)
  }
}

inBrowser('each click asks for what it is about; nothing else is told or recorded', CHROMIUM, async t => {
  const started = await openProtected(t, ['*'], { 'extra-routes': 'on', 'rate-limit': '1000' })
  const { browser, service: { store } } = started
  await updateEntry(store, 1, { notas: NOTES, otp: KEY, grupo: 'Finanzas', url: 'https://example.org' }, null)
  for (const password of [FORMER, PASSWORD]) await updateEntry(store, 1, { password }, null)
  await createEntry(store, { sistema: 'Otro correo', usuario: 'ana', password: PASSWORD }, null)
  await logIn(browser)
  await browser.until("return document.querySelector('#rows [data-act=copyCode]') !== null")
  await follow(t, started, ROWS)
})

inBrowser('each click of an account asks for what it is about; nothing else is told or recorded', CHROMIUM, async t => {
  const started = await openProtected(t)
  for (let n = 0; n < 2; n++) await logInElsewhere(started)
  await follow(t, started, ACCOUNT)
})
