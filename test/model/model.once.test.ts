/** The whole service against a plain model of it: a random life, and programs of steps that once found a defect. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { seedFromEnv } from '../support/random.ts'
import { idleSteps, live, programOf, type Program } from './lives.ts'

type Steps = Program['steps']
/** CI takes whole lives. */
const SOME_STEPS = 9

/** Each found what its name says is not so. */
const FOUND: { readonly [title: string]: { readonly production?: boolean, readonly steps: Steps } } = {
  'a rewritten journal that is not whole is refused': {
    steps: [['entryAdd', 1], ['compact', 1], ['damage', 0], ['damage', 1]]
  },
  'a restore beside a start loses nothing': {
    steps: [['create', 1], ['backup', 1], ['create', 2], ['beginRestore', 1], ['create', 1], ['release', 1]]
  },
  'a compaction beside a service whose socket was removed loses nothing': {
    steps: [['create', 1], ['removeSocket', 1], ['beginCompact', 1], ['create', 1], ['create', 1], ['release', 1]]
  },
  'a rotation on a key file from before loses nothing': {
    steps: [['create', 1], ['saveKeys', 1], ['rotate', 1], ['create', 1], ['putKeysBack', 1], ['rotate', 1],
      ['create', 3]]
  },
  'production does not start on a journal that is gone, or empty': {
    production: true,
    steps: [['create', 1], ['loseJournal', 1], ['create', 1], ['putJournalBack', 0], ['loseJournal', 2], ['create', 2],
      ['putJournalBack', 0]]
  }
}

describe('the service', { concurrency: 3 }, () => {
  for (const [title, { production = false, steps }] of Object.entries(FOUND)) {
    it(title, async () => {
      assert.equal((await live({ config: { store: 'file', production, isOpen: true }, steps }))?.message, undefined)
    })
  }

  it('keeps what it acknowledged and names who knows a password, and nobody else, in a random life', async t => {
    const seed = seedFromEnv()
    t.diagnostic(`SEED=${seed}`)
    const { config, steps } = programOf(seed)
    assert.equal((await live({ config, steps: steps.slice(0, SOME_STEPS) }))?.message, undefined)
  })

  it('has no kind of step that no life takes', () => assert.deepEqual(idleSteps(), []))
})
