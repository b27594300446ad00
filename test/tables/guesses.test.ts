/**
 * Whether a guess is a password of others: whoever sees all entries and may read them learns that, and the operator.
 * Everybody else gets the same answers to a right guess as to a wrong one, and the journal the same records.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createEntry } from '../../src/entries/entry-commands.ts'
import { operationsOf, type Operations } from '../../src/embedding/operations.ts'
import { Failure } from '../../src/errors.ts'
import type { Groups } from '../../src/rights/rights.ts'
import { readSettings } from '../../src/settings.ts'
import { call, PASSWORD, startProtected } from '../support/accounts.ts'
import { admin } from '../support/admin.ts'
import { breakDisk } from '../support/faulty-files.ts'
import { importEntries } from '../support/rewrite.ts'
import { within, type Scope, type Started } from '../support/service.ts'

const CALLER = 'caller@x'
const SECOND = 'second@x'
/** Dora and Emma have read entry 1, and may read what the caller sets; Rolf has read it and is removed. */
const [DORA, EMMA, ROLF, CARL] = ['dora@x', 'emma@x', 'rolf@x', 'carl@x']
const GUESSES = ['GUESS-1', 'GUESS-2']
/** Entry 1, of the group `secret`, was imported; entry 2 is in the group `a`. The second account sets 3 and 4, the
 * caller 5 and 6: of each the first has the guess of what entry 1 has, the other that of entry 2. */
const IDS = [1, 2, 3, 4, 5, 6]

interface Row {
  readonly as?: 'http' | 'by' | 'host' | 'operator'
  readonly groups?: Groups
  readonly abilities?: readonly string[]
  readonly tokenGroups?: Groups
  /** Where the caller sets guesses. */
  readonly grupo?: string
  readonly hasReadAll?: true
  /** What answers a right guess otherwise than a wrong one. */
  readonly tells: readonly string[]
}

const ROWS: { readonly [who: string]: Row } = {
  'a user who sees all entries': { tells: ['listEntries', 'whoKnows'] },
  'a user who sees all entries, without entry:knowledge':
    { abilities: ['password:read', 'password:create'], tells: ['listEntries'] },
  'a user who sees all entries and may not read them, with entry:knowledge':
    { abilities: ['entry:list', 'entry:knowledge', 'password:create'], tells: [] },
  'a user who sees all entries and may not read them, without entry:knowledge':
    { abilities: ['entry:list', 'password:create'], tells: [] },
  'a user of one group': { groups: ['a'], tells: [] },
  'a user of one group, without entry:knowledge':
    { groups: ['a'], abilities: ['password:read', 'password:create'], tells: [] },
  'a user of one group who may not read, with entry:knowledge':
    { groups: ['a'], abilities: ['entry:list', 'entry:knowledge', 'password:create'], tells: [] },
  'a user of the group and of that of the second account': { groups: ['a', 'own'], tells: [] },
  'a user of every group': { groups: ['a', 'own', 'secret'], tells: [] },
  'a user with an empty list of groups': { groups: [], tells: [] },
  'a second account, in a group of its own': { groups: ['own'], grupo: 'own', tells: [] },
  'a token of one group, of a user who sees all entries': { tokenGroups: ['a'], tells: [] },
  'a token of one group, of a user who has read all entries': { tokenGroups: ['a'], hasReadAll: true, tells: [] },
  'the host of an embedded service': { as: 'host', tells: ['listEntries', 'whoKnows'] },
  'the host for a user who sees all entries': { as: 'by', tells: ['listEntries', 'whoKnows'] },
  'the host for a user of one group': { as: 'by', groups: ['a'], tells: [] },
  'the operator': { as: 'operator', tells: ['audit', 'entry list --exposed', 'user remove'] }
}

/** What is answered, without times, tags and the passwords themselves. */
function plain(answer: unknown): string {
  return JSON.stringify(answer).replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME').replace(/(GUESS|OTHER)-\d/g, 'PASSWORD')
}

interface Caller {
  sets(fields: { readonly sistema: string, readonly password: string }): Promise<string>
  reads(id: number): Promise<string>
  /** What is asked again and again, by its name. */
  readonly asks: { readonly [name: string]: () => Promise<string> }
}

function overHttp(t: Scope, { url }: Started, token: string, grupo: string): Caller {
  let tag = '"none"'
  const ask = async (method: string, path: string, body?: object): Promise<string> => {
    const fields = path === 'listEntries' ? [`If-None-Match: ${tag}`] : []
    const { line, headers: { date, etag, ...headers }, text } =
      await call(t, url, method, `/api/${path}`, { token, body, fields })
    if (path === 'listEntries' && etag !== undefined) tag = etag
    return plain([line, headers, etag === undefined, text])
  }
  return {
    sets: fields => ask('POST', 'createPassword', { ...fields, usuario: 'u', grupo }),
    reads: id => ask('GET', `getPassword/${id}`),
    asks: {
      whoKnows: async () => (await Promise.all(IDS.map(id => ask('GET', `whoKnows/${id}`)))).join('\n'),
      listEntries: () => ask('GET', 'listEntries')
    }
  }
}

function embedded({ service: { store, routes } }: Started, by: boolean, grupo: string): Caller {
  const { abilities } = readSettings(['--auth=bearer'], {})
  const operations = operationsOf({ store, abilities, isOpen: false, catchUp: async () => {}, routes })
  const ask = async (operation: keyof Operations, ...given: unknown[]): Promise<string> => {
    const asked = operations[operation] as (...given: unknown[]) => Promise<unknown>
    return plain(await asked(...given, ...by ? [{ by: CALLER }] : [])
      .catch(error => error instanceof Failure ? error.code : assert.fail(error)) ?? 'unknown')
  }
  return {
    sets: fields => ask('createPassword', { ...fields, usuario: 'u', grupo }),
    reads: id => ask('getPassword', id),
    asks: {
      whoKnows: async () => (await Promise.all(IDS.map(id => ask('whoKnows', id)))).join('\n'),
      listEntries: () => ask('listEntries')
    }
  }
}

