/** The XML of password managers: what is read, what is refused and where, and that expat reads nothing else in it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { OperatorError } from '../../src/parts/command.ts'
import { XmlReader } from '../../src/parts/operator/xml.ts'
import { randomOf } from '../support/random.ts'

/** What a text says: each element with its attributes, and its text in one piece; or why it is refused. */
function read(text: string): readonly unknown[] | string {
  const seen: unknown[] = []
  let content = ''
  const endText = (): void => {
    if (content !== '') seen.push(content)
    content = ''
  }
  try {
    for (const event of new XmlReader(text).events()) {
      if (event.kind === 'text') { content += event.text; continue }
      endText()
      seen.push(event.kind === 'open' ? [event.name, Object.fromEntries(event.attributes)] : [`/${event.name}`])
    }
    return seen
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return error.message
  }
}

const TEXTS: readonly (readonly [text: string, content: string])[] = [
  ['a', 'a'], [' a\t', ' a\t'], ['a\r\nb\rc\nd', 'a\nb\nc\nd'], ['a&#13;&#xA;b', 'a\r\nb'], ['&lt;&gt;&amp;&quot;&apos;', '<>&"\''],
  ['&#38;lt;', '&lt;'], ['&#x1F511;', '\u{1f511}'], ['a<!-- b -->c', 'ac'], ['a<![CDATA[<b>&amp;]] >]]>c', 'a<b>&amp;]] >c'],
  ['ñ🔑', 'ñ🔑'], ['>"\'', '>"\''], ['<![CDATA[\r]]>', '\n']
]

test('text is read as the standard says: line ends, references, sections, comments', () => {
  for (const [text, content] of TEXTS) assert.deepEqual(read(`<a>${text}</a>`), [['a', {}], content, ['/a']], text)
  const whole = '<?xml version="1.0" encoding="utf-8" standalone="yes"?>\n<!-- c --><a b="1&lt;" c = \'"\'><b/><c.d-e_1 /></a > <!---->\n'
  assert.deepEqual(read(whole), [['a', { b: '1<', c: '"' }], ['b', {}], ['/b'], ['c.d-e_1', {}], ['/c.d-e_1'], ['/a']])
})

const REFUSED: readonly (readonly [text: string, why: RegExp])[] = [
  ['', /^line 1, column 1: no element/], ['x', /no element/], ['<a>', /line 1, column 4: what is not XML/], ['<a></b>', /the end of another/],
  ['<a/><b/>', /line 1, column 5: something after/], ['<a/>x', /something after/], ['<a b=1/>', /a tag that is not closed/],
  ['<a b="1" b="2"/>', /line 1, column 9: an attribute twice/], ['<a\n b="<"/>', /not closed/], ['<a b="1"c="2"/>', /not closed/],
  ['<a>&SECRET;</a>', /line 1, column 4: a reference/], ['<a>&nbsp;</a>', /a reference/], ['<a>& </a>', /a reference/], ['<a>&#0;</a>', /a reference/],
  ['<a>&#xD800;</a>', /a reference/], ['<a>&#x110000;</a>', /a reference/], ['<a>&constructor;</a>', /a reference/],
  ['<a>]]></a>', /line 1, column 4: an end/], ['<a><!-- a -- b --></a>', /two hyphens/], ['<a><!-- a ---></a>', /two hyphens/],
  ['<!DOCTYPE a [<!ENTITY b "SECRET">]><a>&b;</a>', /line 1, column 1: no element/], ['<a><!DOCTYPE b></a>', /what is not XML/],
  ['<a><?php SECRET ?></a>', /line 1, column 4: what is not XML/], ['<?xml version="1.0" encoding="UTF-16"?><a/>', /an encoding other/],
  [' <?xml version="1.0"?><a/>', /no element/], ['<a>\0</a>', /line 1, column 4: a character/], ['<a>\ud800</a>', /a character/], ['<ñ/>', /no element/],
  ['<a>\r\n\r&;</a>', /^line 1, column 4: a reference/], ['<a>\n<b>\r\n<c>\r</d></c></b></a>', /^line 4, column 1: the end/],
  ['<a>'.repeat(129), /more than 128 levels/]
]

