/**
 * What an answer holds when many changes share a write: its own change, and a tag that stands for that text and no
 * other.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, startProtected, tokenOf } from '../support/accounts.ts'
import { done } from '../support/admin.ts'
import { holdAppend } from '../support/faulty-files.ts'
import { until } from '../support/program.ts'
import { type RawAnswer } from '../support/raw.ts'
import { startService } from '../support/service.ts'

const FIELDS = ['password', 'sistema', 'usuario'] as const
const UPDATES = 12

/** Which text each tag stands for; fails where one stands for two. */
class Tags {
  readonly #texts = new Map<string, string>()

  note({ headers: { etag = '' } }: RawAnswer, entry: object): string {
    assert.match(etag, /^"[^"]+"$/)
    const text = JSON.stringify(entry)
    assert.equal(this.#texts.get(etag) ?? text, text, 'a tag stands for one text')
    this.#texts.set(etag, text)
    return etag
  }
}

test('updates that share a write are answered with what each set, and with a tag that holds as long', async t => {
  const started = await startProtected(t, { 'login-limit': '0' })
  const { folder } = started
  const token = await tokenOf(started)
  const tags = new Tags()
  let { url, service } = started
  const ask = (method: string, path: string, body?: object, fields: readonly string[] = []): Promise<RawAnswer> =>
    call(t, url, method, path, { token, body, fields })
  for (const n of [1, 2]) await ask('POST', '/api/createPassword', { password: `p${n}`, sistema: 's', usuario: 'u' })

  for (const round of ['at first', 'after a compaction', 'after a restart']) {
    // Waits on the disk, so that all that comes meanwhile shares the next write.
    const { reached, release } = holdAppend(t)
    const first = ask('POST', '/api/updatePassword/2', { sistema: `held ${round}` })
    await reached
    const before = (await ask('GET', '/api/getPassword/1')).json.passwords
    const sent = Array.from({ length: UPDATES }, (_, n) => ({ [FIELDS[n % 3]!]: `${round} ${n}` }))
    const answers = sent.map(body => ask('POST', '/api/updatePassword/1', body))
    const conditional = ask('POST', '/api/updatePassword/1', { sistema: 'too late' }, [`If-Match: "${round}"`])
    await until('all of them wait', () => service.store.status().waiting >= UPDATES)
    release()
    await first
    const seen = await Promise.all(answers)
    assert.equal((await conditional).status, 412)
    const last = (await ask('GET', '/api/getPassword/1')).json.passwords
    for (const [n, answer] of seen.entries()) {
      const entry = answer.json.password
      assert.equal(answer.status, 200)
      assert.equal(entry[FIELDS[n % 3]!], `${round} ${n}`, 'an answer holds what it has set')
      // Of the others, what was before, or what one that was decided before it has set.
      for (const field of FIELDS) assert.ok([before[field], ...sent.map(one => one[field])].includes(entry[field]),
        `${field}: ${entry[field]}`)
      if (answer.headers['etag'] === undefined) continue // another has followed at once
      const tag = tags.note(answer, entry)
      const isNow = JSON.stringify(entry) === JSON.stringify(last)
      const check = await ask('POST', '/api/updatePassword/1', {}, [`If-Match: ${tag}`])
      assert.equal(check.status, isNow ? 200 : 412,
        `${round}: the tag of ${JSON.stringify(entry)}, now ${JSON.stringify(last)}`)
    }
    assert.ok(seen.some(({ json }) => JSON.stringify(json.password) === JSON.stringify(last)),
      'the last one holds what is there')
    for (const id of [1, 2]) {
      const read = await ask('GET', `/api/getPassword/${id}`)
      tags.note(read, read.json.passwords)
    }
    await service.close()
    if (round === 'at first') await done(folder, 'journal compact')
    const again = await startService(t, { auth: 'bearer', data: folder })
    url = again.url
    service = again.service
  }
})
