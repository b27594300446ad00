/** `test/verify.py` says of a journal what the program says, damage for damage: neither knows the other's code. */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { spawnSync } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { MAX_LINE_BYTES } from '../../src/limits.ts'
import { admin } from '../support/admin.ts'
import { fileStore, rotateKey } from '../support/stores.ts'
import { importEntries } from '../support/rewrite.ts'
import {
  bytesOf, event, journalBytes, journalPath, keyPath, linesOf, makeJournal, putJournal, rechain, verdictOf
} from '../support/journal.ts'
import { countFromEnv, mutate } from '../support/mutations.ts'
import { NO_PYTHON, PYTHON } from '../support/programs.ts'
import { randomOf } from '../support/random.ts'
import { freshFolder } from '../support/service.ts'

const VERIFIER = fileURLToPath(new URL('../verify.py', import.meta.url))

/** Runs the verifier on many files in one Python, which takes longer to start than to verify. */
const MANY = [
  'import contextlib, io, json, runpy, sys',
  'said, verifier = [], sys.argv[1]',
  'for path in sys.argv[2:]:',
  '  out, torn, code = io.StringIO(), io.StringIO(), 0',
  '  sys.argv = [sys.argv[0], path]',
  '  try:',
  '    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(torn): runpy.run_path(verifier)',
  '  except SystemExit as end: code = end.code',
  '  said.append([code, out.getvalue(), torn.getvalue()])',
  'print(json.dumps(said))'
].join('\n')

