/** The operator's socket under bytes and bodies that no operator sends: whoever reaches it may do all but break it. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { operatorRoutes } from '../../src/parts/operator/routes.ts'
import { createPipeline } from '../../src/api/request.ts'
import type { Route } from '../../src/api/route.ts'
import { requestLocal } from '../../src/parts/operator/local-client.ts'
import { localSockets } from '../../src/http/local-socket.ts'
import { Router } from '../../src/http/router.ts'
import { openFileJournal, type FileJournal } from '../../src/journal/open-file.ts'
import { disk } from '../../src/disk/files.ts'
import { MAX_BODY_BYTES } from '../../src/limits.ts'
import { PasswordHasher } from '../../src/store/password-hash.ts'
import { apply, emptyState } from '../../src/store/state.ts'
import { Store } from '../../src/store/store.ts'
import { CHEAP } from '../support/accounts.ts'
import { assertErrorForm, bombard, type Said } from '../support/answers.ts'
import { countFromEnv, mutate } from '../support/mutations.ts'
import { randomOf } from '../support/random.ts'
import { message } from '../support/raw.ts'
import { atEnd, freshFolder } from '../support/service.ts'

const COUNT = countFromEnv(750)

/** A store in a folder behind an operator's socket, with passwords that cost next to nothing to hash. */
interface Operated {
  readonly folder: string
  readonly path: string
  readonly store: Store
  readonly routes: readonly Route[]
}

async function openStoreIn(folder: string): Promise<{ readonly store: Store, readonly journal: FileJournal }> {
  const state = emptyState()
  const journal = await openFileJournal({
    files: disk, folder, keyFile: join(folder, 'journal.key'), wallMs: Date.now, random: randomBytes,
    warn: line => { throw new Error(line) }
  }, record => apply(state, record))
  const accounts = { hasher: new PasswordHasher(randomBytes, CHEAP), random: randomBytes, wallMs: Date.now }
  return { store: new Store(journal, state, accounts), journal }
}

async function operated(t: TestContext): Promise<Operated> {
  const folder = freshFolder(t)
  const { store, journal } = await openStoreIn(folder)
  const routes = operatorRoutes(store, journal)
  const router = new Router<Route>()
  for (const route of routes) router.add(route.method, route.path, route)
  const path = join(folder, 'operator.sock')
  const close = await localSockets(createPipeline({
    router, maxBodyBytes: MAX_BODY_BYTES, tellsFailures: true, isStopping: () => false,
    nowMs: () => performance.now(), warn: () => {}
  })).open(path)
  await store.createEntry({ password: 'p', sistema: 's', usuario: 'u' }, null)
  await store.accounts.addUser('ana@example.org', 'ana', ['*'], 'a long password')
  atEnd(t, async () => {
    await close()
    store.check()
    const before = shown(store)
    await store.close()
    const { store: again } = await openStoreIn(folder)
    again.check()
    assert.deepEqual(shown(again), before, 'a restart shows what was served')
    await again.close()
  })
  return { folder, path, store, routes }
}

/** All that a store can show. */
function shown(store: Store): unknown {
  const { accounts } = store
  return [Buffer.concat(store.list() ?? []).toString(), accounts.users(), accounts.tokens()]
}

const BODIES: { readonly [operation: string]: string } = {
  addUser: '{"email":"bob@example.org","password":"another password","name":"Bob","abilities":["password:read","*"]}',
  setPassword: '{"email":"ana@example.org","password":"the other password"}',
  removeUser: '{"email":"bob@example.org"}',
  issueToken: '{"email":"ANA@example.org","abilities":["a"],"ttlMinutes":0.5}',
  revokeToken: '{"id":"0123456789ab"}',
  revokeTokens: '{"email":"ana@example.org"}',
  restoreEntry: '{"id":1}'
}

function assertForm(said: Said): void {
  const { status, json } = said
  assert.ok([200, 204, 400, 404, 405, 408, 409, 413, 415, 417, 431, 503].includes(status), JSON.stringify(said))
  if (json !== undefined && status !== 200) assertErrorForm(said)
}

/** Bombards the operator's socket; after each batch the operator is answered as ever. */
function bombardOperator(t: TestContext, { path, store }: Operated, pieces: () => readonly Buffer[]): Promise<unknown> {
  const afterBatch = async (): Promise<void> => {
    store.check()
    const { status, body } = await requestLocal(path, 'GET', '/operator/status')
    assert.equal(status, 200)
    assert.equal((body as { fault?: string }).fault, undefined)
    // Somebody is there for the next batch, whoever was removed in this one.
    await store.accounts.addUser('ana@example.org', 'ana', ['*'], 'a long password')
    await store.deleteEntry(1, null)
  }
  return bombard(t, { where: { path }, count: COUNT, pieces, assertForm, afterBatch })
}

test('mutated requests on the operator\'s socket are answered, and break nothing', async t => {
  const random = randomOf(t)
  const on = await operated(t)
  const valid = on.routes.map(({ operation, method, path }) => message(method, path, BODIES[operation]))
  await bombardOperator(t, on, () => {
    const many = Array.from({ length: 1 + random.int(3) }, () => {
      const one = random.pick(valid)
      return random.next() < 0.8 ? mutate(one, random, valid) : one
    })
    const bytes = Buffer.concat(many)
    const cut = random.next() < 0.7 ? bytes.length : random.int(bytes.length)
    return [bytes.subarray(0, cut), bytes.subarray(cut)]
  })
})

/** JSON values that fit some field, or none. */
const VALUES: readonly unknown[] = [
  'ana@example.org', 'bob@example.org', 'ANA@EXAMPLE.ORG', 'İ@x', '@', '', ' ', 'ñ'.repeat(300), '\ud800@x',
  'x'.repeat(1025), '__proto__', 'p', 0, 1, 2, -1, 0.5, 1e-320, 1e308, 52_560_000, 9007199254740991, 1.5, null, true,
  [], ['*'], [''], [1], ['a', 'b'], {}, { length: 1 }, [[]]
]

test('a body of any JSON on each of the operator\'s routes is answered, and breaks nothing', async t => {
  const random = randomOf(t)
  const on = await operated(t)
  const others = Object.values(BODIES).map(text => Buffer.from(text))
  const tried = new Set<string>()
  await bombardOperator(t, on, () => {
    const { operation, path } = random.pick(on.routes.filter(({ method }) => method === 'POST'))
    tried.add(operation)
    const valid = BODIES[operation] ?? '{}'
    if (random.next() < 0.4) return [message('POST', path, mutate(Buffer.from(valid), random, others))]
    const body = JSON.parse(valid)
    for (const field of Object.keys(body)) {
      const chance = random.next()
      if (chance < 0.4) body[field] = random.pick(VALUES)
      else if (chance < 0.5) delete body[field]
    }
    return [message('POST', path, JSON.stringify(body))]
  })
  assert.equal(tried.size, on.routes.filter(({ method }) => method === 'POST').length, 'each route was tried')
})
