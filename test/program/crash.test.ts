/** The program killed without warning: what it has answered stands, and what it has not is whole or not there. */
import { strict as assert } from 'node:assert'
import { randomInt } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { disk } from '../../src/journal/files.ts'
import { holdFolder } from '../../src/journal/lock.ts'
import { localDoor } from '../../src/http/local.ts'
import { launchProgram, runProgram, socketsIn, startProgram, type Program } from '../support/program.ts'
import { seeded, seedFromEnv, type Random } from '../support/random.ts'
import { ask, connectRaw, message, type RawClient } from '../support/raw.ts'
import { freshFolder, send } from '../support/service.ts'

const CLIENTS = 16
const ROUNDS = 10

interface Entry {
  readonly id: number
  readonly password: string
  readonly sistema: string
  readonly usuario: string
  readonly status: number
}

const FIELDS = ['password', 'sistema', 'usuario'] as const

/** What the clients know: what was answered, and what was asked for when the program died. */
class Knowledge {
  /** By id, as last answered. */
  entries = new Map<number, Entry>()
  /** By id, as it would be after the change that was not answered. */
  readonly changing = new Map<number, Entry>()
  /** By password, which is never used twice. */
  readonly created = new Map<string, Omit<Entry, 'id'>>()
  readonly creating = new Map<string, Omit<Entry, 'id'>>()

  /** Holds what a restarted program shows to what is known, and knows that from now on. */
  learn(shown: ReadonlyMap<number, Entry>): void {
    for (const [id, entry] of this.entries) {
      const found = shown.get(id)
      const changed = this.changing.get(id)
      if (changed !== undefined && found !== undefined && isSame(found, changed)) continue
      assert.deepEqual(found, entry, `entry ${id} is as it was answered last`)
    }
    const missing = new Map(this.created)
    for (const [id, entry] of shown) {
      if (this.entries.has(id)) continue
      const { id: _, ...fields } = entry
      const asked = missing.get(entry.password) ?? this.creating.get(entry.password)
      assert.deepEqual(fields, asked, `entry ${id} was asked for, and is there once`)
      missing.delete(entry.password)
      this.creating.delete(entry.password)
    }
    assert.deepEqual([...missing.keys()], [], 'each create that was answered is there')
    this.entries = new Map(shown)
    this.changing.clear()
    this.created.clear()
    this.creating.clear()
  }
}

function isSame(a: Entry, b: Entry): boolean {
  return a.status === b.status && FIELDS.every(name => a[name] === b[name])
}

async function list(url: string): Promise<string> { return (await send(url, 'GET', '/api/listPassword')).text }

/** All entries, the deleted ones as well, by the five operations alone. */
async function shownBy(t: TestContext, { url, stdout }: Program): Promise<Map<number, Entry>> {
  const count = Number(/, (\d+) entries/.exec(stdout)?.[1])
  const { status, json } = await send(url, 'GET', '/api/listPassword')
  const active = status === 404 ? [] : json as Entry[]
  const shown = new Map<number, Entry>()
  let last = 0
  for (const entry of active) {
    assert.ok(entry.id > last && entry.status === 1, `entry ${entry.id} is listed once, ascending, active`)
    shown.set(last = entry.id, entry)
  }
  const client = await connectRaw(t, url)
  for (let id = 1; id <= count; id++) {
    if (shown.has(id)) continue
    await client.send(message('GET', `/api/getPassword/${id}`))
    const answer = await client.answer()
    assert.equal(answer.status, 200, `entry ${id} is there`)
    assert.equal(answer.json.passwords.status, 0, `entry ${id} is not listed`)
    shown.set(id, answer.json.passwords)
  }
  await client.send(message('GET', `/api/getPassword/${count + 1}`))
  assert.equal((await client.answer()).status, 404)
  assert.ok(last <= count)
  client.destroy()
  return shown
}

interface Work {
  readonly client: RawClient
  readonly random: Random
  readonly known: Knowledge
  /** The ids that this client alone changes. */
  readonly ids: readonly number[]
  /** A word that no other client and no other round has. */
  readonly word: string
  readonly onAnswered: () => void
}