function verdictsOfPython(paths: readonly string[]): string[] {
  const { status, stdout, stderr } = spawnSync(PYTHON, ['-c', MANY, VERIFIER, ...paths], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return (JSON.parse(stdout) as [number, string, string][]).map(([code, out, torn]) => {
    const where = /^line \d+ at byte \d+/.exec(out)?.[0]
    assert.equal(code, where === undefined ? 0 : 3, out)
    return where ?? `${out.trimEnd()}, ${Number(/^torn tail of (\d+) bytes\n$/.exec(torn)?.[1] ?? 0)} torn`
  })
}

/** A journal of entries and users, under two keys. */
async function realJournal(t: TestContext): Promise<{ readonly folder: string, readonly lines: readonly string[] }> {
  const folder = freshFolder(t)
  const store = await fileStore(folder)
  await store.accounts.addUser('ana@example.org', 'Ana', ['*'], 'a long secret')
  await importEntries(store, [{ sistema: 'ñ', usuario: 'u', password: 'p', status: 1 }])
  await rotateKey(store)
  await store.accounts.removeUser('ana@example.org')
  await store.close()
  return { folder, lines: linesOf(journalBytes(folder)) }
}

const flipped = (line: string, at: number): string =>
  line.slice(0, at) + (line[at] === 'A' ? 'B' : 'A') + line.slice(at + 1)

/** What can happen to a journal of three lines; `line` is the one that is to be named, where one is damaged. */
type Damage = readonly [what: string, line: number | undefined, of: (lines: string[]) => string[]]

const DAMAGES: readonly Damage[] = [
  ['nothing', undefined, lines => lines],
  ['an empty journal', undefined, () => []],
  ['a lost end', undefined, lines => lines.slice(0, 2)],
  ['a torn tail', undefined, lines => [...lines, '{"seq":4,"time"']],
  ['something else behind it', 4, lines => [...lines, '{"seq":5,"time"']],
  ['a byte behind it that no line has', 4, lines => [...lines, '{"seq":4,"time":"[']],
  ['zeros', 1, lines => ['\0'.repeat(bytesOf(lines).length - 1)]],
  ['zeros for two blocks', 1, () => ['\0'.repeat(8191)]],
  ['zeros in its last line', 3, ([a, b, c]) => [a!, b!, c!.slice(0, 40) + '\0'.repeat(c!.length - 60) + c!.slice(-20)]],
  ['compression', 1, lines => [gzipSync(bytesOf(lines)).toString('latin1')]],
  ['UTF-16', 1, lines => [Buffer.from(lines.join('\n'), 'utf16le').toString('latin1')]],
  ['a mark before it', 1, lines => ['\xef\xbb\xbf' + lines[0], ...lines.slice(1)]],
  ['a torn tail of zeros', undefined, lines => [...lines, '\0'.repeat(700)]],
  ['a changed seal', 2, ([a, b, c]) => [a!, flipped(b!, b!.indexOf('"sealed":') + 30), c!]],
  ['a last line that has not the form', 3, ([a, b, c]) => [a!, b!, c!.replace('"type":"', '"type":"(')]],
  ['a first line with a changed seq', 1, ([a, ...rest]) => [a!.replace('"seq":1', '"seq":2'), ...rest]],
  ['a changed user', 3, ([a, b, c]) => [a!, b!, c!.replace('"by":null', '"by":1')]],
  ['a changed hash', 1, ([a, ...rest]) => [flipped(a!, a!.length - 4), ...rest]],
  ['a first line cut out', 1, lines => lines.slice(1)],
  ['a line cut out', 2, lines => [lines[0]!, ...lines.slice(2)]],
  ['two lines exchanged', 2, ([a, b, c]) => [a!, c!, b!]],
  ['a line twice', 3, ([a, b, ...rest]) => [a!, b!, b!, ...rest]],
  ['a white space', 2, ([a, b, c]) => [a!, b!.replace(',"by"', ', "by"'), c!]],
  ['carriage returns', 1, lines => lines.map(line => `${line}\r`)],
  ['an empty line between', 3, ([a, b, ...rest]) => [a!, b!, '', ...rest]]
]

test('the verifier says of each damage what the program says, and names the same line and byte', {
  skip: NO_PYTHON
}, async t => {
  const { folder, lines } = await realJournal(t)
  assert.equal(lines.length, 3)
  const folders = DAMAGES.map(([what, , damage]) => {
    const damaged = freshFolder(t)
    copyFileSync(keyPath(folder), keyPath(damaged))
    const bytes = bytesOf(damage([...lines]))
    putJournal(damaged, what.startsWith('a torn') ? bytes.subarray(0, -1) : bytes)
    return damaged
  })
  const verdicts = verdictsOfPython(folders.map(journalPath))
  for (const [i, damaged] of folders.entries()) {
    const [what, line] = DAMAGES[i]!
    assert.equal(verdicts[i], verdictOf(journalPath(damaged), keyPath(damaged)), what)
    assert.equal(/^line (\d+)/.exec(verdicts[i]!)?.[1], line?.toString(), what)
    if (i >= 3 && i % 8 !== 0) continue // the operator's command takes a process each
    const { code, out, error } = await admin(damaged, 'journal verify')
    assert.equal(code, line !== undefined ? 3 : what.startsWith('a torn') ? 4 : 0, `${what}: ${error}`)
    if (line !== undefined) assert.ok(error.includes(`journal.jsonl, ${verdicts[i]}: `), `${what}: ${error}`)
    else assert.ok(verdicts[i]!.includes(`head ${/^head +([0-9a-f]{64})$/m.exec(out)?.[1]}`), what)
  }
})

test('the verifier and the program agree on journals that somebody has laid hands on', {
  skip: NO_PYTHON
}, async t => {
  const random = randomOf(t)
  const folder = freshFolder(t)
  const bytes = await makeJournal(folder, [[event(1)], [event(2), event(3), event(4)], [event(5), event(6)]])
  const paths = Array.from({ length: countFromEnv(200) }, (_, i) => {
    const path = join(folder, `damaged-${i}`)
    const damaged = Buffer.from(i === 0 ? bytes : mutate(bytes, random, [bytes]))
    const end = random.pick([0, 0, 1024, damaged.length]) // of sectors that are lost
    if (i > 0) damaged.fill(0, Math.min(damaged.length, 512), Math.min(damaged.length, Math.max(512, end)))
    writeFileSync(path, damaged)
    return path
  })
  const verdicts = verdictsOfPython(paths)
  const kinds = new Set<string>()
  for (const [i, path] of paths.entries()) {
    const expected = verdictOf(path, keyPath(folder))
    assert.equal(verdicts[i], expected, readFileSync(path, 'latin1'))
    kinds.add(expected.startsWith('line') ? 'damaged' : expected.endsWith(', 0 torn') ? 'whole' : 'torn')
  }
  assert.deepEqual([...kinds].sort(), ['damaged', 'torn', 'whole'])
})

test('the verifier and the program take a line of 32 MiB, but none that is a byte longer', {
  skip: NO_PYTHON
}, async t => {
  const type = 'entry.created' // which may be that long
  const shortest = linesOf(await makeJournal(freshFolder(t), [[{ type, by: 1, data: '' }]]))[0]!
  const around = shortest.length - Buffer.alloc(12 + 2 + 16).toString('base64').length
  const quanta = Math.floor((MAX_LINE_BYTES - around) / 4)
  const data = 'x'.repeat(quanta * 3 - (12 + 2 + 16))
  const by = 10 ** ((MAX_LINE_BYTES - around) % 4)
  for (const [user, verdict] of [[by, /^2 records/], [by * 10, /^line 1 at byte 0$/]] as const) {
    const folder = freshFolder(t)
    const bytes = await makeJournal(folder, [[{ type, by: user, data }], [event(2)]])
    assert.equal(bytes.indexOf('\n'), MAX_LINE_BYTES + (user === by ? 0 : 1))
    const [said] = verdictsOfPython([journalPath(folder)])
    assert.match(said!, verdict)
    assert.equal(verdictOf(journalPath(folder), keyPath(folder)), said)
  }
})

test('a chain computed anew is right to the verifier, unless a head was noted; the program finds it by the seals', {
  skip: NO_PYTHON
}, async t => {
  const folder = freshFolder(t)
  const lines = linesOf(await makeJournal(folder, [[event(1)], [event(2)], [event(3)]]))
  const head = /([0-9a-f]{64})"\}$/.exec(lines[2]!)![1]!
  const verify = (...args: readonly string[]): number | null =>
    spawnSync(PYTHON, [VERIFIER, journalPath(folder), ...args]).status
  assert.deepEqual([verify(), verify(head), verify('0'.repeat(64))], [0, 0, 3])
  putJournal(folder, rechain([lines[0]!, lines[2]!]))
  assert.deepEqual([verify(), verify(head)], [0, 3])
  assert.match(verdictOf(journalPath(folder), keyPath(folder)), /^line 2 at byte \d+$/)
  putJournal(folder, lines.slice(0, 1))
  assert.deepEqual([verify(), verify(head)], [0, 3])
})

test('the verifier says in a line which file it cannot read, and ends with 1', { skip: NO_PYTHON }, t => {
  const folder = freshFolder(t)
  putJournal(folder, '')
  for (const words of [['none'], ['.'], [journalPath(folder), '--key', 'none']]) {
    const { status, stdout, stderr } = spawnSync(PYTHON, [VERIFIER, ...words], { encoding: 'utf8', cwd: folder })
    assert.deepEqual([status, stdout], [1, ''])
    assert.match(stderr, /^(none|\.): [^\n]+\n$/)
  }
})
