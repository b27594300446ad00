/** The files to import, each as its program writes it. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import test from 'node:test'
import { readSource } from '../../src/parts/operator/transfer/import-formats.ts'
import type { Row } from '../../src/parts/operator/transfer/import-row.ts'
import { joined } from '../support/patterns.ts'

function sourceOf(
  text: string | Buffer, keepsGroups = false
): { readonly format: string, readonly rows: readonly Row[] } {
  const { format, rows } = readSource(Buffer.from(text as string), keepsGroups)
  return { format, rows: [...rows] }
}

/** A row's line and entry, and what of it is not kept. */
const seenOf = ({ line, entry, dropped }: Row): unknown => ({ line, entry, dropped })

interface Sample {
  readonly format: string
  readonly what?: string
  readonly lines: readonly string[]
  readonly end?: string
  /** For each row its line, sistema, usuario and password; the line alone where it is skipped. */
  readonly rows: readonly (readonly [line: number, sistema?: string, usuario?: string, password?: string])[]
  /** By line, address and notes of the row. */
  readonly more?: { readonly [line: number]: readonly string[] }
  /** By line, what is not kept of the row. */
  readonly loses?: { readonly [line: number]: readonly string[] }
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
    loses: { 7: ['address', 'no password'] },
    more: {
      2: ['https://accounts.google.com/signin/v2'], 3: ['android://c0FFee-_==@com.twitter.android/',
        'a note\nof two lines'],
      5: ['https://router.local:8443/login?a=b'], 6: ['https://example.org/']
    },
    rows: [
      [2, 'accounts.google.com', 'ana@gmail.com', 'p,1"x'], [3, 'com.twitter.android', 'ana', 'contraseña'],
      [5, 'router.local:8443', 'admin', '12345'], [6, 'example.org', '-', 'solo'], [7]
    ]
  },
  {
    format: 'Firefox', end: '\r\n',
    more: { 2: ['https://accounts.firefox.com'], 3: ['http://192.168.1.1:8080'] },
    loses: { 3: ['column httpRealm'], 4: ['keys of a Firefox account'] },
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
      [4]
    ]
  },
  {
    format: 'Bitwarden', end: '\n',
    loses: { 2: ['folder', 'further address'], 3: ['no password', 'note', 'other field'], 6: ['one-time code'] },
    more: { 2: ['https://twitter.com'], 6: ['example.org/login'] },
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
    loses: { 2: ['folder', 'further folder'] },
    more: { 2: ['ssh://h.example:22'] },
    lines: [
      'collections,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp',
      '"Ops,Web",login,Server,,,0,ssh://h.example:22,root,pw,'
    ],
    rows: [[2, 'Server', 'root', 'pw']]
  },
  {
    format: 'KeePassXC', end: '\n',
    loses: { 2: ['root group Root'], 3: ['folder', 'root group Root'], 4: ['no password', 'root group Root'] },
    more: { 2: ['https://k.org', 'n "q"'] },
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
    loses: { 2: ['one-time code', 'tag'], 3: ['archived'] },
    more: { 2: ['https://github.com', 'ssh note'], 3: ['https://www.example.org/a'] },
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
    loses: {},
    more: { 2: ['https://a.org'] },
    lines: ['Title,Website,Username,Password,OTPAuth,Favorite,Archived,Tags,Notes',
      'A,https://a.org,u,p,,false,false,,'],
    rows: [[2, 'A', 'u', 'p']]
  },
  {
    format: 'LastPass', end: '\r\n',
    loses: { 2: ['folder'], 3: ['folder', 'no password', 'note'] },
    more: { 2: ['https://www.facebook.com/login.php'] },
    lines: [
      'url,username,password,totp,extra,name,grouping,fav',
      'https://www.facebook.com/login.php,ana,p&w,,,Facebook,Social,0',
      'http://sn,,,,"NoteType:Server\nHostname:h",A note,Secure Notes,0',
      'http://,ana,only-name,,,Bank,,1'
    ],
    rows: [[2, 'Facebook', 'ana', 'p&w'], [3], [5, 'Bank', 'ana', 'only-name']]
  },
  {
    format: 'Apple', end: '\n', loses: { 3: ['one-time code'] },
    more: { 2: ['https://example.org/'], 3: ['https://b.org/', 'a note'] },
    lines: [
      'Title,URL,Username,Password,Notes,OTPAuth',
      'example.org (ana),https://example.org/,ana,"p,1",,', ',https://b.org/,,q,a note,otpauth://totp/x?secret=A'
    ],
    rows: [[2, 'example.org (ana)', 'ana', 'p,1'], [3, 'b.org', '-', 'q']]
  },
  {
    format: 'Proton Pass', end: '\n',
    loses: { 2: ['folder', 'further user name'], 3: ['folder'], 4: ['folder', 'no password', 'note'] },
    more: { 2: ['https://b.org/'] },
    lines: [
      'type,name,url,email,username,password,note,totp,createTime,modifyTime,vault',
      'login,Bank,https://b.org/,ana@x.org,ana,p1,,,1700000000,1700000000,Personal',
      'login,Mail,,ana@x.org,,p2,,,1700000000,1700000000,Personal', 'note,Note,,,,,text,,1700000000,1700000000,Personal'
    ],
    rows: [[2, 'Bank', 'ana', 'p1'], [3, 'Mail', 'ana@x.org', 'p2'], [4]]
  },
  {
    format: 'Dashlane', end: '\n',
    loses: { 2: ['folder'], 4: ['no password'] },
    more: { 2: ['https://b.org/'], 3: ['https://c.org/'] },
    lines: [
      'username,username2,username3,title,password,note,url,category,otpSecret',
      'ana,,,Bank,p1,,https://b.org/,Finance,', ',second,,,p2,,https://c.org/,,', ',,,Nothing,,,,,'
    ],
    rows: [[2, 'Bank', 'ana', 'p1'], [3, 'c.org', 'second', 'p2'], [4]]
  },
  {
    format: 'KeePass 2', end: '\r\n',
    loses: {},
    more: { 2: ['https://k.org/', 'two\r\nlines'], 4: ['ssh://h:22'] },
    lines: [
      '"Account","Login Name","Password","Web Site","Comments"', '"Sample","ana","p\\\\1","https://k.org/","two',
      'lines"', '"","","q\\"\\\\","ssh://h:22",""'
    ],
    rows: [[2, 'Sample', 'ana', 'p\\1'], [4, 'h:22', '-', 'q"\\']]
  },
  {
    format: 'NordPass', end: '\n',
    loses: { 3: ['card', 'no password'] },
    more: { 2: ['https://b.org/'] },
    lines: [
      'name,url,username,password,note,cardholdername,cardnumber,cvc,expirydate,zipcode,folder,full_name,' +
        'phone_number,email,address1,address2,city,country,state,type,custom_fields',
      'Bank,https://b.org/,ana,p1,,,,,,,,,,,,,,,,password,', 'Card,,,,,Ana,4111,123,12/30,,,,,,,,,,,credit_card,'
    ],
    rows: [[2, 'Bank', 'ana', 'p1'], [3]]
  },
  {
    format: 'CSV', what: ' whose header names the fields', end: '\r\n',
    loses: { 2: ['column nota'], 3: ['column nota', 'no password'], 4: ['column nota'] },
    lines: ['password,nota,usuario,sistema', 'p1,x,ana,correo', ',x,ana,correo', 'p2,x,,'],
    rows: [[2, 'correo', 'ana', 'p1'], [3], [4, '-', '-', 'p2']]
  }
]