/** Creates, updates and deletes until the connection ends. */
async function work({ client, random, known, ids, word, onAnswered }: Work): Promise<void> {
  for (let n = 0; ; n++) {
    const text = `${word}-${n}`
    const id = ids.length === 0 ? 0 : random.pick(ids)
    const entry = known.entries.get(id)
    const dice = random.next()
    let onOk: () => void
    let request: Buffer
    if (dice < 0.5 || entry === undefined) {
      const fields = { password: text, sistema: 'ñ'.repeat(1 + random.int(200)), usuario: text.repeat(2) }
      known.creating.set(text, { ...fields, status: 1 })
      request = message('POST', '/api/createPassword', JSON.stringify(fields))
      onOk = () => { known.created.set(text, known.creating.get(text)!); known.creating.delete(text) }
    } else {
      const changes = dice < 0.8 ? { [random.pick(FIELDS)]: text } : { status: 0 }
      const changed = { ...entry, ...changes }
      known.changing.set(id, changed)
      request = dice < 0.8
        ? message('POST', `/api/updatePassword/${id}`, JSON.stringify(changes))
        : message('POST', `/api/deletePassword/${id}`)
      onOk = () => { known.entries.set(id, changed); known.changing.delete(id) }
    }
    await client.send(request)
    const answer = await client.answer().catch((error: Error) => {
      assert.match(error.message, /^the connection ended after ""/)
      return undefined
    })
    if (answer === undefined) return
    assert.equal(answer.status, 200, answer.text)
    onOk()
    onAnswered()
  }
}

test('SIGKILL under load, again and again: nothing that was answered is lost, undone or doubled', async t => {
  const seed = seedFromEnv()
  t.diagnostic(`seed ${seed}`)
  const random = seeded(seed)
  const folder = freshFolder(t)
  const options = { flags: { data: folder } }
  const known = new Knowledge()
  let answeredInAll = 0
  for (let round = 0; round < ROUNDS; round++) {
    if (round % 3 === 2) {
      const starting = launchProgram(t, options)
      await starting.printed(random.pick([/^data folder/m, /^journal/m, /^chain head/m]))
      await starting.kill()
    }
    const program = await startProgram(t, options)
    known.learn(await shownBy(t, program))
    let answered = 0
    const lastAnswer = random.int(round === 0 ? 20 : 600)
    const onAnswered = (): void => {
      answeredInAll++
      if (answered++ === lastAnswer) program.child.kill('SIGKILL')
    }
    const ids = [...known.entries.keys()]
    await Promise.all(Array.from({ length: CLIENTS }, async (_, c) => work({
      client: await connectRaw(t, program.url), random: seeded(random.int(2 ** 32)), known,
      ids: ids.filter(id => id % CLIENTS === c), word: `${round}-${c}`, onAnswered
    })))
    const { signal } = await program.ended
    assert.equal(signal, 'SIGKILL', program.stderr)
  }
  const last = await startProgram(t, options)
  known.learn(await shownBy(t, last))
  t.diagnostic(`${answeredInAll} changes answered, ${known.entries.size} entries`)
  const before = await list(last.url)
  assert.equal((await last.stop()).code, 0)
  const again = await startProgram(t, options)
  assert.equal(await list(again.url), before)
  known.learn(await shownBy(t, again))
  const { stderr } = await again.stop()
  assert.equal(stderr, 'warning: the rate limit is off\n', 'there is nothing to repair after a clean stop')
  const left = readdirSync(folder).filter(name => !name.startsWith('journal.jsonl.torn-'))
  assert.deepEqual(left.sort(), ['journal.jsonl', 'journal.key'])
})