function operator(folder: string, grupo: string): Caller {
  const run = async (words: string, input?: string): Promise<string> => plain(await admin(folder, words, input))
  return {
    sets: ({ sistema, password }) =>
      run(`entry add --system ${sistema} --user u --group ${grupo} --password-stdin`, password),
    reads: id => run(`entry get ${id} --json`),
    asks: { audit: () => run('audit --json'), 'entry list --exposed': () => run('entry list --exposed --json') }
  }
}

type Answers = Map<string, string>

/** All that is answered, and what each step adds to the journal. */
async function life(t: Scope, row: Row, secrets: readonly string[]): Promise<Answers> {
  const { as = 'http', groups, abilities = ['*'], tokenGroups, grupo = 'a', hasReadAll = false } = row
  const started = await startProtected(t, { 'extra-routes': 'on' }, { [CALLER]: abilities })
  const { folder, service: { store } } = started
  const accounts = started.service.accounts!
  const tokenOf = async (email: string, of?: Groups): Promise<string> =>
    (await accounts.issue(email, undefined, undefined, undefined, of))!.token
  const users: readonly (readonly [email: string, groups: Groups])[] =
    [[SECOND, ['own']], [DORA, ['a', 'secret']], [EMMA, ['a', 'secret']], [ROLF, ['secret']], [CARL, ['a']]]
  if (groups !== undefined) await accounts.changeUser(CALLER, undefined, undefined, groups)
  for (const [email, of] of users) await accounts.addUser(email, email, ['*'], PASSWORD, of)
  const others = new Map<string, Caller>()
  for (const [email] of users) others.set(email, overHttp(t, started, await tokenOf(email), 'own'))
  const [first, other] = secrets as [string, string]
  await importEntries(store, [{ sistema: 's1', usuario: 'u', password: first, grupo: 'secret', status: 1 }])
  await createEntry(store, { sistema: 's2', usuario: 'u', password: other, grupo: 'a' }, null)
  for (const email of [DORA, EMMA, ROLF]) await others.get(email)!.reads(1)
  await others.get(CARL)!.reads(2)
  await accounts.changeUser(CARL, undefined, undefined, ['b'])
  if (hasReadAll) for (const id of [1, 2]) await overHttp(t, started, await tokenOf(CALLER), grupo).reads(id)
  const caller = as === 'host' || as === 'by' ? embedded(started, as === 'by', grupo)
    : as === 'operator' ? operator(folder, grupo)
    : overHttp(t, started, await tokenOf(CALLER, tokenGroups), grupo)

  const answers: Answers = new Map()
  const journal = (): string => readFileSync(join(folder, 'journal.jsonl'), 'utf8')
  let length = journal().length
  const step = async (what: string, happens: () => Promise<readonly string[]>): Promise<void> => {
    answers.set(`what happens: ${what}`, (await happens()).join('\n'))
    const grown = journal().slice(length)
    length += grown.length
    const types = grown.trimEnd().split('\n').map(line => line === '' ? '' : JSON.parse(line).type)
    answers.set(`the journal: ${what}`, JSON.stringify([grown.length, types]))
    for (const [name, ask] of Object.entries(caller.asks)) answers.set(`${name}: ${what}`, await ask())
    assert.equal(journal().length, length, 'to be told who knows a password is not recorded')
  }
  await step('guesses are set', async () => {
    const set: string[] = []
    for (const one of [others.get(SECOND)!, caller]) {
      for (const [n, password] of GUESSES.entries()) set.push(await one.sets({ sistema: `g${n}`, password }))
    }
    return set
  })
  await step('somebody who knows what is guessed reads the guess', () => Promise.all([others.get(DORA)!.reads(5)]))
  await step('the disk is full', async () => {
    const disk = breakDisk(t, { of: 'append', code: 'ENOSPC', forGood: true })
    const told = [await others.get(EMMA)!.reads(5), await caller.reads(2), await caller.reads(6)]
    for (const [name, ask] of Object.entries(caller.asks)) answers.set(`${name}: on a full disk`, await ask())
    disk.heal()
    return told
  })
  await step('the caller reads what was guessed', async () => [await caller.reads(2), await caller.reads(6)])
  await step('somebody who knows what is guessed is confined', async () => {
    await accounts.changeUser(DORA, undefined, undefined, ['secret'])
    return []
  })
  await step('somebody who knows what is guessed is removed', async () => {
    const removed = plain(await admin(folder, `user remove ${ROLF}`))
    if (as === 'operator') answers.set('user remove: its text', removed)
    return []
  })
  return answers
}

describe('a right guess is answered as a wrong one, and recorded as one, except where the row says so, for', () => {
  for (const [who, row] of Object.entries(ROWS)) it(who, async () => {
    const [right, wrong] = [new Map() as Answers, new Map() as Answers]
    for (const [answers, secrets] of [[right, GUESSES], [wrong, ['OTHER-1', 'OTHER-2']]] as const) {
      await within(async t => { for (const [name, answer] of await life(t, row, secrets)) answers.set(name, answer) })
    }
    assert.deepEqual([...right.keys()], [...wrong.keys()])
    const differing = [...right.keys()].filter(name => right.get(name) !== wrong.get(name))
    for (const name of differing) if (!row.tells.includes(name.split(':')[0]!)) {
      assert.equal(right.get(name), wrong.get(name), name)
    }
    assert.deepEqual([...new Set(differing.map(name => name.split(':')[0]))].sort(), row.tells)
  })
})