for (const { format, what = '', lines, end = '\n', rows, loses, more = {} } of SAMPLES) {
  test(`${format}${what}: each row with a password becomes an entry`, () => {
    const expected = rows.map(([line, sistema, usuario, password]) => ({
      line, entry: sistema === undefined ? undefined
        : { password, sistema, usuario, ...more[line]?.[0] && { url: more[line][0] }, ...more[line]?.[1] &&
          { notas: more[line][1] }, status: 1 }
    }))
    const entriesOf = (text: string): unknown => {
      const source = sourceOf(text)
      assert.equal(source.format, format)
      return source.rows.map(({ line, entry }) => ({ line, entry }))
    }
    const text = lines.map(line => line + end).join('')
    assert.deepEqual(entriesOf(text), expected)
    assert.deepEqual(entriesOf(`\ufeff${text}`), expected, 'with a byte order mark')
    const lost = sourceOf(text).rows.filter(({ dropped }) =>
      dropped.length > 0).map(({ line, dropped }) => [line, [...dropped].sort()])
    assert.deepEqual(Object.fromEntries(lost), loses ?? {})
    // What a later version may do: columns at the end, and between; and what a spreadsheet makes of it. Where it is
    // no longer what that program alone writes, no program is named.
    const header = lines[0]!
    for (const later of [`${header},More`, header.replace(',', ',Between,')]) {
      assert.ok([format, 'CSV'].includes(sourceOf(later).format), later)
    }
    for (const separator of [';', '\t']) assert.equal(sourceOf(header.replaceAll(',', separator)).format, format)
  })
}

