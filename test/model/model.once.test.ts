/**
 * The whole service against a plain model of it: random programs of steps, and those that once found a defect. A seed
 * that fails fails again with `SEED=n`; `LIVES_S=n` goes on for as many seconds, `npm run test:model` for hours.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { seedFromEnv } from '../support/random.ts'
import { idleSteps, kindOf, live, programOf, shortened, textOf, type Program } from './lives.ts'

const LIVES_MS = 1000 * Number(process.env['LIVES_S'] ?? 10)
const SHORTEN_MS = 60_000

type Steps = Program['steps']

/** Each found what its name says is not so. */
const FOUND: { readonly [title: string]: { readonly production?: boolean, readonly steps: Steps } } = {
  'a rewritten journal that is not whole is refused': {
    steps: [['create', 1], ['compact', 1], ...Array.from({ length: 12 }, (_, n) => ['damage', n] as const)]
  },
  'a restore beside a start loses nothing': {
    steps: [['create', 1], ['backup', 1], ['create', 2], ['beginRestore', 1], ['create', 1], ['release', 1], ['restart', 1]]
  },
  'a compaction beside a service whose socket was removed loses nothing': {
    steps: [['create', 1], ['removeSocket', 1], ['beginCompact', 1], ['create', 1], ['create', 1], ['release', 1], ['restart', 1]]
  },
  'a rotation on a key file from before loses nothing': {
    steps: [['create', 1], ['saveKeys', 1], ['rotate', 1], ['create', 1], ['putKeysBack', 1], ['rotate', 1], ['create', 3], ['restart', 1]]
  },
  'production does not start on a journal that is gone, or empty': {
    production: true,
    steps: [['create', 1], ...[1, 2, 3, 4].flatMap(n => [['loseJournal', n], ['create', n], ['putJournalBack', 0], ['create', n]] as const)]
  },
  'a change that waits for a rewriting is answered soon, and is not made later': {
    steps: [['create', 1], ['beginCompact', 1], ['create', 1], ['release', 1], ['restart', 1]]
  }
}

describe('the service', { concurrency: 3 }, () => {
  for (const [title, { production = false, steps }] of Object.entries(FOUND)) {
    it(title, async () => assert.equal((await live({ config: { production, auth: false }, steps }))?.message, undefined))
  }

  it('keeps what it acknowledged, refuses what it must and says why, in random lives', async t => {
    const first = seedFromEnv()
    t.diagnostic(`SEED=${first}`)
    for (const [n, began] = [{ lives: 0 }, performance.now()]; n.lives === 0 || performance.now() - began < LIVES_MS; n.lives++) {
      const program = programOf(first + n.lives)
      const defect = await live(program)
      if (defect === undefined) continue
      const short = await shortened(program, kindOf(defect), performance.now() + SHORTEN_MS)
      assert.fail(`SEED=${first + n.lives}: ${defect.message}\nnpm run test:model -- '${textOf(short)}'`)
    }
  })

  it('has no kind of step that no life takes', () => assert.deepEqual(idleSteps(), []))
})
