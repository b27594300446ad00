/**
 * Houses whose places are all taken by one kind of attackers, over TCP and TLS. The campaign
 * (`test/campaigns/places.ts`) has larger ones.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ATTACKS, besiege, openHouse, type House } from '../support/places.ts'

const PLACES = 96
/** A reader or an uploader that is hardly faster than an attacker may be cut. */
const LEAST: { readonly [honest: string]: number } = { 'reader at 20 KiB/s': 0.4, 'uploader at 20 KiB/s': 0.5 }

for (const isTls of [false, true]) {
  test(`${isTls ? 'TLS' : 'TCP'}: whatever those do that hold all places, others are served`, async t => {
    const waiting = [...ATTACKS]
    const one = async (): Promise<void> => {
      for (let kind = waiting.shift(); kind !== undefined; kind = waiting.shift()) {
        const name = kind
        await t.test(name, async t => {
          const house: House = await openHouse(t, PLACES, isTls)
          for (const [honest, { asked, served, again }] of Object.entries(await besiege(house, name, 6))) {
            t.diagnostic(`${honest}: ${served} of ${asked}, ${again} came again`)
            assert.ok(asked > 0 && served >= asked * (LEAST[honest] ?? 0.75), `${honest}: ${served} of ${asked}`)
          }
        })
      }
    }
    await Promise.all(Array.from({ length: 4 }, one))
  })
}
