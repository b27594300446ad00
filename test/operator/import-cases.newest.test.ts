/** Files that programs were seen to write and that are easily read wrongly, each with what is right. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it, test } from 'node:test'
import { readSource } from '../../src/parts/operator/transfer/import-formats.ts'
import type { Row, Source } from '../../src/parts/operator/transfer/import-row.ts'
import { joined } from '../support/patterns.ts'
import { randomOf } from '../support/random.ts'

interface Case {
  readonly what: string
  readonly file: string | Buffer
  readonly format?: string
  /** Each entry by its line, `status` left out where it is 1. */
  readonly entries?: { readonly [line: number]: object }
  /** By line, what is not kept; all of it. */
  readonly loses?: { readonly [line: number]: readonly string[] }
  /** Instead of all this: the file is refused. */
  readonly refused?: RegExp
}

const PROTON = 'type,name,url,autofillUrls,email,username,password,note,totp,createTime,modifyTime,vault\n'
const LASTPASS = 'url,username,password,totp,extra,name,grouping,fav\n'
const CHROME = 'name,url,username,password,note\n'
const KEEPASS = '"Group","Title","Username","Password","URL","Notes"\n'
const OTP = 'JBSWY3DPEHPK3PXP'
const bitwarden = (...items: readonly object[]): string => JSON.stringify({ encrypted: false, folders: [], items })
const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le')