const item = (name: unknown, username: unknown, password: unknown, more: object = {}): object => ({
  passwordHistory: null, id: 'x', organizationId: null, folderId: null, type: 1, reprompt: 0, name, notes: null,
  favorite: false,
  login: { uris: [{ match: null, uri: 'https://b.org/x' }, { uri: 'https://c.org' }], username, password, totp: null },
  ...more
})
const BITWARDEN = {
  encrypted: false, folders: [{ id: 'f', name: 'items' }], items: [
    item('a', 'ana', 'p"\\1'), item('', null, 'p2'), item('a note', null, null,
      { type: 2, login: undefined, secureNote: { type: 0 } }),
    item('trash', 'u', 'p3', { deletedDate: '2024-01-01T00:00:00Z' }),
    item(null, ['u'], 'p4', { login: { uris: null, username: null, password: 'p4' } })
  ]
}

test("Bitwarden's JSON: each item with a password, whatever surrounds them; what is in the trash is deleted", () => {
  const { format, rows } = sourceOf(JSON.stringify(BITWARDEN, null, 1))
  assert.equal(format, 'Bitwarden')
  assert.deepEqual(rows.map(({ entry }) => entry && Object.values(entry)), [
    ['p"\\1', 'a', 'ana', 'https://b.org/x', 1], ['p2', 'b.org', '-', 'https://b.org/x', 1], undefined,
    ['p3', 'trash', 'u', 'https://b.org/x', 0], ['p4', '-', '-', 1]
  ])
  assert.deepEqual(rows.map(({ line }) => line), [1, 2, 3, 4, 5], 'each by its place')
  assert.deepEqual(rows.map(({ dropped }) => [...dropped].sort()), [
    ['further address'], ['further address'], ['no password', 'note'], ['further address'], []
  ])
  const kept = item('a', 'u', 'p', {
    archivedDate: '2025-01-01T00:00:00Z', folderId: 'f', fields: [{ name: 'PIN', value: '1', type: 1 }],
    passwordHistory: [{ password: 'o' }],
    login: { uris: [], username: 'u', password: 'p', totp: 'otpauth://totp/x', fido2Credentials: [{}] }
  })
  assert.deepEqual(sourceOf(JSON.stringify({ encrypted: false, items: [kept] })).rows.map(({ dropped }) => dropped),
    [['former password', 'archived', 'other field', 'passkey', 'folder', 'one-time code']])
  const { items, ...others } = BITWARDEN
  assert.equal(sourceOf(`\ufeff${JSON.stringify({ items, more: { items: [1] }, ...others })}`).rows.length,
    items.length)
  assert.deepEqual(sourceOf('{"encrypted":false,"items":[]}').rows, [])
  for (const [text, why] of [
    [JSON.stringify({ encrypted: true, passwordProtected: true, data: 'SECRET' }),
      /is encrypted; export it again as \.json/],
    [JSON.stringify(BITWARDEN).replace('"items":[', '"items":[7,'), /^item 1: it is not an object$/],
    ['{"encrypted":false,"items":[{"login":{"password":{"SECRET":1}}}]}', /^item 1: password has an unknown form$/],
    ['{"encrypted":false,"items":[{"login":{"uris":"SECRET"}}]}', /^item 1: uris has an unknown form$/],
    ['{"encrypted":false,"items":[{"login":"SECRET"}]}', /^item 1: the object around \w+ has an unknown form$/],
    ['{"encrypted":false,"items":[{"name":7,"login":{"password":"SECRET"}}]}', /^item 1: name has an unknown form$/],
    ['{"encrypted":false,"items":{"SECRET":1}}', /^items has an unknown form; export it from Bitwarden again$/],
    ['{"encrypted":false,"folders":[SECRET],"items":[]}', /^byte 30: it has an unexpected character/],
    ['{"encrypted":false,"items":[{"name":"SECRET}]}', /^byte 46: it ends in a string$/],
    ['{"logins":[{"SECRET":1}]}',
      /^line 1: this object has no member password; known are .* \.json of Bitwarden \(Tools, Export vault\)/]
  ] as const) {
    assert.throws(() => sourceOf(text), (error: Error) => {
      assert.match(error.message, why)
      return !error.message.includes('SECRET')
    })
  }
})

