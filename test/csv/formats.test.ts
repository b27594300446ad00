/** The files to import, each as its program writes it. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { Failure } from '../../src/errors.ts'
import { MAX_IMPORT_FILE_BYTES } from '../../src/limits.ts'
import { Refusal } from '../../src/operator/refusal.ts'
import { readSource, type Source } from '../../src/operator/formats.ts'
import { countFromEnv, mutate } from '../support/mutations.ts'
import { seeded, seedFromEnv } from '../support/random.ts'
import { freshFolder } from '../support/service.ts'

function sourceOf(t: TestContext, text: string | Buffer): Source {
  const path = join(freshFolder(t), 'file')
  writeFileSync(path, text)
  return readSource(path)
}

interface Sample {
  readonly format: string
  readonly what?: string
  readonly lines: readonly string[]
  readonly end?: string
  /** For each row its line, sistema, usuario and password; the line alone where it is skipped. */
  readonly rows: readonly (readonly [line: number, sistema?: string, usuario?: string, password?: string])[]
}

const SAMPLES: readonly Sample[] = [
  {
    format: 'Chrome', end: '\n',
    lines: [
      'name,url,username,password,note',
      'accounts.google.com,https://accounts.google.com/signin/v2,ana@gmail.com,"p,1""x",',
      'com.twitter.android,android://c0FFee-_==@com.twitter.android/,ana,contraseña,"a note',
      'of two lines"',
      ',https://router.local:8443/login?a=b,admin,12345,',
      'example.org,https://example.org/,"",solo,',
      'never.org,https://never.org/,ana,,'
    ],
    rows: [
      [2, 'accounts.google.com', 'ana@gmail.com', 'p,1"x'], [3, 'com.twitter.android', 'ana', 'contraseña'],
      [5, 'router.local:8443', 'admin', '12345'], [6, 'example.org', '-', 'solo'], [7]
    ]
  },
  {
    format: 'Chrome', what: ' without note', end: '\n',
    lines: ['name,url,username,password', 'a.org,https://a.org/,u,p'], rows: [[2, 'a.org', 'u', 'p']]
  },
  {
    format: 'Firefox', end: '\r\n',
    lines: [
      '"url","username","password","httpRealm","formActionOrigin","guid","timeCreated","timeLastUsed",' +
        '"timePasswordChanged"',
      '"https://accounts.firefox.com","ana@x.org","a""b,c",,"https://accounts.firefox.com",' +
        '"{d61e37fa-2bc4-469a-bd66-41fd3b0005e0}","1612345678900","1612345678900","1612345678900"',
      '"http://192.168.1.1:8080","","пароль","Router","","{2}","1","2","3"',
      '"chrome://FirefoxAccounts","0123abcd","{""version"":1}","Firefox Accounts credentials",,"{3}","1","2","3"'
    ],
    rows: [
      [2, 'accounts.firefox.com', 'ana@x.org', 'a"b,c'], [3, '192.168.1.1:8080', '-', 'пароль'],
      [4, 'FirefoxAccounts', '0123abcd', '{"version":1}']
    ]
  },
  {
    format: 'Bitwarden', end: '\n',
    lines: [
      'folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp',
      'Social,1,login,Twitter,,,0,"https://twitter.com,https://x.com",me@example.com,password123,',
      ',,note,My note,"line 1',
      'line 2","key: value',
      'PIN: 1234",0,,,,',
      ',,login,,,,0,example.org/login,ana, spaces ,otpauth://totp/x?secret=A'
    ],
    rows: [[2, 'Twitter', 'me@example.com', 'password123'], [3], [6, 'example.org/login', 'ana', ' spaces ']]
  },
  {
    format: 'Bitwarden', what: ' of an organization', end: '\n',
    lines: [
      'collections,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp',
      '"Ops,Web",login,Server,,,0,ssh://h.example:22,root,pw,'
    ],
    rows: [[2, 'Server', 'root', 'pw']]
  },
  {
    format: 'KeePassXC', end: '\n',
    lines: [
      '"Group","Title","Username","Password","URL","Notes","TOTP","Icon","Last Modified","Created"',
      '"Root","Sample","ana","=SUM(A1)","https://k.org","n ""q""","","0","2024-01-01T00:00:00Z","2024-01-01T00:00:00Z"',
      '"Root/Wi-Fi","","","🔑 key","","","","0","2024-01-01T00:00:00Z","2024-01-01T00:00:00Z"',
      '"Root","Empty","ana","","","","","0","2024-01-01T00:00:00Z","2024-01-01T00:00:00Z"'
    ],
    rows: [[2, 'Sample', 'ana', '=SUM(A1)'], [3, '-', '-', '🔑 key'], [4]]
  },
  {
    format: '1Password', end: '\n',
    lines: [
      'Title,Url,Username,Password,OTPAuth,Favorite,Archived,Tags,Notes',
      'GitHub,https://github.com,jon,gh-secret,otpauth://totp/G?secret=A,true,false,work;dev,ssh note',
      ',https://www.example.org/a,me,"two',
      'lines",,false,true,,'
    ],
    rows: [[2, 'GitHub', 'jon', 'gh-secret'], [3, 'www.example.org', 'me', 'two\nlines']]
  },
  {
    format: '1Password', what: ' with Website', end: '\r\n',
    lines: ['Title,Website,Username,Password,OTPAuth,Favorite,Archived,Tags,Notes', 'A,https://a.org,u,p,,false,false,,'],
    rows: [[2, 'A', 'u', 'p']]
  },
  {
    format: 'LastPass', end: '\r\n',
    lines: [
      'url,username,password,totp,extra,name,grouping,fav',
      'https://www.facebook.com/login.php,ana,p&w,,,Facebook,Social,0',
      'http://sn,,,,"NoteType:Server\nHostname:h",A note,Secure Notes,0',
      'http://,ana,only-name,,,Bank,,1'
    ],
    rows: [[2, 'Facebook', 'ana', 'p&w'], [3], [5, 'Bank', 'ana', 'only-name']]
  },
  {
    format: 'LastPass', what: ' without totp', end: '\n',
    lines: ['url,username,password,extra,name,grouping,fav', 'https://a.org,u,p,,A,,0'], rows: [[2, 'A', 'u', 'p']]
  }
]