describe('one folder', { concurrency: 2 }, () => {
  for (const way of ['stop', 'kill'] as const) {
    test(`clients that change the same entries at once see the same list after a restart (${way})`, async t => {
      const seed = seedFromEnv()
      t.diagnostic(`seed ${seed}`)
      const random = seeded(seed)
      const first = await startProgram(t)
      const create = (text: string): Buffer =>
        message('POST', '/api/createPassword', JSON.stringify({ password: text, sistema: 's', usuario: 'ü' }))
      for (let n = 0; n < 8; n++) await ask(t, first.url, create(`first ${n}`))
      const change = async (c: number): Promise<void> => {
        const client = await connectRaw(t, first.url)
        for (let n = 0; n < 150; n++) {
          const id = 1 + random.int(8)
          const text = `${c}-${n}`
          await client.send(random.pick([
            () => create(text),
            () => message('POST', `/api/updatePassword/${id}`, JSON.stringify({ [random.pick(FIELDS)]: text })),
            () => message('POST', `/api/updatePassword/${id}`, JSON.stringify({ [random.pick(FIELDS)]: text })),
            () => message('POST', `/api/deletePassword/${1 + random.int(40)}`)
          ])())
          const { status } = await client.answer()
          assert.ok(status === 200 || status === 404, String(status))
        }
        client.destroy()
      }
      await Promise.all([change(0), change(1)])
      const before = await list(first.url)
      const entries = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(id =>
        send(first.url, 'GET', `/api/getPassword/${id}`).then(({ text }) => text)))
      await first[way]()
      const second = await startProgram(t, { flags: { data: first.folder } })
      assert.equal(await list(second.url), before)
      for (const [i, entry] of entries.entries()) {
        assert.equal((await send(second.url, 'GET', `/api/getPassword/${i + 1}`)).text, entry)
      }
    })
  }

  test('after SIGKILL the next start needs nothing cleaned, and cleans up itself', async t => {
    const first = await startProgram(t)
    assert.equal((await send(first.url, 'POST', '/api/createPassword',
      { password: 'p', sistema: 's', usuario: 'u' })).status, 200)
    await first.kill()
    const left = socketsIn(first.folder)
    assert.equal(left.length, 1, 'the dead process could not remove its socket')
    const second = await startProgram(t, { flags: { data: first.folder } })
    const held = socketsIn(first.folder)
    assert.equal(held.length, 1)
    assert.notDeepEqual(held, left)
    assert.equal(JSON.parse(await list(second.url)).length, 1)
    assert.equal((await second.stop()).code, 0)
    assert.deepEqual(socketsIn(first.folder), [])
  })

  test('a folder that is served is refused to others in one line that names its process', async t => {
    const first = await startProgram(t)
    const before = readdirSync(first.folder)
    const { code, stderr, stdout } = await runProgram(t, { flags: { data: first.folder } })
    assert.equal(code, 1)
    assert.equal(stderr,
      `error: another process holds the data folder: ${first.folder} belongs to process ${first.pid}\n`)
    assert.doesNotMatch(stdout, /ready/)
    assert.deepEqual(readdirSync(first.folder), before)
    assert.equal((await send(first.url, 'GET', '/api/listPassword')).status, 404)
  })

  test('a start whose socket is taken for a left one, by another that has just won, tries again', async t => {
    const folder = freshFolder(t)
    let tries = 0
    const files = {
      ...disk,
      setMode: (path: string, mode: number): void => {
        if (tries++ === 0) disk.remove(path)
        disk.setMode(path, mode)
      }
    }
    const hold = await holdFolder(files, folder, localDoor(() => {}), process.pid, randomInt)
    assert.deepEqual(socketsIn(folder).map(name => join(folder, name)), [hold.socket])
    await hold.release()
    assert.deepEqual(socketsIn(folder), [])
  })

  for (const state of ['new', 'killed'] as const) {
    test(`of several that start at once on a ${state} folder at most one serves, the others say so`, async t => {
      const folder = freshFolder(t)
      const options = { flags: { data: folder } }
      if (state === 'killed') await (await startProgram(t, options)).kill()
      const started = Array.from({ length: 5 }, () => launchProgram(t, options))
      const isReady = await Promise.all(started.map(({ ready }) => ready))
      const serving = started.filter((_, i) => isReady[i])
      assert.ok(serving.length <= 1, `${serving.length} serve`)
      for (const [i, { ended }] of started.entries()) {
        if (isReady[i]) continue
        const { code, stderr } = await ended
        assert.equal(code, 1)
        assert.match(stderr, /^error: another process holds the data folder: .* belongs to process \d+\n$/)
      }
      assert.equal(socketsIn(folder).length, serving.length)
      for (const program of serving) assert.equal((await program.stop()).code, 0)
      const next = await startProgram(t, options)
      assert.equal((await send(next.url, 'GET', '/api/listPassword')).status, 404)
    })
  }
})
