/**
 * The whole service against a plain model of it: random programs of steps. A seed that fails fails again with `SEED=n`;
 * `LIVES_S=n` goes on for as many seconds, `npm run test:model` for hours.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedFromEnv } from '../support/random.ts'
import { kindOf, live, programOf, shortened, textOf } from './lives.ts'

const LIVES_MS = 1000 * Number(process.env['LIVES_S'] ?? 10)
const SHORTEN_MS = 60_000

test('the service keeps what it acknowledged, refuses what it must and says why, in random lives', async t => {
  const first = seedFromEnv()
  t.diagnostic(`SEED=${first}`)
  for (const [n, began] = [{ lives: 0 }, performance.now()]; n.lives === 0 ||
    performance.now() - began < LIVES_MS; n.lives++) {
    const program = programOf(first + n.lives)
    const defect = await live(program)
    if (defect === undefined) continue
    const short = await shortened(program, kindOf(defect), performance.now() + SHORTEN_MS)
    assert.fail(`SEED=${first + n.lives}: ${defect.message}\nnpm run test:model -- '${textOf(short)}'`)
  }
})
