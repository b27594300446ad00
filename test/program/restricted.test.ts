/** The programs where little is allowed: on this Node. `npm run test:nodes` tries more, on every supported one. */
import { strict as assert } from 'node:assert'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { BARE, documentedLine, NODES_OWN, tryRestriction } from '../support/restrictions.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const NODE = { node: process.execPath, version: [major, minor], program: ROOT.replace(/\/$/, '') } as const
const bareMissing = BARE.missing?.({ ...NODE, data: '' }) ?? false

test(`both programs work under ${NODES_OWN.name}, with 64 MiB of old space`, t => tryRestriction(t, NODES_OWN, NODE))

test(`both programs work with ${BARE.name}`, { skip: bareMissing }, t => tryRestriction(t, BARE, NODE))

test('the README has a command line for each Node', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  for (const version of [20, 22, 24, 26]) assert.ok(readme.includes(`\n${documentedLine(version)}\n`), `Node ${version}`)
})
