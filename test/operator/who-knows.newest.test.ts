/** How commands say that others may know passwords. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { othersMayKnow } from '../../src/parts/operator/commands/who-knows.ts'

test('of several times before which reads were not recorded the newest is said, or that none was', () => {
  const [older, newer] = ['2026-01-31T12:00:00.000Z', '2026-02-28T12:00:00.000Z']
  assert.deepEqual(othersMayKnow({}), [])
  assert.deepEqual(othersMayKnow({ [older]: [1] }),
    [`reads before ${older} were not recorded: others may know 1 password, of ids 1`])
  assert.deepEqual(othersMayKnow({ [newer]: [2, 3], [older]: [1] }, 'ana and others'),
    [`some reads before ${newer} were not recorded: ana and others may know 3 passwords, of ids 2, 3, 1`])
  assert.match(othersMayKnow({ now: [2], [newer]: [1] })[0]!, /^some reads until now were not recorded: /)
})
