/** The programs where little is allowed: on this Node. `npm run test:nodes` tries more, on every supported one. */
import { strict as assert } from 'node:assert'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { BARE, documentedLines, NODES_OWN, tryRestriction } from '../support/restrictions.ts'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const NODE = { node: process.execPath, version: [major, minor] } as const
const bareMissing = BARE.missing?.(NODE) ?? false

test(`both programs work under ${NODES_OWN.name}, with 64 MiB of old space`, t => tryRestriction(t, NODES_OWN, NODE))

test(`both programs work with ${BARE.name}`, { skip: bareMissing }, t => tryRestriction(t, BARE, NODE))

test('SECURITY.md has these very command lines', () => {
  const text = readFileSync(new URL('../../SECURITY.md', import.meta.url), 'utf8')
  const [, shown] = /^<!-- restricted -->\n([^]*?)\n<!-- \/restricted -->$/m.exec(text) ?? []
  assert.equal(shown, documentedLines())
})
