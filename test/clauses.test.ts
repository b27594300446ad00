/** No clause of the contract is without the code that keeps it and a test that holds it; no test names none. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { allTestNames, CLAUSES, clausesTable, testNames, testsOf, withTable } from './clauses.ts'

const NAMES = allTestNames()
const SECTIONS = [
  '1', '2', '3', '4.1', '4.2', '4.3', '4.4', '4.5', '5.1', '5.2', '5.3', '5.4', '5.5', '5.6', '5.7', '5.8', '5.9', '7',
  '8', '8.1', '8.2', '8.3', '8.4', '8.5', '9'
]

test('the names of tests are found, and what they get from elsewhere is left open', () => {
  const text = "test('a', f)\ntest(`b ${1} c ${2}`, f)\ntest(name, f)\nconst x = test.name\nawait t.test('d', f)"
  assert.deepEqual(testNames(text, 'x').map(({ name }) => name), ['a', 'b … c …', 'd'])
})

test('every section of the contract that asks for something has its clauses, in order', () => {
  assert.deepEqual([...new Set(CLAUSES.map(({ section }) => section))], SECTIONS)
})

test('every clause is kept by code that is there', () => {
  for (const { section, says, code } of CLAUSES) {
    assert.ok(code.length > 0, `§${section} ${says}`)
    for (const [path, word] of code) {
      const url = new URL(`../src/${path}`, import.meta.url)
      assert.ok(existsSync(url) && readFileSync(url, 'utf8').includes(word), `§${section} ${says} ${path} ${word}`)
    }
  }
})

test('every clause is held by tests, each of which is there', () => {
  for (const one of CLAUSES) {
    assert.notDeepEqual(one.tests, [], one.says)
    for (const start of one.tests) {
      assert.notDeepEqual(testsOf({ ...one, tests: [start] }, NAMES), [], `§${one.section} ${one.says} ${start}`)
    }
  }
})

test('every test that names a section of the contract holds a clause', () => {
  const holding = new Set(CLAUSES.flatMap(one => testsOf(one, NAMES)))
  assert.deepEqual(NAMES.filter(one => one.name.startsWith('§') && !holding.has(one)), [])
})

test('a section is named where the table finds it, and not in what a test gets from elsewhere', () => {
  for (const file of new Set(NAMES.map(one => one.file))) {
    if (file === 'clauses.test.ts') continue
    const text = readFileSync(new URL(file, import.meta.url), 'utf8')
    const found = NAMES.filter(one => one.file === file && one.name.startsWith('§'))
    assert.equal(text.match(/['"`]§/g)?.length ?? 0, found.length, file)
  }
})

test('the README has this very table; `npm run clauses` writes it', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const table = clausesTable(NAMES)
  assert.ok(readme.includes(table), 'the table is there')
  assert.equal(withTable(readme, table), readme)
})
