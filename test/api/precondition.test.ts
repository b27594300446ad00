/**
 * Who has created what, and changes that must not overwrite another's: Location, ETag and If-Match (RFC 9110 §8.8.3,
 * §13.1.1).
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { preconditionIn } from '../../src/entries/entry-routes.ts'
import { openService } from '../../src/embedding/embedded-service.ts'
import { failure } from '../support/journal.ts'
import { fileStore, rotateKey, type FullStore } from '../support/stores.ts'
import { randomOf } from '../support/random.ts'
import { compact } from '../support/rewrite.ts'
import { startService, type Started } from '../support/service.ts'
import { updateEntry } from '../../src/entries/entry-commands.ts'

const FIELDS = { password: 'p', sistema: 's', usuario: 'u' }

async function ask(
  { url }: Pick<Started, 'url'>, method: string, path: string, body?: unknown, headers: Record<string, string> = {}
): Promise<{ readonly status: number, readonly tag: string | null, readonly location: string | null,
  readonly json: any }> {
  const type = body === undefined ? {} : { 'Content-Type': 'application/json' }
  const response = await fetch(url + path, { method, headers: { ...type, ...headers }, ...body !== undefined &&
    { body: JSON.stringify(body) } })
  return { status: response.status, tag: response.headers.get('ETag'), location: response.headers.get('Location'),
    json: await response.json() }
}

const CHANGED = { message: 'Precondition Failed', status: 412 }

async function started(t: TestContext, flags: Record<string, string> = {}): Promise<Started> {
  const service = await startService(t, flags)
  await ask(service, 'POST', '/api/createPassword', FIELDS)
  return service
}

test('If-Match is an asterisk, or a list of tags apart by commas, of which one must be the entry\'s', t => {
  const random = randomOf(t)
  const parts = [',', ', ', '\t', '*', '"5"', '"55"', 'W/"5"', '"', '5', '"a,*,b"', '"a,"', ' '] as const
  /** Takes a list apart as RFC 9110 §5.6.1 has it; undefined where it is none. */
  const tagsOf = (text: string): string[] | undefined => {
    const found: string[] = []
    for (let rest = text.trim(); rest !== '';) {
      const [whole, tag] = /^[ \t]*(?:((?:W\/)?"[!#-~]*")[ \t]*)?(?:,|$)/.exec(rest) ?? []
      if (whole === undefined) return undefined
      if (tag !== undefined) found.push(tag)
      rest = rest.slice(whole.length).trim()
    }
    return found
  }
  for (let n = 0; n < 20_000; n++) {
    const tags = Array.from({ length: random.int(8) }, () => random.pick(parts)).join('')
    const isExpected = preconditionIn({ method: 'POST', path: '/', 'if-match': tags })!
    const seen = ['5', 'other'].map(tag => isExpected({ id: 1, ...FIELDS, status: 1 }, () => tag))
    const any = tags.trim() === '*'
    assert.deepEqual(seen, [any || tagsOf(tags)?.includes('"5"') === true, any], tags)
  }
  const long = preconditionIn({ method: 'POST', path: '/', 'if-match': `${' ,'.repeat(7_000)}x` })!
  assert.equal(long({ id: 1, ...FIELDS, status: 1 }, () => '5'), false)
})

test('an entry that was created says where it is, and is got there', async t => {
  const service = await started(t)
  const { location } = await ask(service, 'POST', '/api/createPassword', { ...FIELDS, password: 'second' })
  assert.equal(location, '/api/getPassword/2')
  assert.equal((await ask(service, 'GET', location)).json.passwords.password, 'second')
})

test('an update with the tag that was got is made once: the second of two gets 412, and nothing changes', async t => {
  const service = await started(t, { 'extra-routes': 'on' })
  const { tag } = await ask(service, 'GET', '/api/getPassword/1')
  const save = (password: string, ifMatch: string | null): ReturnType<typeof ask> =>
    ask(service, 'POST', '/api/updatePassword/1', { password }, { 'If-Match': ifMatch! })
  const both = await Promise.all([save('mine', tag), save('yours', tag)])
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 412])
  const [made, refused] = both.toSorted((a, b) => a.status - b.status)
  assert.deepEqual(refused!.json, CHANGED)
  const now = await ask(service, 'GET', '/api/getPassword/1')
  assert.deepEqual([now.json.passwords, now.tag], [made!.json.password, made!.tag])
  for (const path of ['/api/deletePassword/1', '/api/restorePassword/1']) {
    assert.deepEqual((await ask(service, 'POST', path, undefined, { 'If-Match': tag! })).json, CHANGED)
    assert.equal((await ask(service, 'GET', '/api/getPassword/1')).tag, now.tag)
  }
  assert.equal((await ask(service, 'POST', '/api/deletePassword/1', undefined, { 'If-Match': now.tag! })).status, 200)
  const deleted = (await ask(service, 'GET', '/api/getPassword/1')).tag!
  assert.notEqual(deleted, now.tag)
  assert.equal((await ask(service, 'POST', '/api/restorePassword/1', undefined, { 'If-Match': deleted })).status, 200)
})