for (const { format, what = '', lines, end = '\n', rows } of SAMPLES) {
  test(`${format}${what}: each row with a password becomes an entry`, t => {
    const expected = rows.map(([line, sistema, usuario, password]) =>
      ({ line, entry: sistema === undefined ? undefined : { password, sistema, usuario, status: 1 } }))
    const text = lines.map(line => line + end).join('')
    assert.deepEqual(sourceOf(t, text), { format, isOwn: false, rows: expected })
    assert.deepEqual(sourceOf(t, `\ufeff${text}`).rows, expected, 'with a byte order mark')
    // What a later version may do: columns at the end, and between.
    const header = lines[0]!
    assert.equal(sourceOf(t, `${header},More`).format, format)
    assert.equal(sourceOf(t, header.replace(',', ',Between,')).format, format)
  })
}

const A = { id: 3, password: 'p', sistema: 's', usuario: 'u', status: 1 }
const B = { ...A, id: 7, status: 0 }
const { id: _a, ...ENTRY_A } = A
const { id: _b, ...ENTRY_B } = B

test('JSON lines and CSV of this program: each line is an entry, deleted ones too', t => {
  const rows = [{ line: 1, entry: ENTRY_A }, { line: 3, entry: ENTRY_B }]
  const lines = `${JSON.stringify(A)}\r\n\n ${JSON.stringify({ ...B, more: {} })} `
  assert.deepEqual(sourceOf(t, lines), { format: 'this program', isOwn: true, rows })
  assert.deepEqual(sourceOf(t, `\ufeff${lines}`).rows, rows, 'with a byte order mark')
  const csv = 'id,sistema,usuario,password,status\n3,s,u,p,1\n7,s,u,p,0\n'
  assert.deepEqual(sourceOf(t, csv), {
    format: 'this program', isOwn: true, rows: [{ line: 2, entry: ENTRY_A }, { line: 3, entry: ENTRY_B }]
  })
})

