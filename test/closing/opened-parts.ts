/** A part of a service cannot be opened, or what it listens at is taken: what was opened before is closed. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { Part } from '../../src/part.ts'
import { PARTS } from '../../src/settings.ts'
import { leavesNothing } from '../support/leaks.ts'
import { placeOf, service } from './openings.ts'

/** Tests a service of which a part cannot be opened, or whose address is taken: what was opened before is closed. */
export function closesWhatWasOpened(part: Part | undefined): void {
  const what = part === undefined ? 'whose address is taken' : `whose part ${PARTS.indexOf(part) + 1} does not open`
  test(`a service ${what} leaves nothing, and every part that was opened is closed`, async t => {
    const place = placeOf(t)
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const flags = part === undefined ? [`--port=${port}`] : []
    const open = service('--auth=bearer', '--extra-routes=on', ...flags)
    await open(place).then(close => close(), () => {})
    const whole = PARTS.map(one => one.open)
    let opened = 0
    for (const one of PARTS) {
      const original = one.open
      Object.assign(one, {
        open: async (...given: Parameters<NonNullable<typeof original>>) => {
          if (one === part) throw new Error('as the test asked')
          const made = await original?.(...given) ?? {}
          opened++
          return { ...made, close: () => { opened--; made.close?.() } }
        }
      })
    }
    try {
      await leavesNothing(place, what, async () => { await assert.rejects(open(place)) })
      assert.equal(opened, 0)
    } finally {
      PARTS.forEach((one, at) => Object.assign(one, { open: whole[at] }))
      taken.close()
    }
  })
}