const WITHOUT_GROUPS: readonly Case[] = [
  {
    what: 'Proton Pass with two addresses in a cell', format: 'Proton Pass',
    file: `${PROTON}login,Shop,"https://a.example/, https://b.example/",` +
      '"[{""url"":""https://a.example/"",""mode"":1},{""url"":""https://b.example/"",""mode"":1}]",' +
      'ann@mail.example,ann,pw-1,,,1700000000,1700000000,Home\n' +
      'login,One,https://c.example/,"[{""url"":""https://c.example/"",""mode"":1}]",bob@mail.example,,' +
      'pw-2,,,1700000000,1700000000,Home\nalias,Al,,,al.x@alias.example,,,,,1700000000,1700000000,Home\n',
    entries: {
      2: { password: 'pw-1', sistema: 'Shop', usuario: 'ann', url: 'https://a.example/' },
      3: { password: 'pw-2', sistema: 'One', usuario: 'bob@mail.example', url: 'https://c.example/' }
    },
    loses: { 2: ['folder', 'further address', 'further user name'], 3: ['folder'], 4: ['folder', 'no password'] }
  },
  {
    what: 'Proton Pass with plain text for the addresses to fill in', format: 'Proton Pass',
    file: `${PROTON}login,Shop,https://a.example/,https://b.example/,,ann,pw-1,,,1700000000,1700000000,\n`,
    entries: { 2: { password: 'pw-1', sistema: 'Shop', usuario: 'ann', url: 'https://a.example/' } },
    loses: { 2: ['further address'] }
  },
  {
    what: 'Bitwarden with two addresses in a cell, archived', format: 'Bitwarden',
    file: 'folder,favorite,type,name,notes,fields,reprompt,archivedDate,' +
      'login_uri,login_username,login_password,login_totp\n' +
      'Work,1,login,Shop,"l1\r\nl2\nl3",pin: ' +
        '1234,0,2026-01-02T03:04:05.000Z,"https://a.example,https://b.example",ann,pw-1,\n',
    entries: { 2: { password: 'pw-1', sistema: 'Shop', usuario: 'ann', url: 'https://a.example',
      notas: 'l1\r\nl2\nl3' } },
    loses: { 2: ['archived', 'folder', 'further address', 'other field'] }
  },
  {
    what: 'an address with a comma in it', format: 'Bitwarden',
    file: 'folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp\n' +
      ',,login,Map,,,0,"https://a.example/?at=1,2",ann,pw-1,\n',
    entries: { 2: { password: 'pw-1', sistema: 'Map', usuario: 'ann', url: 'https://a.example/?at=1,2' } }
  },
  {
    what: 'Bitwarden without `encrypted`', format: 'Bitwarden',
    file: JSON.stringify({ folders: [], items: [{ type: 1, name: 'Shop', folderId: null, notes: null,
      collectionIds: null,
      login: { uris: [{ match: null, uri: 'https://a.example' }], username: 'ann', password: 'pw-1', totp: null } }] }),
    entries: { 1: { password: 'pw-1', sistema: 'Shop', usuario: 'ann', url: 'https://a.example' } }
  },
  {
    what: 'Bitwarden whose first address is empty', format: 'Bitwarden',
    file: bitwarden(
      { type: 1, name: 'A', login: { username: 'u', password: 'p',
        uris: [{ match: null, uri: '' }, { match: 0, uri: 'https://b.example' }] } },
      { type: 1, name: 'B', archivedDate: '2026-01-01T00:00:00Z', deletedDate: '2026-01-02T00:00:00Z',
        login: { username: 'u', password: 'p2', fido2Credentials: [{ credentialId: 'x' }] },
        passwordHistory: [{ password: 'old' }] },
      { type: 4, name: 'Id', identity: { username: 'iu' } },
      { type: 3, name: 'C', card: { number: '4111', code: '1' }, notes: 'n' }),
    entries: {
      1: { password: 'p', sistema: 'A', usuario: 'u', url: 'https://b.example' },
      2: { password: 'p2', sistema: 'B', usuario: 'u', status: 0 }
    },
    loses: { 2: ['archived', 'former password', 'passkey'], 3: ['identity', 'no password'],
      4: ['card', 'no password', 'note'] }
  },
  {
    what: 'our own export for Bitwarden, with values that KeePass and LastPass would mean otherwise',
    format: 'Bitwarden',
    file: JSON.stringify({ encrypted: false, generator: 'password-entry-service', folders: [], items: [
      { type: 1, name: '{REF:T@I:1}', login: { uris: [{ uri: 'http://sn' }], username: '{REF:U@I:1}',
        password: '{REF:P@I:1}' } }
    ] }),
    entries: { 1: { password: '{REF:P@I:1}', sistema: '{REF:T@I:1}', usuario: '{REF:U@I:1}', url: 'http://sn' } }
  },
  {
    what: 'Chrome with values that KeePass and LastPass would mean otherwise', format: 'Chrome',
    file: `${CHROME}a,http://sn,u,{REF:P@I:1},\n`,
    entries: { 2: { password: '{REF:P@I:1}', sistema: 'a', usuario: 'u', url: 'http://sn' } }
  },
  {
    what: 'a spreadsheet with capitals in its header', format: 'CSV',
    file: 'System,User,Password,URL,Notes\nShop,ann,pw-1,https://a.example,n\n',
    entries: { 2: { password: 'pw-1', sistema: 'Shop', usuario: 'ann', url: 'https://a.example', notas: 'n' } }
  },
  {
    what: 'a spreadsheet with a comment', format: 'CSV',
    file: '"Title","Username","Password","URL","Comment"\n' +
      '"Gmail","ann@mail.example","pw-1","https://a.example","keep me"\n',
    entries: { 2: { password: 'pw-1', sistema: 'Gmail', usuario: 'ann@mail.example', url: 'https://a.example',
      notas: 'keep me' } }
  },
  {
    what: 'a spreadsheet with columns of which nothing is known, and 0 as a value', format: 'CSV',
    file: 'system,user,password,type,id,pin\nShop,ann,pw-1,mysql,77,0\n',
    entries: { 2: { password: 'pw-1', sistema: 'Shop', usuario: 'ann' } }, loses: { 2: ['column pin', 'column type'] }
  },
  {
    what: 'a spreadsheet of Excel, which says its separator', format: 'CSV',
    file: 'sep=;\r\nsystem;user;password\r\na;b;c\r\n',
    entries: { 3: { password: 'c', sistema: 'a', usuario: 'b' } }
  },
  {
    what: 'Safari of 2021', format: 'Apple',
    file: 'Title,Url,Username,Password\nShop (ann),https://a.example/,ann,pw-1\n',
    entries: { 2: { password: 'pw-1', sistema: 'Shop (ann)', usuario: 'ann', url: 'https://a.example/' } }
  },
  {
    what: 'LastPass with a server, whose password stands in its note', format: 'LastPass',
    file: `${LASTPASS}http://sn,,,,"NoteType:Server\n` +
      'Hostname:h.example\nUsername:root\nPassword:pw-9\nNotes:",srv,,0\n' +
      'https://a.example,ann,pw-1,,,(none),,0\n',
    entries: { 7: { password: 'pw-1', sistema: '(none)', usuario: 'ann', url: 'https://a.example' } },
    loses: { 2: ['note of several values, a password among them'] }
  },
  {
    what: 'one-time codes, also of a form that an entry cannot have', format: 'LastPass',
    file: `${LASTPASS}https://a.example,ann,pw-1,${OTP},,A,,0\n` +
      `https://b.example,ann,pw-2,steam://${OTP},,B,,0\nhttp://sn,,,${OTP},,C,,0\n`,
    entries: {
      2: { password: 'pw-1', sistema: 'A', usuario: 'ann', url: 'https://a.example', otp: OTP },
      3: { password: 'pw-2', sistema: 'B', usuario: 'ann', url: 'https://b.example' }
    },
    loses: { 3: ['one-time code'], 4: ['no password', 'one-time code'] }
  },
  {
    what: "Firefox's own keys, which are no login", format: 'Firefox',
    file: '"url","username","password","httpRealm","formActionOrigin","guid","timeCreated"\n' +
      '"chrome://FirefoxAccounts","0123abcd","{""version"":1}","Firefox Accounts credentials",,"{1}","1"\n' +
      '"https://a.example","ann","pw-1",,"https://login.a.example","{2}","1"\n',
    entries: { 3: { password: 'pw-1', sistema: 'a.example', usuario: 'ann', url: 'https://a.example' } },
    loses: { 2: ['keys of a Firefox account'], 3: ['further address'] }
  },
  {
    what: 'what only KeePass replaces by a value; braces alone are a password', format: 'KeePassXC',
    file: `${KEEPASS}"","a","{REF:U@I:00}","{S:x}{USERNAME}","cmd://ssh {USERNAME}@h",""\n` +
      '"","b","{USERNAME}","pw","",""\n"","c","u","{T-REPLACE-RX:/{S:a}/b/c/}","",""\n"","d","u","{S:Pin}","",""\n' +
      '"","e","u","{timeotp}","",""\n"","f","u","{URL:HOST}","",""\n"","g","u","{Umbrella}{}","",""\n' +
      '"","h","u","p","{BASE:RMVSCM}",""\n',
    entries: {
      3: { password: 'pw', sistema: 'b', usuario: '{USERNAME}' },
      8: { password: '{Umbrella}{}', sistema: 'g', usuario: 'u' },
      9: { password: 'p', sistema: 'h', usuario: 'u', url: '{BASE:RMVSCM}' }
    },
    loses: { 2: ['address', 'placeholder'],
      ...Object.fromEntries([3, 4, 5, 6, 7, 9].map(line => [line, ['placeholder']])) }
  },
  {
    what: 'words in a column of secrets, which are none; blanks, dashes and small letters are taken', format: 'CSV',
    file: 'system,user,password,otp\nA,u,p,none\nB,u,p,NULL\nC,u,p,-\nD,u,p,no\nE,u,p,123456\nF,u,p,222222\n' +
      'G,u,p,jbsw-y3dp ehpk-3pxp\nH,u,p,OTPAUTH://totp/x?secret=JBSWY3DPEHPK3PXP\n',
    entries: Object.fromEntries(['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'].map((sistema, i) => [i + 2, {
      password: 'p', sistema, usuario: 'u', ...i === 6 && { otp: 'jbsw-y3dp ehpk-3pxp' },
      ...i === 7 && { otp: 'OTPAUTH://totp/x?secret=JBSWY3DPEHPK3PXP' }
    }])),
    loses: Object.fromEntries([2, 3, 4, 5, 6, 7].map(line => [line, ['one-time code']]))
  },
  {
    what: 'null as a secret of Dashlane', format: 'Dashlane',
    file: 'username,username2,username3,title,password,note,url,category,otp\n' +
      'ann,,,Shop,pw-1,,https://a.example,,null\n',
    entries: { 2: { password: 'pw-1', sistema: 'Shop', usuario: 'ann', url: 'https://a.example' } },
    loses: { 2: ['one-time code'] }
  },
  {
    what: 'two columns for one thing: the first that has a value, and of the other what is another', format: 'CSV',
    file: 'system,title,user,username,password,url\nERP,Accounting,ann,ann@a.example,pw-1,https://a.example\n' +
      ',Only title,,bob,pw-2,\nA,A,u,u,pw-3,\n',
    entries: {
      2: { password: 'pw-1', sistema: 'ERP', usuario: 'ann', url: 'https://a.example' },
      3: { password: 'pw-2', sistema: 'Only title', usuario: 'bob' },
      4: { password: 'pw-3', sistema: 'A', usuario: 'u' }
    },
    loses: { 2: ['column title', 'further user name'] }
  },
  {
    what: 'two members for one thing; words for a secret', format: 'this program',
    file: '{"system":"ERP","sistema":"Accounting","user":"ann","usuario":"ann@a.example","password":"pw-1"}\n' +
      '{"system":"A","sistema":"A","user":"u","usuario":"","password":"pw-2","otp":"none"}\n' +
      '{"id":7,"sistema":"B","usuario":"u","password":"pw-3","otp":"MZXW6"}\n',
    entries: {
      1: { password: 'pw-1', sistema: 'Accounting', usuario: 'ann@a.example' },
      2: { password: 'pw-2', sistema: 'A', usuario: 'u' },
      3: { password: 'pw-3', sistema: 'B', usuario: 'u', otp: 'MZXW6' }
    },
    loses: { 1: ['other member', 'other member'], 2: ['one-time code'] }
  },
  {
    what: '0 and false in a column that an entry has no place for, and a column of types that has something else',
    format: 'Proton Pass',
    file: 'type,name,url,email,username,password,note,totp,createTime,modifyTime,vault,pin\n' +
      'login,A,,,u,p,,,1,1,,0\nServers,B,,,u,p,,,1,1,,false\nlogin,C,,,u,p,,,1,1,,\n',
    entries: Object.fromEntries(['A', 'B', 'C'].map((sistema, i) => [i + 2, { password: 'p', sistema, usuario: 'u' }])),
    loses: { 2: ['column pin'], 3: ['column pin', 'column type'] }
  },
  ...(['Title,Username,Password,URL,Notes', 'title,url,username,password,website',
    'Title,URL,Username,Password,Favorite',
    'username,title,password,url', 'url,username,password,name', 'name,folder,url,username,password'] as const)
    .map(header => ({
      what: `a spreadsheet with the columns ${header}, which several programs write`, format: 'CSV',
      file: `${header}\n${header.toLowerCase().replace(/\burl\b/, 'https://a')}\n`,
      entries: { 2: {
        password: 'password', sistema: header.startsWith('url') || header.startsWith('name') ? 'name' : 'title',
        usuario: 'username', url: 'https://a', ...header.includes('Notes') && { notas: 'notes' }
      } },
      loses: Object.fromEntries([['folder', 'folder'], ['website', 'further address'], ['Favorite', 'column Favorite']]
        .filter(([column]) => header.includes(column!)).map(([, kind]) => [2, [kind!]]))
    })),
  { what: 'a row that is too short', file: `${CHROME}Shop,https://a.example,ann,pw-1\n`,
    refused: joined(/^the file is not valid CSV .*: line 2, column 1: 4 cells, where .* has 5; /,
      /if its last cells are empty, add 1 comma at its end$/) },
  { what: 'a row that is much too short, of semicolons', file: 'system;user;password;url\na;b\n',
    refused: /add 2 semicolons at its end$/ },
  { what: 'a row that is too long', file: `${CHROME}a,b,c,d,e,f\n`, refused: /6 cells, where the first row has 5$/ },
  { what: 'the JSON of Enpass',
    file: '{"folders":[],"items":[{"title":"Shop","category":"login","fields":[{"type":"password","value":"pw-1"}]}]}',
    refused: /^this JSON is of no known program: export it there as CSV$/ },
  { what: 'the JSON of Proton Pass',
    file: '{"encrypted":false,"userId":"u","version":"1.8.0","vaults":{"v":{"name":"Home","items":[]}}}',
    refused: /^this is the JSON of Proton Pass: export it as CSV$/ },
  { what: 'the encrypted JSON of Bitwarden', file: '{"encrypted":true,"encKeyValidation_DO_NOT_EDIT":"x"}',
    refused: /^this export of Bitwarden is encrypted/ },
  { what: 'what is in a 1PUX file',
    file: '{"accounts":[{"attrs":{"name":"x"},"vaults":[{"attrs":{"name":"v"},"items":[]}]}]}',
    refused: /1PUX file of 1Password: export it as CSV$/ },
  { what: 'the Credential Exchange Format, which has accounts, too',
    file: '{"version":{"major":1,"minor":0},"exporterRpId":"e.example","exporterDisplayName":"E",' +
      '"accounts":[{"id":"YQ",' +
      '"username":"ann","items":[{"id":"Yg","title":"Shop","credentials":[{"type":"basic-auth"}]}]}]}',
    refused: /^this is a file of the Credential Exchange Format: export it as CSV from the program that wrote it$/ },
  { what: 'encrypted JSON of nobody that is known',
    file: '{"encrypted":true,"passwords":[{"website":"a","username":"b","password":"c"}]}',
    refused: /^this JSON says that it is encrypted, .* no known program: export it there as CSV, not encrypted$/ },
  { what: 'accounts of nobody that is known', file: '{"accounts":[{"name":"a"}]}',
    refused: /^this JSON is of no known program: export it there as CSV$/ },
  { what: 'a 1PUX file', file: Buffer.from('PK\x03\x04…export.attributes…export.data'),
    refused: /^this is a 1PUX file of 1Password: export it as CSV$/ },
  { what: 'the zip file of Proton Pass', file: Buffer.from('PK\x03\x04…Proton Pass/data.json'),
    refused: /Proton Pass: export it as CSV$/ },
  { what: 'UTF-16 with a byte order mark', file: utf16('\ufeffsystem,user,password\na,b,c\n'),
    refused: /^this is UTF-16: save it as CSV in UTF-8/ },
  { what: 'UTF-16 without one', file: utf16('system,user,password\na,b,c\n'), refused: /^this is UTF-16/ }
]

