/** Every clause of the contract has code that keeps it and a test that holds it, and nothing names one that is none. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { allNaming, CLAUSES, CONTRACT_FILE, contractText } from './clauses.ts'

const CODE = allNaming('src')
const TESTS = allNaming('test')

test('every clause is kept by code and held by a test, and nothing names a clause that is none', () => {
  const sections = new Set([...CLAUSES.keys()].flatMap(number => [number, number.split('.')[0]!]))
  for (const naming of [CODE, TESTS]) {
    const named = new Set(naming.flatMap(({ numbers }) => numbers))
    assert.deepEqual([...CLAUSES.keys()].filter(number => !named.has(number)), [])
    assert.deepEqual([...named].filter(number => !sections.has(number)), [])
  }
})

test('CONTRACT.md says what sources and tests say; `npm run clauses` writes it', () => {
  assert.equal(readFileSync(CONTRACT_FILE, 'utf8'), contractText(CODE, TESTS), 'run `npm run clauses`')
})
