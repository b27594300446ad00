/** Small houses whose places are all taken. `test/campaigns/places.ts` has all kinds of attackers, and TLS. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { besiege, openHouse, type Served } from '../support/places.ts'

const HONEST = ['new', 'far', '100 Continue', 'keep-alive each second', 'uploader at 20 KiB/s']

// Each mostly waits: they do so together.
describe('if attackers have taken all places, honest clients are served', { concurrency: true }, () => {
  for (const kind of ['a body owed behind the answer', 'asked once and idle', 'greedy readers', 'all mixed']) {
    test(`attackers: ${kind}`, async t => {
      const house = await openHouse(t, 64, false)
      const results = await besiege(house, kind, 3, house.places, HONEST)
      for (const [honest, { asked, served }] of Object.entries(results) as [string, Served][]) {
        t.diagnostic(`${honest}: ${served} of ${asked}`)
        assert.ok(asked > 0 && served >= asked * 0.6, `${honest}: ${served} of ${asked}`)
      }
    })
  }
})