const WITH_GROUPS: readonly Case[] = [
  {
    what: 'the folders and collections of Bitwarden; of several the first', format: 'Bitwarden',
    file: JSON.stringify({
      encrypted: false, folders: [{ id: 'f', name: 'Work/Mail' }], collections: [{ id: 'c', name: 'Shared' }],
      items: [
        { type: 1, name: 'A', folderId: 'f', login: { username: 'u', password: 'p' } },
        { type: 1, name: 'B', folderId: null, collectionIds: ['c', 'f'], login: { username: 'u', password: 'p' } },
        { type: 1, name: 'C', folderId: 'gone', login: { username: 'u', password: 'p' } }
      ]
    }),
    entries: {
      1: { password: 'p', sistema: 'A', usuario: 'u', grupo: 'Work/Mail' },
      2: { password: 'p', sistema: 'B', usuario: 'u', grupo: 'Shared' },
      3: { password: 'p', sistema: 'C', usuario: 'u' }
    },
    loses: { 2: ['further folder'], 3: ['folder'] }
  },
  {
    // After the fixtures of another importer, which names the same title, user name and groups.
    what: 'an older export of Bitwarden, which says nothing of encryption, and whose folders differ in letter case',
      format: 'Bitwarden',
    file: JSON.stringify({
      folders: [{ id: 'x', name: 'Test/Subfolder' }, { id: 'y', name: 'Test/SubFolder/Another' }],
      items: [
        { type: 2, name: 'My Secure Note', folderId: 'x', notes: '1st line', secureNote: { type: 0 },
          collectionIds: [null] },
        {
          type: 1, name: 'Login Name', folderId: 'x', notes: '1st line\n2nd line', favorite: true,
          collectionIds: [null],
          fields: [{ name: 'Hidden Field', value: 'hidden-field-value', type: 1 }],
          login: {
            uris: ['https://mail.google.com', 'https://google.com', 'https://gmail.com'].map(uri =>
              ({ match: null, uri })),
            username: 'myusername@gmail.com', password: 'mypassword',
            totp: 'otpauth://totp/Google:myusername%40gmail.com?secret=DFDFDEFDFDFDEFDF%3D&period=30&digits=6'
          }
        },
        { type: 1, name: 'Webauthn.io test 3', folderId: 'y',
          login: { uris: [], username: 'testUser3', password: 'testPassword3' } }
      ]
    }),
    entries: {
      2: {
        password: 'mypassword', sistema: 'Login Name', usuario: 'myusername@gmail.com', url: 'https://mail.google.com',
        notas: '1st line\n2nd line', grupo: 'Test/Subfolder',
        otp: 'otpauth://totp/Google:myusername%40gmail.com?secret=DFDFDEFDFDFDEFDF%3D&period=30&digits=6'
      },
      3: { password: 'testPassword3', sistema: 'Webauthn.io test 3', usuario: 'testUser3',
        grupo: 'Test/SubFolder/Another' }
    },
    loses: { 1: ['folder', 'no password', 'note'], 2: ['further address', 'other field'] }
  },
  {
    what: 'the groups of KeePassXC without the root', format: 'KeePassXC',
    file: 'Group,Title,Username,Password,URL,Notes,TOTP\nRoot/Net/Mail,A,u,p,,,\nRoot,B,u,p,,,\n',
    entries: { 2: { password: 'p', sistema: 'A', usuario: 'u', grupo: 'Net/Mail' },
      3: { password: 'p', sistema: 'B', usuario: 'u' } },
    loses: { 2: ['root group Root'], 3: ['root group Root'] }
  },
  {
    what: 'the folders of LastPass; (none) is none, and what cannot be a name is counted', format: 'LastPass',
    file: `${LASTPASS}https://a.example,ann,pw-1,,,A,Work,0\nhttps://b.example,ann,pw-2,,,B,(none),0\n` +
      'https://c.example,ann,pw-3,,,C,"a,b",0\n',
    entries: {
      2: { password: 'pw-1', sistema: 'A', usuario: 'ann', url: 'https://a.example', grupo: 'Work' },
      3: { password: 'pw-2', sistema: 'B', usuario: 'ann', url: 'https://b.example' },
      4: { password: 'pw-3', sistema: 'C', usuario: 'ann', url: 'https://c.example' }
    },
    loses: { 4: ['folder'] }
  },
  {
    what: 'vaults of Proton Pass, one with a character that is not seen in its name', format: 'Proton Pass',
    file: `${PROTON}login,A,,,,u,p,,,1,1,Ho\u3164me\nlogin,B,,,,u,p,,,1,1,Home\n`,
    entries: { 2: { password: 'p', sistema: 'A', usuario: 'u' },
      3: { password: 'p', sistema: 'B', usuario: 'u', grupo: 'Home' } },
    loses: { 2: ['folder'] }
  },
  {
    what: 'the vaults of Proton Pass', format: 'Proton Pass',
    file: `${PROTON}login,A,,,,u,p,,,1,1,Home\nnote,N,,,,,,text,,1,1,Home\n`,
    entries: { 2: { password: 'p', sistema: 'A', usuario: 'u', grupo: 'Home' } },
    loses: { 3: ['folder', 'no password', 'note'] }
  },
  {
    what: 'the recycle bin of KeePassXC, which stays out; a name that is too long for a group; codes of another form',
    format: 'KeePassXC',
    file: `${KEEPASS}"Passwords/Recycle Bin","a","ann","pw-1","",""\n` +
      `"Passwords/Recycle Bin/Old","b","ann","pw-2","","n"\n` +
      `"Passwords/${Array(7).fill('Department').join('/')}","c","ann","pw-3","",""\n` +
      '"Passwords/A","d","ann","pw-4","",""\n"Passwords/A/Recycle Bin","e","ann","pw-5","",""\n',
    entries: {
      4: { password: 'pw-3', sistema: 'c', usuario: 'ann' },
      5: { password: 'pw-4', sistema: 'd', usuario: 'ann', grupo: 'A' },
      6: { password: 'pw-5', sistema: 'e', usuario: 'ann', grupo: 'A/Recycle Bin' }
    },
    loses: {
      2: ['in a group Recycle Bin'], 3: ['in a group Recycle Bin'], 4: ['folder', 'root group Passwords'],
      5: ['root group Passwords'], 6: ['root group Passwords']
    }
  },
  {
    what: 'a root of KeePassXC with a slash in its name, of which one row does not tell', format: 'KeePassXC',
    file: `${KEEPASS}"Team/IT","a","ann","pw-1","",""\n"Team/IT/Web","b","ann","pw-1","",""\n`,
    entries: {
      2: { password: 'pw-1', sistema: 'a', usuario: 'ann', grupo: 'IT' },
      3: { password: 'pw-1', sistema: 'b', usuario: 'ann', grupo: 'IT/Web' }
    },
    loses: { 2: ['root group Team'], 3: ['root group Team'] }
  },
  {
    what: 'several collections in a cell of Bitwarden: the first, and the others are counted', format: 'Bitwarden',
    file: 'collections,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp\n' +
      `"Servers,Office",login,Shop,,,0,https://a.example,ann,pw-1,${OTP}\nServers,login,Two,,,0,,bob,pw-2,\n`,
    entries: {
      2: { password: 'pw-1', sistema: 'Shop', usuario: 'ann', url: 'https://a.example', grupo: 'Servers', otp: OTP },
      3: { password: 'pw-2', sistema: 'Two', usuario: 'bob', grupo: 'Servers' }
    },
    loses: { 2: ['further folder'] }
  },
  {
    what: 'the group of a spreadsheet', format: 'CSV', file: 'system,user,password,group\nA,u,p,Ops\n',
    entries: { 2: { password: 'p', sistema: 'A', usuario: 'u', grupo: 'Ops' } }
  }
]

