/** The line that says at a start when compacting the journal is worth it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PartContext } from '../../src/part.ts'
import { operator } from '../../src/parts/operator/part.ts'
import { memoryStore } from '../support/stores.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

for (const [what, readMs, records, endpoints, hint] of [
  ['a long start with more than ten records an entry', 1_001, 11, undefined, /^hint .*journal compact /],
  ['the same on etcd, where that command is refused,', 1_001, 11, ['e'], /^hint .* a copy of the journal in a file/],
  ['a short start', 1_000, 11, undefined, undefined],
  ['a long start with ten records an entry', 1_001, 10, undefined, undefined]
] as const) {
  test(`${what} ${hint === undefined ? 'gives no hint' : 'hints at compaction'}`, async () => {
    const store = memoryStore()
    await createEntry(store, { password: 'p', sistema: 's', usuario: 'u' }, null)
    const lines: string[] = []
    const journal = { status: () => ({ records }), location: () => ({ endpoints }) }
    const settings = { abilities: new Map(), dataDir: '/nowhere' }
    const context = { settings, store, journal, readMs, lock: { server: { on: () => {} } },
      log: { info: (line: string) => { lines.push(line) } } }
    await operator.open!(context as unknown as PartContext<object>)
    assert.equal(lines.length, hint === undefined ? 0 : 1)
    if (hint !== undefined) assert.match(lines[0]!, hint)
  })
}
