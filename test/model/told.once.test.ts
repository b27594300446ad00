/** Who was told which password, on the built program: one random life. */
import { test } from 'node:test'
import { seedFromEnv } from '../support/random.ts'
import { live } from './told-lives.ts'

test('in a random life whoever has a password is named, or it is said that reads were not recorded, and nobody else is named', async t => {
  const seed = seedFromEnv()
  t.diagnostic(`SEED=${seed}`)
  await live(seed)
})