function holds({ file, format, entries = {}, loses = {}, refused }: Case, keepsGroups: boolean): void {
  const read = (): Source => {
    const source = readSource(Buffer.from(file as string), keepsGroups)
    return { ...source, rows: [...source.rows] }
  }
  if (refused !== undefined) return assert.throws(read, ({ message }: Error) => refused.test(message) ||
    assert.fail(message))
  const source = read()
  const rows = [...source.rows]
  assert.equal(source.format, format)
  const made = rows.flatMap(({ line, entry }) => entry === undefined ? [] : [[line, entry] as const])
  assert.deepEqual(Object.fromEntries(made), Object.fromEntries(Object.entries(entries).map(([line, entry]) => [line,
    { status: 1, ...entry }])))
  const lost = rows.filter(({ dropped }) => dropped.length > 0).map(({ line, dropped }) => [line, [...dropped].sort()])
  assert.deepEqual(Object.fromEntries(lost), loses)
}

const HEADERS: readonly string[] = [
  'name,url,username,password,note',
  'collections,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp',
  'folder,favorite,type,name,notes,fields,reprompt,archivedDate,login_uri,login_username,login_password,login_totp',
  'url,username,password,httpRealm,formActionOrigin,guid,timeCreated,timeLastUsed,timePasswordChanged',
  'Group,Title,Username,Password,URL,Notes,TOTP,Icon,Last Modified,Created',
  'Account,Login Name,Password,Web Site,Comments',
  'Title,Url,Username,Password,OTPAuth,Favorite,Archived,Tags,Notes',
  'Title,Url,Website,Username,Password,Favorite,Archived,Tags',
  'Title,URL,Username,Password,Notes,OTPAuth', 'url,username,password,totp,extra,name,grouping,fav',
  'type,name,url,autofillUrls,email,username,password,note,totp,createTime,modifyTime,vault',
  'username,username2,username3,title,password,note,url,category,otpSecret',
  'name,url,additional_urls,username,password,note,cardholdername,cardnumber,cvc,folder,email,type,custom_fields',
  'system,title,sistema,user,username,password,url,website,notes,comment,group,folder,otp,totp,Type,id,pin,email'
]
const PASSWORDS = ['password', 'login_password']

