/** What a journal may hold: the types of slices, and nothing else. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalRecord } from '../../src/journal/journal.ts'
import { emptyState, EVENTS } from '../../src/slices.ts'
import { event, EventTypes, type Slice } from '../../src/store/events.ts'
import { State } from '../../src/store/state.ts'

const THINGS: Slice<{ 'thing.made': { readonly size: number } }> = {
  isInDrafts: false, changesRights: false,
  types: {
    'thing.made': { fields: ['size'], reduce: ({ deletions }, { size }) => deletions.set(size, { ms: 0, by: 1 }) }
  }
}
const made = { seq: 1, time: '2026-01-31T12:00:00.000Z', type: 'thing.made', by: null, data: { size: 7 } }

/** A state that knows these things alone. */
function thingsOnly(more: Partial<Slice<unknown>> = {}): State {
  return new State(new EventTypes([{ ...THINGS, ...more }]), emptyState())
}

test('a type that no slice has is refused, and one that a slice has does what the slice says', () => {
  const newer = { code: 'journal-newer', message: /does not know records of type/ }
  for (const type of ['thing.made', 'entry.frozen', 'user.frozen', 'passwords.frozen', 'toString', '__proto__']) {
    const state = emptyState()
    assert.throws(() => state.apply({ ...made, type }), newer, type)
    assert.deepEqual([state.recorded, state.clock.now, state.deletions.size], ['', 0, 0], type)
  }
  const state = thingsOnly()
  state.apply(made)
  assert.deepEqual([...state.deletions.keys()], [7])
  for (const type of EVENTS.names) assert.throws(() => state.apply({ ...made, type } as JournalRecord), newer, type)
})

test('a slice says whether drafts see its events, and whether they change what users may do', () => {
  const calm = thingsOnly()
  calm.apply(made)
  assert.equal(calm.rights, 0)
  const changing = thingsOnly({ changesRights: true })
  changing.apply(made)
  assert.equal(changing.rights, changing.clock.now)
  assert.ok(changing.rights > 0)
  const types = (holds: (type: { type: string, by: null, data: {} }) => boolean): readonly string[] =>
    EVENTS.names.filter(type => holds({ type, by: null, data: {} }))
  assert.deepEqual(types(one => EVENTS.changesRights(one)),
    ['user.added', 'user.changed', 'user.removed', 'users.kept'])
  // The data of a draft are its own but for users and tokens, whose events would change the state itself.
  const subjects = new Set(types(one => !EVENTS.isInDrafts(one)).map(type => type.split('.')[0]))
  assert.deepEqual([...subjects], ['user', 'users', 'password', 'factor', 'token', 'tokens', 'journal'])
})

test('a draft takes none of the events that a compaction keeps of knowledge', () => {
  const state = emptyState()
  state.apply({ ...made, ...event('user.added', null, {
    email: 'ana@example.org', name: 'Ana', abilities: [], hasNoPassword: true, id: 1
  }) })
  const { knowledge, users, entries } = state
  const tables = { ...state, entries, users, knowledge: knowledge.draft() }
  for (const kept of [
    event('knowledge.addresses', null, { users: [{ id: 1, email: 'b@example.org', name: 'B' }] }),
    event('recording.kept', null, {}), event('knowers.kept', null, { knowers: [{ knower: 1, ids: [] }] })
  ]) assert.throws(() => EVENTS.reduce(tables, kept, 0), /a draft takes no kept event/, kept.type)
  assert.equal(users.get(1)?.email, 'ana@example.org')
})
