/** The whole service against a plain model of it: programs of steps that once found a defect. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { idleSteps, live, type Program } from './lives.ts'

type Steps = Program['steps']

/** Each found what its name says is not so. */
const FOUND: { readonly [title: string]: { readonly production?: boolean, readonly steps: Steps } } = {
  'a rewritten journal that is not whole is refused': {
    steps: [['create', 1], ['compact', 1], ...Array.from({ length: 4 }, (_, n) => ['damage', n] as const)]
  },
  'a restore beside a start loses nothing': {
    steps: [['create', 1], ['backup', 1], ['create', 2], ['beginRestore', 1], ['create', 1], ['release', 1],
      ['restart', 1]]
  },
  'a compaction beside a service whose socket was removed loses nothing': {
    steps: [['create', 1], ['removeSocket', 1], ['beginCompact', 1], ['create', 1], ['create', 1], ['release', 1],
      ['restart', 1]]
  },
  'a rotation on a key file from before loses nothing': {
    steps: [['create', 1], ['saveKeys', 1], ['rotate', 1], ['create', 1], ['putKeysBack', 1], ['rotate', 1],
      ['create', 3], ['restart', 1]]
  },
  'production does not start on a journal that is gone, or empty': {
    production: true,
    steps: [['create', 1], ...[1, 2, 3, 4].flatMap(n => [['loseJournal', n], ['create', n], ['putJournalBack', 0],
      ['create', n]] as const)]
  }
}

describe('the service', { concurrency: 3 }, () => {
  for (const [title, { production = false, steps }] of Object.entries(FOUND)) {
    it(title, async () => assert.equal((await live({ config: { production, auth: false }, steps }))?.message,
      undefined))
  }

  it('has no kind of step that no life takes', () => assert.deepEqual(idleSteps(), []))
})