test('each value of a row is in the entry or is counted: a mark in each cell, in thousands of rows', t => {
  const random = randomOf(t)
  const kinds = new Set<string>()
  for (let i = 0; i < 3_200; i++) {
    const names = random.pick(HEADERS).split(',')
    const marks = names.map((name, at) =>
      PASSWORDS.includes(name.toLowerCase()) || random.int(2) === 0 ? `mark-${at}x` : '')
    const keepsGroups = random.int(2) === 0
    const rowOf = (cells: readonly string[]): Row => {
      const source = readSource(Buffer.from(`${names.join(',')}\n${cells.join(',')}\n`), keepsGroups)
      kinds.add(source.format)
      return [...source.rows][0]!
    }
    const held = (row: Row): ReadonlySet<string> => new Set(marks.filter(mark => mark !== '' &&
      Object.values(row.entry!).some(value => String(value).includes(mark))))
    const kept = held(rowOf(marks))
    for (const lost of marks.filter(mark => mark !== '' && !kept.has(mark))) {
      // Beside what was kept, this value alone: so nothing else can be what is counted.
      const row = rowOf(marks.map(mark => kept.has(mark) || mark === lost ? mark : ''))
      assert.ok(held(row).has(lost) || row.dropped.length > 0, `${names.join(',')}: ${lost} of ${marks.join(',')}`)
    }
  }
  assert.equal(kinds.size, 12)
})

describe('an import reads, without groups,', () => {
  for (const one of WITHOUT_GROUPS) it(one.what, () => holds(one, false))
})

describe('an import reads', () => {
  for (const one of WITH_GROUPS) it(one.what, () => holds(one, true))
})
