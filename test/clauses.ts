/**
 * The contract, clause by clause, each with the code that keeps it and the tests that hold it. `npm run clauses`
 * writes the table into the README; `clauses.test.ts` holds it to the sources and to the names of the tests.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** A sentence of the contract. */
export interface Clause {
  readonly section: string
  readonly says: string
  /** Where it is kept: a file of `src` and a word in it. */
  readonly code: readonly (readonly [path: string, word: string])[]
  /** How the names of the tests begin that hold it. */
  readonly tests: readonly string[]
}

function clause(
  section: string, says: string, code: readonly (readonly [path: string, word: string])[], ...tests: readonly string[]
): Clause {
  return { section, says, code, tests }
}

const ENTRIES = 'api/entries.ts'
const ANSWERS = 'api/answers.ts'
const SESSION = 'api/session.ts'
const PIPELINE = 'api/pipeline.ts'
const ACCOUNTS = 'store/accounts.ts'

/** Every clause that asks for something; what the contract leaves open ("not shown") is in the README's own tables. */
export const CLAUSES: readonly Clause[] = [
  clause('1', 'Five operations, all under `/api`.', [[ENTRIES, 'OPERATIONS']], '§1 the five operations',
    '§4 the five operations', 'the example shows each of the five operations'),
  clause('1', 'Requests with a body send JSON; responses are JSON.',
    [['http/head.ts', 'isJson'], ['http/reply.ts', 'JSON_KIND']],
    'a body of another content type', 'every answer is JSON'),
  clause('1', 'Every object carries `status`, equal to the HTTP status; not the list, nor the 429.',
    [['http/reply.ts', 'said'], [ANSWERS, 'TOO_MANY']], '§1, §7 every object says the status'),
  clause('1', 'Message texts are exactly as given, in their original language.',
    [[ENTRIES, 'CREATED'], [ANSWERS, 'invalid'], [SESSION, 'LOGGED_OUT']],
    '§4.1 list: nothing', '§4.2 get: an unknown id', '§4.3 create: a message', '§4.3 create: what fails is named',
    '§4.4 update: any combination', '§4.5 delete: the entry leaves the list', '§4.3, §7 storing fails',
    '§5.3 login: 401', '§5.4 logout revokes the very token', '§8.2 by default 60'),
  clause('1', 'Deletion is soft.', [['store/store.ts', 'deleteEntry']], '§4.5 delete: the entry leaves the list'),
  clause('1', 'By default no authentication.',
    [['serving.ts', 'isProtected']], '§5.1 by default nothing asks for a token'),
  clause('2', 'An entry has `id`, `password`, `sistema`, `usuario`, `status`.', [['store/record.ts', 'Entry']],
    '§4.2 get: an entry with all five fields'),
  clause('2', '`id` is a unique integer, assigned by the service.',
    [['store/store.ts', 'createEntry'], ['store/state.ts', 'isNext']],
    "§3 a deleted entry's id is not given again", 'unknown fields, and an id or status, are ignored'),
  clause('2', 'The values are stored and returned as given.', [['store/entries.ts', 'entryText']],
    'text is kept as it was given', 'whatever the text, it is got, listed and updated', 'text beyond ASCII',
    'a lone surrogate',
    '§4.3 create: a mutated body'),
  clause('2', 'A new entry is active.',
    [['store/state.ts', "'entry.created'"]], '§4.3 create: a message without the entry'),
  clause('3', 'Active entries are listed; deleted ones are not, but can be got.', [['store/entries.ts', 'isDeleted']],
    '§4.1 list: the active entries', '§4.2 get: a deleted entry'),
  clause('3', 'Deleting keeps the record.',
    [['store/state.ts', "'entry.deleted'"]], '§4.5 delete: the entry leaves the list',
    "§3 a deleted entry's id"),
  clause('4.1', '`GET /api/listPassword`: 200 and an array of the active entries, nothing else.',
    [[ENTRIES, 'listPassword']],
    '§4.1 list: the active entries', '§4.1 list: 100,000 entries'),
  clause('4.1', 'No active entries: 404 `No passwords found`.', [[ENTRIES, 'NONE_ACTIVE']],
    '§4.1 list: nothing was ever stored', '§4.1 list: everything was deleted'),
  clause('4.2', '`GET /api/getPassword/{id}`: 200 and `passwords` with all five fields, and `status`.',
    [[ENTRIES, 'getPassword']],
    '§4.2 get: an entry with all five fields'),
  clause('4.2', 'Deleted entries too.', [[ENTRIES, 'entryText']], '§4.2 get: a deleted entry'),
  clause('4.2', 'Unknown id: 404 `contraseña no encontrada`.', [[ENTRIES, 'UNKNOWN']], '§4.2 get: an unknown id'),
  clause('4.3', '`POST /api/createPassword` takes the three strings, all required.', [[ENTRIES, 'createPassword']],
    '§4.3 create: what fails is named', '§4.3 create: two entries may be the same', '§4.3 fields that a request'),
  clause('4.3', '200 `SE CREÓ UNA NUEVA CONTRASEÑA`, without the entry or its id.', [[ENTRIES, 'CREATED']],
    '§4.3 create: a message without the entry'),
  clause('4.3',
    '400 `Invalid data`; `errors` has the failing fields only, each an array; `The <field> field is required.`',
    [[ANSWERS, 'invalid'], ['json/shape.ts', 'field is required']], '§4.3 create: what fails is named'),
  clause('4.3', 'Storing fails: 500 `Error creating password`.', [[ENTRIES, 'Error creating password']],
    '§4.3, §7 storing fails with', '§4.3 create: `Error creating password`'),
  clause('4.4',
    '`POST /api/updatePassword/{id}` takes any of the three; 200 with the entry, `contraseña actualizada`.',
    [[ENTRIES, 'updatePassword']], '§4.4 update: any combination'),
  clause('4.4', 'Unknown id: 404 `contraseña no encontrada`.', [[ENTRIES, 'UNKNOWN']], '§4.4 update: an unknown id'),
  clause('4.5', '`POST /api/deletePassword/{id}`, no body: 200 `contraseña borrada`.', [[ENTRIES, 'DELETED']],
    '§4.5 delete: the entry leaves the list', '§4.5 delete: a body is not looked at'),
  clause('4.5', 'Unknown id: 404 `contraseña no encontrada`.', [[ENTRIES, 'UNKNOWN']], '§4.5 delete: an unknown id'),
  clause('4.5', 'No longer listed; still retrievable.',
    [['store/entries.ts', 'isDeleted']], '§4.5 delete: the entry leaves the list'),
  clause('4.5', 'Permanent removal is not offered.', [[ENTRIES, 'OPERATIONS']], '§1 the five operations'),
  clause('5.1', 'By default all endpoints are public.', [['serving.ts', 'isProtected']], '§5.1 by default'),
  clause('5.2', 'When protected, each request carries `Authorization: Bearer`.', [[PIPELINE, 'UNAUTHENTICATED']],
    '§5.2 … without a token that is valid', '§5.2 no route but login', '§5.2 HEAD is guarded',
    '§5.2 the scheme is read',
    '§5.2 says of the protected configuration'),
  clause('5.2', 'Clients send `Accept: application/json`.',
    [['http/reply.ts', 'JSON_KIND']], '§5.2 whatever a client says'),
  clause('5.3', 'Tokens are opaque strings, issued to a user after a check.', [[ACCOUNTS, 'TOKEN_BYTES']],
    '§5.3 a token is pes_',
    '§5.3 a session tells', "§5.3 the journal is given the token's SHA-256", '§5 users and tokens'),
  clause('5.3', '`POST /api/login` takes `email` (an e-mail address) and `password`, both required.',
    [[SESSION, 'textUpTo'], ['json/shape.ts', 'email']],
    '§5.3 login: what is not valid', '§5.3 login: the address in any case'),
  clause('5.3', 'Success: `token` and `user`.', [[SESSION, 'loggedIn']], '§5.3 login: 200 with token'),
  clause('5.3', 'Bad credentials: 401 `Invalid credentials`.', [[SESSION, 'INVALID_CREDENTIALS']],
    '§5.3 login: 401 with the same bytes', '§5.3 login: a wrong password and an unknown user take',
    '§5 a flood of logins'),
  clause('5.3', 'Login is part of the protected configuration only.',
    [['serving.ts', 'sessionRoutes']], '§5.3 the open configuration has no'),
  clause('5.4', '`POST /api/logout`, authenticated, revokes its token: `Logged out successfully`.',
    [[SESSION, 'LOGGED_OUT']],
    '§5.4 logout needs a token', '§5.4 logout revokes the very token', '§5.4 what is pipelined behind a logout'),
  clause('5.5', 'Tokens do not expire by default; an expiry in minutes can be configured.',
    [[ACCOUNTS, 'isExpired'], ['settings.ts', 'tokenTtlMinutes']],
    '§5.5 a token without an expiry', '§5.5 a token of a login ends', '§5.5 a token of … minutes'),
  clause('5.6', 'Tokens may carry abilities.', [[ACCOUNTS, 'isAble']], '§5.6 a token has the abilities'),
  clause('5.6', 'A route can require one; which, is configuration.',
    [[PIPELINE, 'UNABLE'], ['values.ts', 'abilities']],
    '§5.6 … needs …', '§5.6 ABILITIES says', '§5.6 in the protected configuration'),
  clause('5.7', 'A token can be revoked: one, the current, or all of a user.',
    [[ACCOUNTS, 'revokeAll'], [ACCOUNTS, 'revoke']],
    '§5.7 ', '§5.4 logout revokes the very token', '§5 users and tokens'),
  clause('5.8', 'Cross-origin requests with credentials can be enabled under `/api`.',
    [['http/cors.ts', 'corsHeaders'], ['http/cors.ts', 'PREFLIGHT']],
    '§5.8 …: a preflight', '§5.8 protected: a foreign origin', '§5.8 the answer itself',
    '§5.8 every answer under /api'),
  clause('5.9', 'HTTPS is required in production.', [['config.ts', 'isProduction'], [PIPELINE, 'HTTPS_ONLY']],
    '§5.9 production with', '§5.9 production behind a proxy', '§5.9 with TLS_CERT',
    '§5.9 in production behind a proxy', '§5.9 in production it answers'),
  clause('7', 'Error bodies are objects with `message` and `status`; validation adds `errors`.',
    [['http/reply.ts', 'said'], [ANSWERS, 'invalid']], '§1, §7 every object', '§4.3 create: what fails is named'),
  clause('7', 'The statuses and texts of the table.',
    [
      [ENTRIES, 'UNKNOWN'], [ENTRIES, 'NONE_ACTIVE'], [ENTRIES, 'Error creating password'], [ANSWERS, 'invalid'],
      [ANSWERS, 'TOO_MANY'], [SESSION, 'INVALID_CREDENTIALS']
    ],
    '§4.3 create: what fails is named', '§4.1 list: nothing', '§4.2 get: an unknown id', '§4.4 update: an unknown id',
    '§4.5 delete: an unknown id', '§4.3, §7 storing fails', '§8.2 by default 60', '§5.3 login: 401'),
  clause('8', '60 requests a minute for each client IP address, all endpoints under `/api`.',
    [['limits.ts', 'RATE_LIMIT_REQUESTS'], [PIPELINE, 'isUnderApi'], ['http/address.ts', 'clientKey']], '§8 ',
    '§8.2 by default 60',
    '§8.2 clients are counted', '§8.3 a 417'),
  clause('8.1', 'The window is one minute and resets each minute.', [['http/rate-limit.ts', 'WINDOW_SECONDS']],
    '§8.1 '),
  clause('8.2', 'Over the limit: 429 `{message}` `Too Many Requests`.', [[ANSWERS, 'TOO_MANY']], '§8.2 '),
  clause('8.3', '`X-RateLimit-Limit`, `X-RateLimit-Remaining`, and, over the limit, `Retry-After`.',
    [['http/rate-limit.ts', 'limitHeaders']],
    '§8.1 and §8.3', '§8.3 ', '§8 every answer under /api counts'),
  clause('8.4', 'When protected, the key may be the user.',
    [[PIPELINE, 'limitsByUser']], '§8.4 ', '§8 by default a token makes'),
  clause('8.5', '6 login attempts a minute.',
    [[SESSION, 'loginLimit'], ['limits.ts', 'LOGIN_LIMIT_REQUESTS']], '§8.5 '),
  clause('9', 'The only path prefix is `/api`.',
    [[PIPELINE, 'isUnderApi']], '§1 the five operations', 'an unknown path: 404')
]