const A = { id: 3, password: 'p', sistema: 's', usuario: 'u', status: 1 }
const B = { ...A, id: 7, status: 0 }
const { id: _a, ...ENTRY_A } = A
const { id: _b, ...ENTRY_B } = B

test('JSON lines, a JSON array and CSV of this program: each is an entry, deleted ones too', () => {
  const rowsOf = (...lines: readonly [number, number]): unknown =>
    [ENTRY_A, ENTRY_B].map((entry, i) => ({ line: lines[i], entry, isOwn: true, dropped: [] }))
  const lines = `${JSON.stringify(A)}\r\n\n ${JSON.stringify(B)} `
  assert.deepEqual(sourceOf(lines), { format: 'this program', rows: rowsOf(1, 3) })
  assert.deepEqual(sourceOf(JSON.stringify({ ...A, more: {} })).rows[0]!.dropped, ['other member'])
  assert.deepEqual(sourceOf(`\ufeff${lines}`).rows, rowsOf(1, 3), 'with a byte order mark')
  assert.deepEqual(sourceOf(JSON.stringify([A, B])).rows, rowsOf(1, 2))
  assert.deepEqual(sourceOf(`\ufeff${JSON.stringify([A, B], null, 1)}`).rows, rowsOf(1, 2))
  const csv = 'id,sistema,usuario,password,status\n3,s,u,p,1\n7,s,u,p,0\n'
  assert.deepEqual(sourceOf(csv), { format: 'this program', rows: rowsOf(2, 3) })
  for (const [columns, rows] of [['status,sistema,usuario,password', '1,s,u,p\n0,s,u,p'],
    ['sistema,usuario,password,notes,status', 's,u,p,,\ns,u,p,,0']]) {
    assert.deepEqual(sourceOf(`${columns}\n${rows}`).rows.map(({ entry }) => entry), [ENTRY_A, ENTRY_B],
      'in another order')
  }
  const { status: _, ...fields } = ENTRY_A
  assert.deepEqual(sourceOf(`${JSON.stringify(fields)}\n${JSON.stringify(fields)}`).rows.map(seenOf),
    [1, 2].map(line => ({ line, entry: ENTRY_A, dropped: [] })), 'without id and status')
  for (const names of ['system,user,password', 'sistema,user,password', 'system,usuario,password']) {
    assert.deepEqual(sourceOf(`${names}\ns,u,p\n`).rows.map(({ entry }) => entry), [ENTRY_A], names)
  }
  assert.deepEqual(sourceOf('{"system":"s","user":"u","password":"p"}').rows.map(({ entry }) => entry), [ENTRY_A])
})