test('If-Match takes a list and *; a weak tag, or no tag at all, matches nothing; an unknown id stays 404', async t => {
  const service = await started(t)
  const { tag } = await ask(service, 'GET', '/api/getPassword/1')
  for (const [ifMatch, status] of [
    ['*', 200], [`"0", ${tag}`, 200], [`W/${tag}`, 412], ['"0"', 412], ['', 412], [tag!.replaceAll('"', ''), 412],
    ['"undefined"', 412]
  ] as const) {
    const { status: found } = await ask(service, 'POST', '/api/updatePassword/1', {}, { 'If-Match': ifMatch })
    assert.equal(found, status, ifMatch)
  }
  assert.equal((await ask(service, 'POST', '/api/updatePassword/9', FIELDS, { 'If-Match': '"0"' })).status, 404)
})

test('no tag, were it the text of none, overwrites a change of the same write', async t => {
  const service = await started(t)
  for (let round = 0; round < 10; round++) {
    const tags = [{}, { 'If-Match': '"undefined"' }, { 'If-Match': '"0"' }, { 'If-Match': '"null"' }]
    const statuses = await Promise.all(tags.map(async (head, n) =>
      (await ask(service, 'POST', '/api/updatePassword/1', { password: `${round} ${n}` }, head)).status))
    assert.deepEqual(statuses, [200, 412, 412, 412])
  }
})

test('an answer to an update whose entry was changed again in the same write has no tag, or the right one', async t => {
  const service = await started(t)
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) =>
    ask(service, 'POST', '/api/updatePassword/1', { password: `${n}` })))
  const { json, tag } = await ask(service, 'GET', '/api/getPassword/1')
  for (const answer of answers) {
    if (answer.tag === tag) assert.deepEqual(answer.json.password, json.passwords)
  }
})

test('a tag is that of its text over restarts, a compaction and a rotation', async t => {
  const { folder, service } = await started(t)
  await service.close()
  const tags = new Map<string, string>()
  const note = ({ state: { entries } }: FullStore): void => {
    const [tag, text] = [entries.tag(1)!, entries.text(1)!]
    assert.equal(entries.tagOf(entries.get(1)!), tag)
    assert.equal(tags.get(text) ?? tag, tag, 'the same text has the same tag')
    assert.ok(![...tags].some(([other, known]) => other !== text && known === tag), 'another text has another tag')
    tags.set(text, tag)
  }
  for (let round = 0; round < 4; round++) {
    const store = await fileStore(folder)
    note(store)
    for (let n = 0; n < 3; n++) {
      await updateEntry(store, 1, { password: `${round} ${n}` }, null)
      note(store)
    }
    if (round === 1) await compact(store)
    if (round === 2) await rotateKey(store)
    await updateEntry(store, 1, { password: `${round} last` }, null)
    note(store)
    await store.close()
  }
  assert.equal(tags.size, 17)
})

test('an entry has another tag in a journal of another key: who compares tags learns nothing of passwords', async t => {
  const [one, other] = [await started(t), await started(t)]
  assert.notEqual((await ask(one, 'GET', '/api/getPassword/1')).tag,
    (await ask(other, 'GET', '/api/getPassword/1')).tag)
})

test('an embedder changes an entry only as long as it is what was read', async t => {
  const service = await openService({ journal: 'memory' })
  t.after(() => service.close())
  const read = await service.createPassword(FIELDS)
  const changed = await service.updatePassword(1, { password: 'first' }, { ifUnchanged: read })
  await assert.rejects(service.updatePassword(1, { password: 'second' }, { ifUnchanged: read }),
    failure('entry-changed'))
  assert.deepEqual(await service.getPassword(1), changed)
})