/** A test by its name, in which `…` is what it gets from elsewhere, and its file. */
export interface Named {
  readonly name: string
  readonly file: string
}

function textOf(node: ts.Node | undefined): string | undefined {
  if (node === undefined) return undefined
  if (ts.isStringLiteralLike(node)) return node.text
  if (!ts.isTemplateExpression(node)) return undefined
  return node.head.text + node.templateSpans.map(span => `…${span.literal.text}`).join('')
}

/** The names of all tests of a source. */
export function testNames(text: string, file: string): Named[] {
  const found: Named[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && /^(test|it|t\.test)$/.test(node.expression.getText())) {
      const name = textOf(node.arguments[0])
      if (name !== undefined) found.push({ name, file })
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile('source.ts', text, ts.ScriptTarget.ES2023, true))
  return found
}

/** The names of all tests that `npm test` runs. */
export function allTestNames(): Named[] {
  return readdirSync(join(ROOT, 'test'), { recursive: true }).map(String).sort()
    .filter(file => file.endsWith('.test.ts'))
    .flatMap(file => testNames(readFileSync(join(ROOT, 'test', file), 'utf8'), file))
}

/** The tests that hold a clause. */
export function testsOf({ tests }: Clause, names: readonly Named[]): Named[] {
  return names.filter(({ name }) => tests.some(start => name.startsWith(start)))
}

/** The table for the README. */
export function clausesTable(names: readonly Named[]): string {
  const rows = CLAUSES.map(one => {
    const kept = one.code.map(([path, word]) => `\`${path}\` ${word.replaceAll("'", '')}`)
    const held = testsOf(one, names).map(({ name, file }) => `\`${file.replace('.test.ts', '')}\` ${name}`)
    return `| §${one.section} | ${one.says} | ${kept.join('<br>')} | ${held.join('<br>')} |`
  })
  return ['| § | clause | kept by, in `src` | held by, in `test` |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

const MARKED = /(?<=^<!-- clauses -->\n)[^]*?(?=\n<!-- \/clauses -->$)/m

/** The README with the table, which stands between its marks, replaced. */
export function withTable(readme: string, table: string): string { return readme.replace(MARKED, () => table) }

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = join(ROOT, 'README.md')
  writeFileSync(path, withTable(readFileSync(path, 'utf8'), clausesTable(allTestNames())))
}
