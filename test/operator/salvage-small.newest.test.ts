/** A small run of salvage, a mixed journal with each damage once; `salvage` in CI has all kinds, and many. */
import { test } from 'node:test'
import { randomOf } from '../support/random.ts'
import { DAMAGES, makeSource, MOVES, salvageAndCheck } from '../support/salvage.ts'
import { freshFolder } from '../support/service.ts'

test('of a journal with each damage a salvage saves the lines whose seal opens, and gives nobody access', async t => {
  const random = randomOf(t)
  const source = await makeSource(random, freshFolder(t), 'mixed', 20)
  for (const [name, damage] of Object.entries(DAMAGES)) {
    t.diagnostic(name)
    const moves = MOVES.test(name)
    await salvageAndCheck(source, damage(random, source.bytes),
      { moves, mayLoseNewestIds: moves || / lost|cut/.test(name) })
  }
})