test('what KeePass only refers to is no password', () => {
  const rows = sourceOf('"Account","Login Name","Password","Web ' +
    'Site","Comments"\n"a","u","{REF:P@I:0123}","",""\n"b","{REF:U@I:0123}","p","",""\n').rows
  assert.deepEqual(rows.map(({ entry, dropped }) => [entry?.password, dropped]),
    [[undefined, ['placeholder']], ['p', ['placeholder']]])
})

test('a malformed file of this program is refused by its line, and the message never quotes the file', () => {
  const a = JSON.stringify(A)
  const csv = 'id,sistema,usuario,password,status\n3,s,u,p,1\n'
  const wrong: readonly (readonly [text: string | Buffer, message: RegExp])[] = [
    [`${a}\n{"id":4,"password":"SECRET`, /^line 2, byte 26: it ends in a string$/],
    [Buffer.concat([Buffer.from(`${a}\n`), Buffer.from('{"password":"SECRET\xff"}', 'latin1')]),
      /^line 2: it is not valid UTF-8$/],
    [`\ufeff{"id":4,"password":"SECRET`, /^byte 26: it ends in a string$/],
    [`${a}\n\ufeff${a}`, /^line 2, byte 0: it /],
    [`${a}\n["SECRET"]`, /^line 2: it is not an object$/],
    [`${a}\n\0\0\0\0`, /^line 2, byte 0: it /],
    ['\0\0\0\0', /^its first line names no known column; known are/],
    [`${a}\n\n{"id":4,"password":["SECRET"],"sistema":"","status":2}`,
      /^line 3: The password field must be a string. /],
    [`${a}\n${a}`, /^line 2: the ids do not ascend/],
    [`{"a":${'['.repeat(70)}`, /^byte 68: it nests deeper/],
    [`${csv}3,SECRET,u,p,1`, /^line 3: the ids do not ascend/],
    [`${csv}04,SECRET,u,p,1`, /^line 3: The id field must be a number/],
    [`${csv}4,SECRET,,p,1`, /^line 3: The usuario field is required.$/],
    [`${csv}4,SECRET,u,p,true`, /^line 3: The status field must be 0 or 1.$/],
    [`${csv}4,"SECRET`, /line 3, column 3: a quote that is not closed$/],
    ['sistema,usuario,password,status\nSECRET,u,p,deleted', /^line 2: status must be 1, or 0 if it is deleted$/],
    ['sistema,usuario,password,password\n', /^its first line has two columns password; leave one of them out$/],
    ['sistema,status,usuario,password,status\n', /^its first line has two columns status;/],
    ['id,sistema,usuario,password,password,status\n', /^its first line has two columns password;/],
    ['', /nothing in it to import$/],
    ['\n\n', /nothing in it to import$/],
    ['SECRET;name;url', joined(/its first line names no known column; .*Chrome.* Bitwarden/,
      /.*any CSV with the columns system, user and password/)],
    ['SECRET,name,url', /its first line is no known header: \?,name,url;/],
    [Buffer.from('03d9a29a67fb4bb5', 'hex'), /^this is a KeePass database: export it as CSV first$/],
    ['<KeePassFile>SECRET</KeePassFile>', /^this is XML; known are/],
    ['"SECRET";"url"', /text after a closing quote/],
    ['id,password,sistema,status\n', /is no known header: \?,password,sistema,\?;/]
  ]
  for (const [text, message] of wrong) {
    assert.throws(() => sourceOf(text), (error: Error) => {
      assert.match(error.message, message)
      return !error.message.includes('SECRET')
    })
  }
})
