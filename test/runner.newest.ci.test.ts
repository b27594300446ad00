/** A run of tests: what it prints, and that it cannot pass by accident. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { joined } from './support/patterns.ts'
import { endOf, textOf } from './support/reporter.ts'
import { freshFolder } from './support/service.ts'
import { lostTests, runFiles, titlesIn, type FileResult } from './support/test-file.ts'

const TEST = fileURLToPath(new URL('.', import.meta.url))
const LEFT_OUT = ['program/crash', 'page/webkit']

async function runText(t: TestContext, text: string, timeoutMs?: number): Promise<FileResult> {
  const folder = freshFolder(t)
  writeFileSync(join(folder, 'a.test.ts'), `import test from 'node:test'\n${text}`)
  return (await runFiles(['a.test.ts'], timeoutMs, folder))[0]!
}

/** What ends a file early, loses tests or lasts too long, and what is said then. */
const ACCIDENTS: readonly (readonly [name: string, text: string, says: RegExp])[] = [
  ['ends in its module', "test('one', () => {})\nprocess.exit(0)", /^it ended early, after 0 tests/],
  ['ends in a test', "test('one', () => {})\ntest('two', () => process.exit(0))\ntest('three', () => {})",
    /^it ended early, after \d tests/],
  ['ends in a hook', "test.after(() => process.exit(0))\ntest('one', () => {})", /^it ended early/],
  ['does not end', "test('one', () => {})\ntest('two', () => new Promise(() => setInterval(() => {}, 1000)))",
    /^it had not ended after 6 s; it ended early, after 1 tests; not ended: two/],
  ['stays with a timer', "test('one', () => {})\nsetInterval(() => {}, 1000)", /^it had not ended after 6 s/],
  ['is killed', "test('one', () => process.kill(process.pid, 'SIGKILL'))", /^it was ended by SIGKILL/],
  ['cannot be read', "import './nowhere.ts'", /^it ended with code 1/],
  ['has no tests', '', /it has no tests$/]
]

describe('a run does not pass', { concurrency: 3 }, () => {
  for (const [name, text, says] of ACCIDENTS) {
    it(`where a file ${name}`, async t => {
      const result = await runText(t, text, says.source.includes('6 s') ? 6_000 : undefined)
      assert.match(result.problems.join('; '), says)
      const end = endOf([result], LEFT_OUT, [])
      assert.equal(end.isGood, false)
      assert.match(end.text, /^\nfailed:\n✖ a\.test\.ts: it /)
    })
  }

  it('where a test fails, and says which, why, and what was skipped', async t => {
    const result = await runText(t, [
      "test('one', () => { console.log('said') })", "test('two', { skip: 'no etcd' }, () => {})",
      "test('three', async t => { await t.test('four', () => { throw new Error('outer', { cause: new " +
        "Error('because') }) }) })",
      "test('five', { todo: 'later' }, () => { throw new Error('todo') })"
    ].join('\n'))
    assert.deepEqual(result.problems, [])
    assert.match(textOf(result),
      joined(/^said\n✖ a\.test\.ts: four\n  Error: outer\n(    .*\n)+  Error: because\n(    .*\n)+/,
        /✖ a\.test\.ts: 5 tests, \d+\.\d s, \d+\.\d s of a core\n$/))
    assert.doesNotMatch(textOf(result), /node:internal/)
    const { text, isGood } = endOf([result], LEFT_OUT, [])
    assert.equal(isGood, false)
    assert.equal(text, '\nfailed:\n✖ a.test.ts: four\n\nℹ tests 5\nℹ fail 2\nℹ skipped 1\n' +
      'skipped: 1 test (no etcd); program/crash, page/webkit (npm test -- all runs them)\n')
  })

  it('where a random test fails, and gives its seed', async t => {
    const result = await runText(t,
      "test('one', t => { t.diagnostic('SEED=7'); throw new Error('no') })\ntest('two', () => {})")
    assert.match(textOf(result), /\nSEED=7 of: one\n✖ a\.test\.ts: 2 tests/)
  })

  it('where a title that stands in a file was not reported, and passes where all were', async t => {
    const folder = freshFolder(t)
    writeFileSync(join(folder, 'cases.ts'),
      "import test from 'node:test'\nfor (const n of process.argv.slice(9)) test(`case ${n}`, () => {})\n")
    writeFileSync(join(folder, 'a.test.ts'),
      "import test from 'node:test'\nimport './cases.ts'\nif (process.pid < 0) test('one', () => {})\ntest('two', () " +
        "=> {})\n")
    const [result] = await runFiles(['a.test.ts'], undefined, folder)
    assert.deepEqual(lostTests([result!], folder), ['a.test.ts: one', 'cases.ts: case .*'])
    assert.equal(endOf([result!], [], lostTests([result!], folder)).isGood, false)
    assert.deepEqual(endOf([result!], [], []), { isGood: true,
      text: '\nℹ tests 1\nℹ fail 0\nℹ skipped 0\nskipped: nothing\n' })
  })
})

describe('a run', () => {
  it('finds titles where they are texts, also of subtests and with gaps', () => {
    const found = titlesIn("test('a (b)', f); t.test(`c ${d} e`, f); it(g, f); /x/.test('h'); pattern.test(text); " +
      "describe(\"i\", f)")
    assert.deepEqual(found.map(({ source }) => source), ['^a \\(b\\)$', '^c .* e$', '^i$'])
  })

  it('ends before it begins where a folder is not there', () => {
    const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', `${TEST}run.ts`, 'htpp'],
      { encoding: 'utf8' })
    assert.equal(status, 2)
    assert.match(stderr, /^there is no test\/htpp; there are ci, all, portable, newest and the folders \., /)
  })
})
