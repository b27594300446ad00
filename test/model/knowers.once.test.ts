/** Who was told which password, on the built program: one random life. */
import { test } from 'node:test'
import { seedFromEnv } from '../support/random.ts'
import { live } from './knowers-lives.ts'

test('in a random life who has a password is named, or reads are said to be unrecorded, and nobody else', async t => {
  const seed = seedFromEnv()
  t.diagnostic(`SEED=${seed}`)
  await live(seed)
})