test('what is malformed or not read here is refused with its place, and never quoted', () => {
  for (const [text, why] of REFUSED) {
    const message = read(text)
    assert.match(String(message), why, text)
    assert.ok(typeof message === 'string' && !message.includes('SECRET'))
  }
})

test('what is long takes no more than its length: text, comments, sections, attributes, elements without end', () => {
  const long = 'a&amp;- '.repeat(400_000)
  for (const text of [`<a>${long}</a>`, `<a><!--${long}--></a>`, `<a><![CDATA[${long}]]></a>`, `<a b="${long}"/>`, `<a>${'<b/>'.repeat(400_000)}</a>`]) {
    assert.ok(Array.isArray(read(text)))
  }
  for (const text of [`<a>${long}`, `<a><!--${long}`, `<a><![CDATA[${long}`, `<a b="${long}`, `<${long.replaceAll(/[^a]/g, '')}`]) {
    assert.equal(typeof read(text), 'string')
  }
})

/** The same as `read` by expat; null where it refuses a text. */
const EXPAT = `
import json, sys, xml.parsers.expat
def read(text):
  seen, content = [], []
  def end_text():
    if content: seen.append(''.join(content)); content.clear()
  parser = xml.parsers.expat.ParserCreate('UTF-8')
  parser.StartElementHandler = lambda name, attributes: (end_text(), seen.append([name, attributes]))
  parser.EndElementHandler = lambda name: (end_text(), seen.append(['/' + name]))
  parser.CharacterDataHandler = content.append
  try: parser.Parse(text.encode(), True)
  except (xml.parsers.expat.ExpatError, UnicodeEncodeError): return None
  return seen
json.dump([read(text) for text in json.load(sys.stdin)], sys.stdout)
`

const PIECES = [
  '<a>', '</a>', '<b c="d">', '</b>', '<e/>', 'text', ' ', '\n', '\r', '&amp;', '&#10;', '&#x', ';', '&', '<', '>', '"', "'", '=', '<!--', '-->', '-',
  '<![CDATA[', ']]>', ']', '<?xml version="1.0"?>', '<?x?>', '<!DOCTYPE a>', 'ñ', '\u0001', '/', '<b c="&lt;" d=\'\'>'
]

test('what is read of generated texts is what expat reads, and what expat refuses is refused', t => {
  const texts: string[] = []
  const random = randomOf(t)
  for (let n = 0; n < 300; n++) {
    const valid = (depth: number): string => {
      const inner = Array.from({ length: random.int(4) }, () => depth === 0 || random.int(3) === 0
        ? random.pick(['text', ' ', '\r\n', '&lt;', '&#13;', '<!-- c -->', '<![CDATA[<]]>', 'ñ', '<e/>']) : valid(depth - 1))
      return [['<a>', '</a>'], ['<b c="d">', '</b>']][random.int(2)]!.join(inner.join(''))
    }
    const good = valid(4)
    const at = random.int(good.length)
    texts.push(good, good.slice(0, at) + random.pick(PIECES) + good.slice(at + random.int(3)),
      Array.from({ length: random.int(8) }, () => random.pick(PIECES)).join(''))
  }
  const { stdout, stderr } = spawnSync('python3', ['-c', EXPAT], { input: JSON.stringify(texts), encoding: 'utf8', maxBuffer: 2 ** 28 })
  assert.equal(stderr, '')
  let accepted = 0
  for (const [i, theirs] of (JSON.parse(stdout) as (readonly unknown[] | null)[]).entries()) {
    const ours = read(texts[i]!)
    if (typeof ours !== 'string') {
      accepted++
      assert.deepEqual(ours, theirs, JSON.stringify(texts[i]))
    } else if (theirs !== null) assert.match(texts[i]!, /<\?|<!DOCTYPE|<[^>]*ñ/, `${JSON.stringify(texts[i])}: ${ours}`)
  }
  assert.ok(accepted >= 300)
})