test('what is wrong in a file of this program refuses it, naming the line and never what stands there', t => {
  const a = JSON.stringify(A)
  const csv = 'id,sistema,usuario,password,status\n3,s,u,p,1\n'
  const wrong: readonly (readonly [text: string | Buffer, message: RegExp])[] = [
    [`${a}\n{"id":4,"password":"SECRET`, /^line 2, column 27: it ends in a string$/],
    [Buffer.concat([Buffer.from(`${a}\n`), Buffer.from('{"password":"SECRET\xff"}', 'latin1')]),
      /^line 2, column 20: it is not valid UTF-8$/],
    [`\ufeff{"id":4,"password":"SECRET`, /^line 1, column 27: it ends in a string$/],
    [`${a}\n\ufeff${a}`, /^line 2, column 1: it /],
    [`${a}\n["SECRET"]`, /^line 2, column 1: it is not an object$/],
    [`${a}\n\n{"id":4,"password":["SECRET"],"sistema":"","status":2}`, /^line 3: The password field must be a string. /],
    [`${a}\n${a}`, /^line 2: the ids do not ascend/],
    [`{"a":${'['.repeat(70)}`, /^line 1, column 69: it nests deeper/],
    [`${csv}3,SECRET,u,p,1`, /^line 3: the ids do not ascend/],
    [`${csv}04,SECRET,u,p,1`, /^line 3: The id field must be a number/],
    [`${csv}4,SECRET,,p,1`, /^line 3: The usuario field is required.$/],
    [`${csv}4,SECRET,u,p,true`, /^line 3: The status field must be 0 or 1.$/],
    [`${csv}4,"SECRET`, /line 3, column 3: a quote that is not closed$/],
    ['', /is empty$/],
    ['\n\n', /is empty$/],
    ['[]', /header that is not known; known are those of Chrome, Firefox, Bitwarden, KeePassXC, 1Password, LastPass,/],
    ['SECRET;name;url', /not known/],
    ['Title,URL,Username,Password,Notes,OTPAuth\n', /not known/],
    ['type,name,url,email,username,password,note\n', /not known/],
    ['id,password,sistema,usuario,status\n', /not known/]
  ]
  for (const [text, message] of wrong) {
    assert.throws(() => sourceOf(t, text), (error: Error) => {
      assert.match(error.message, message)
      return !error.message.includes('SECRET')
    })
  }
})

test('a file that is too large, or cannot be read, is refused', t => {
  const path = join(freshFolder(t), 'file')
  assert.throws(() => readSource(path), { code: 'ENOENT' })
  writeFileSync(path, '')
  truncateSync(path, MAX_IMPORT_FILE_BYTES + 1)
  assert.throws(() => readSource(path), /larger than .*; split it/)
})

test('a file that has gone wrong is read or refused, and nothing else happens', t => {
  const seed = seedFromEnv()
  t.diagnostic(`SEED=${seed}`)
  const random = seeded(seed)
  const lines = [A, B].map(entry => `${JSON.stringify(entry)}\n`).join('')
  const samples = [lines, ...SAMPLES.map(sample => sample.lines.join(sample.end))].map(text => Buffer.from(text))
  const path = join(freshFolder(t), 'file')
  const seen = { read: 0, refused: 0 }
  for (let count = countFromEnv(600); count > 0; count--) {
    writeFileSync(path, mutate(random.pick(samples), random, samples))
    try {
      for (const { entry } of readSource(path).rows) {
        assert.ok(entry === undefined || Object.values(entry).every(value => value !== ''))
      }
      seen.read++
    } catch (error) {
      assert.ok(error instanceof Refusal || error instanceof Failure, String(error))
      seen.refused++
    }
  }
  assert.ok(seen.read > 50 && seen.refused > 50, JSON.stringify(seen))
})
