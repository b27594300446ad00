/** Every clause of the contract has code that keeps it and a test that holds it, and nothing names one that is none. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { allNaming, CLAUSES, CONTRACT_FILE, contractText, namingCode, namingTests } from './clauses.ts'

const CODE = allNaming('src')
const TESTS = allNaming('test')

test('titles and comments that name a clause are found', () => {
  const titles = "test('§1, §4.3 a', f)\ntest(`§8 b ${1} c`, f)\ntest('d', f)\nconst x = test.name\nt.test('e (§2)', f)"
  assert.deepEqual(namingTests(titles, 'x').map(({ name, numbers }) => [name, ...numbers]),
    [['§1, §4.3 a', '§1', '§4.3'], ['§8 b … c', '§8']])
  const code = '/** Words (contract §1, §4.3). */\nexport const A: B = 1\n  /** RFC 1 §2 */\n  f()\n/**\n * contract §5.1\n */\n' +
    'export async function g<T>() {}\n  // contract §9\n  #h(): void {}\nx = 1 // contract §7\ny: 2\n' +
    "  // contract §4.1\n  operation: 'list',\n/** contract §2 */\nimport a"
  assert.deepEqual(namingCode(code, 'x').map(({ name, numbers }) => [name, ...numbers]),
    [['A', '§1', '§4.3'], ['g', '§5.1'], ['#h', '§9'], ['y', '§7'], ['list', '§4.1'], ['', '§2']])
})

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
