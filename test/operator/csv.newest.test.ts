import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import test from 'node:test'
import { csvRow, CsvError, decodeUtf8, readCsv, type Separator } from '../../src/parts/operator/transfer/csv.ts'
import { seeded, seedFromEnv } from '../support/random.ts'

function cellsOf(text: string | Buffer, separator?: Separator): readonly (readonly string[])[] {
  return [...readCsv(decodeUtf8(Buffer.from(text as string)), separator)].map(({ cells }) => cells)
}

function faultOf(text: string | Buffer): string {
  try {
    cellsOf(text)
  } catch (error) {
    assert.ok(error instanceof CsvError, String(error))
    return error.message.replace('the file is not valid CSV (RFC 4180): ', '')
  }
  return assert.fail(`it was read: ${JSON.stringify(String(text))}`)
}

const READ: readonly (readonly [what: string, text: string, cells: readonly (readonly string[])[]])[] = [
  ['RFC 4180 §2.1: a row a line, ended by CR LF', 'aaa,bbb,ccc\r\nzzz,yyy,xxx\r\n',
    [['aaa', 'bbb', 'ccc'], ['zzz', 'yyy', 'xxx']]],
  ['RFC 4180 §2.2: the last row may have no line end', 'aaa,bbb,ccc\r\nzzz,yyy,xxx',
    [['aaa', 'bbb', 'ccc'], ['zzz', 'yyy', 'xxx']]],
  ['RFC 4180 §2.4: spaces are part of a cell', ' a , b \r\n', [[' a ', ' b ']]],
  ['RFC 4180 §2.5: cells may be in quotes or not', '"aaa","bbb","ccc"\r\nzzz,yyy,xxx',
    [['aaa', 'bbb', 'ccc'], ['zzz', 'yyy', 'xxx']]],
  ['RFC 4180 §2.6: line ends and commas in quotes', '"aaa","b\r\nbb","c,c"\r\nzzz,yyy,xxx',
    [['aaa', 'b\r\nbb', 'c,c'], ['zzz', 'yyy', 'xxx']]],
  ['RFC 4180 §2.7: a quote in quotes is written twice', '"aaa","b""bb","ccc"', [['aaa', 'b"bb', 'ccc']]],
  ['rows ended by LF, by CR, and by all in turn', 'a,b\nc,d\re,f\r\ng,h',
    [['a', 'b'], ['c', 'd'], ['e', 'f'], ['g', 'h']]],
  ['each line end in quotes, as it is', '"\r","\n","\r\n","\n\r"', [['\r', '\n', '\r\n', '\n\r']]],
  ['empty cells, in quotes or not', ',\r\n"",""\r\n,""', [['', ''], ['', ''], ['', '']]],
  ['empty lines are no rows', '\n\r\n\ra,b\n\n\nc,d\n\n', [['a', 'b'], ['c', 'd']]],
  ['an empty cell in quotes is a row', '""\n\n""', [[''], ['']]],
  ['no text', '', []],
  ['a byte order mark', '\ufeffa,b\n', [['a', 'b']]]
]

for (const [what, text, cells] of READ) test(`CSV: ${what}`, () => assert.deepEqual(cellsOf(text), cells))

test('CSV: each row has the number of the line that it begins in, whatever the line ends', () => {
  const rows = readCsv('a,b\r\n\r\n"x\ry\nz\r\n",c\rd,e\n\nf,g')
  assert.deepEqual([...rows].map(({ line }) => line), [1, 3, 7, 9])
})

test('CSV: cells may be separated by semicolons or tabs; then a comma is text', () => {
  assert.deepEqual(cellsOf('a;"b;"";c"\r\n1,5;2', ';'), [['a', 'b;";c'], ['1,5', '2']])
  assert.deepEqual(cellsOf('a\tb\n"x\ty"\t,', '\t'), [['a', 'b'], ['x\ty', ',']])
})

const REFUSED: readonly (readonly [text: string | Buffer, fault: string])[] = [
  ['"abc', 'line 1, column 1: a quote that is not closed'],
  ['a,b\r\nc,"d\r\ne\r\n', 'line 2, column 3: a quote that is not closed'],
  ['"a""', 'line 1, column 1: a quote that is not closed'],
  ['a,b\n"c"d,e', 'line 2, column 4: text after a closing quote'],
  ['"a" ,b', 'line 1, column 4: text after a closing quote'],
  ['"x\r\ny"z', 'line 2, column 3: text after a closing quote'],
  ['🔑,ñb"c', 'line 1, column 5: a quote in a cell that does not begin with one'],
  ['a, "b"', 'line 1, column 4: a quote in a cell that does not begin with one'],
  ['a,b\rc\r', 'line 2, column 1: 1 cells, where the first row has 2; if its last cells are empty, add 1 comma at ' +
    'its end'],
  ['a,b\n\n"c\nd",e\nf,g,h', 'line 5, column 1: 3 cells, where the first row has 2'],
  [`a${',b'.repeat(1_000)}`, 'line 1, column 2000: more than 1000 cells'],
  [Buffer.from('a,b\nñ\xff,c', 'latin1'), 'line 2, column 1: a byte that is not UTF-8'],
  [Buffer.from([0xef, 0xbb, 0xbf, 0x61, 0x2c, 0xc3]), 'line 1, column 3: a byte that is not UTF-8'],
  [Buffer.concat([Buffer.from('\ufffd,x\n🔑y'), Buffer.from([0xed, 0xa0, 0x80])]),
    'line 2, column 3: a byte that is not UTF-8']
]

for (const [text, fault] of REFUSED) {
  test(`CSV: ${JSON.stringify(String(text).slice(0, 40))} is refused, naming line and column`, () =>
    assert.equal(faultOf(text), fault))
}

test('CSV: an error discloses nothing of the file', () => {
  for (const text of ['"SECRET', 'SECRET"x', '"SECRET"x', 'a,b\nSECRET']) assert.ok(!faultOf(text).includes('SECRET'))
})

test('CSV: what is written reads back the same, quoted only where that is needed', t => {
  const seed = seedFromEnv()
  t.diagnostic(`SEED=${seed}`)
  const random = seeded(seed)
  const pieces = ['"', '""', ',', '\r', '\n', '\r\n', ' ', 'a', 'ñ', '🔑', '\ufeff', '\0', '\u202e', '=', '\ufffd', ';',
    '\t\v\f\x1b', '\x85\u2028']
  const cell = (): string => Array.from({ length: random.int(6) }, () => random.pick(pieces)).join('')
  for (let round = 0; round < 2_000; round++) {
    const columns = 1 + random.int(4)
    const rows = Array.from({ length: 1 + random.int(4) }, () => Array.from({ length: columns }, cell))
    assert.deepEqual(cellsOf(rows.map(csvRow).join('')), rows)
  }
  assert.equal(csvRow(['a b', '', 'c,d', 'e"f', '=1']), 'a b,"","c,d","e""f",=1\r\n')
})

test('where backslashes escape, they do so before quotes and backslashes alone', () => {
  const cells = (text: string): unknown => [...readCsv(text, ',', true)].map(({ cells }) => cells)
  assert.deepEqual(cells('"a\\\\","b\\"c",d\r\n"\\\\\\"",",",\\\r\n'), [['a\\', 'b"c', 'd'], ['\\"', ',', '\\']])
  for (const [text, why] of [
    ['"a\\b"', /line 1, column 3: a backslash before a character that is neither/],
    ['"a""b"', /text after a closing quote/],
    ['"a\\"', /not closed/], ['"a\\', /a backslash before a character that is neither/]
  ] as const) assert.throws(() => cells(text), why)
})
