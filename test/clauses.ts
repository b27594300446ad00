/**
 * The contract, clause by clause, by the contract's own numbers: a test whose title names one (`§4.3`) holds it, a
 * comment in `src` that names one (`contract §4.3`) says what keeps it. `npm run clauses` writes `test/CONTRACT.md`.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { plainName } from './support/test-names.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

export const CONTRACT_FILE: string = join(ROOT, 'test', 'CONTRACT.md')

/** Every clause that asks for something; what it leaves open ("not shown") is in `src/api/README.md`. */
export const CLAUSES: ReadonlyMap<string, readonly string[]> = new Map(Object.entries({
  '§1': [
    'Five operations, all under `/api`.', 'Requests with a body send JSON; responses are JSON.',
    'Every object carries `status`, equal to the HTTP status; not the list, nor the 429.',
    'Message texts are exactly as given, in their original language.', 'Deletion is soft.',
    'By default no authentication.'
  ],
  '§2': [
    'An entry has `id`, `password`, `sistema`, `usuario`, `status`.',
    '`id` is a unique integer, assigned by the service.', 'The values are stored and returned as given.',
    'A new entry is active.'
  ],
  '§3': ['Active entries are listed; deleted ones are not, but can be got.', 'Deleting keeps the record.'],
  '§4.1': [
    '`GET /api/listPassword`: 200 and an array of the active entries, nothing else.',
    'No active entries: 404 `No passwords found`.'
  ],
  '§4.2': [
    '`GET /api/getPassword/{id}`: 200 and `passwords` with all five fields, and `status`.', 'Deleted entries too.',
    'Unknown id: 404 `contraseña no encontrada`.'
  ],
  '§4.3': [
    '`POST /api/createPassword` takes the three strings, all required.',
    '200 `SE CREÓ UNA NUEVA CONTRASEÑA`, without the entry or its id.',
    '400 `Invalid data`; `errors` has the failing fields only, each an array; `The <field> field is required.`',
    'Storing fails: 500 `Error creating password`.'
  ],
  '§4.4': [
    '`POST /api/updatePassword/{id}` takes any of the three; 200 with the entry, `contraseña actualizada`.',
    'Unknown id: 404 `contraseña no encontrada`.'
  ],
  '§4.5': [
    '`POST /api/deletePassword/{id}`, no body: 200 `contraseña borrada`.',
    'Unknown id: 404 `contraseña no encontrada`.',
    'No longer listed; still retrievable.', 'Permanent removal is not offered.'
  ],
  '§5.1': ['By default all endpoints are public.'],
  '§5.2': ['When protected, each request carries `Authorization: Bearer`.', 'Clients send `Accept: application/json`.'],
  '§5.3': [
    'Tokens are opaque strings, issued to a user after a check.',
    '`POST /api/login` takes `email` (an e-mail address) and `password`, both required.',
    'Success: `token` and `user`.', 'Bad credentials: 401 `Invalid credentials`.',
    'Login is part of the protected configuration only.'
  ],
  '§5.4': ['`POST /api/logout`, authenticated, revokes its token: `Logged out successfully`.'],
  '§5.5': ['Tokens do not expire by default; an expiry in minutes can be configured.'],
  '§5.6': ['Tokens may carry abilities.', 'A route can require one; which, is configuration.'],
  '§5.7': ['A token can be revoked: one, the current, or all of a user.'],
  '§5.8': ['Cross-origin requests with credentials can be enabled under `/api`.'],
  '§5.9': ['HTTPS is required in production.'],
  '§7': [
    'Error bodies are objects with `message` and `status`; validation adds `errors`.',
    'The statuses and texts of the table.'
  ],
  '§8': ['60 requests a minute for each client IP address, all endpoints under `/api`.'],
  '§8.1': ['The window is one minute and resets each minute.'],
  '§8.2': ['Over the limit: 429 `{message}` `Too Many Requests`.'],
  '§8.3': ['`X-RateLimit-Limit`, `X-RateLimit-Remaining`, and, over the limit, `Retry-After`.'],
  '§8.4': ['When protected, the key may be the user.'],
  '§8.5': ['6 login attempts a minute.'],
  '§9': ['The only path prefix is `/api`.']
}))

/** Something that names clauses: the title of a test, or the name of what a comment in `src` is about. */
export interface Naming {
  readonly file: string
  readonly name: string
  readonly numbers: readonly string[]
}

const NAMED = /(?:§\d(?:\.\d)?(?:, | and )?)+/.source
const numbersIn = (text: string): readonly string[] => text.match(/§\d(?:\.\d)?/g) ?? []

/** The tests of a source whose titles name clauses; `…` is what a title gets from elsewhere. */
export function namingTests(text: string, file: string): Naming[] {
  return [...text.matchAll(/\b(?:test|it)\(\s*(['`])((?:\\.|(?!\1).)*)\1/gs)].flatMap(([, , title = '']) => {
    const name = title.replaceAll(/\$\{[^}]*\}/g, '…').replaceAll('\\', '')
    const [named] = new RegExp(`^${NAMED}`).exec(name) ?? []
    return named === undefined ? [] : [{ file, name, numbers: numbersIn(named) }]
  })
}

/** What the comments of a source say to keep clauses: the declaration or operation after each; nameless: the file. */
export function namingCode(text: string, file: string): Naming[] {
  const rest = /(?:(?:(?!\/\*|\*\/).)*\*\/|[^\n]*)/.source
  const declared =
    /(?:(?:export|async|const|function|interface|type|class|readonly|static|get) |operation: ')*(#?\w*)/.source
  return [...text.matchAll(new RegExp(`[Cc]ontract (${NAMED})${rest}\\s*${declared}`, 'gs'))]
    .map(([, named, name]) => ({ file, name: name === 'import' ? '' : name!, numbers: numbersIn(named!) }))
}

export function allNaming(folder: 'src' | 'test'): Naming[] {
  return readdirSync(join(ROOT, folder), { recursive: true }).map(String).sort().flatMap(file => {
    if (folder === 'src' ? !file.endsWith('.ts') : !file.endsWith('.test.ts')) return []
    const text = readFileSync(join(ROOT, folder, file), 'utf8')
    return folder === 'src' ? namingCode(text, file) : namingTests(text, plainName(file))
  })
}

export function contractText(code: readonly Naming[], tests: readonly Naming[]): string {
  const cell = (of: readonly Naming[], number: string): string =>
    of.filter(one => one.numbers.includes(number)).map(({ file, name }) => `\`${file}\` ${name}`.trim()).join('<br>')
  const rows = [...CLAUSES].map(([number, says]) =>
    `| ${number} | ${says.join('<br>')} | ${cell(code, number)} | ${cell(tests, number)} |`)
  return [
    '# The contract, clause by clause', '',
    '`npm run clauses` writes this file from the comments of `src` and the titles of ' +
      'tests that name a clause.', '', '| § | clause | kept by, in `src` | held by, in `test` |',
    '| --- | --- | --- | --- |', ...rows, ''
  ].join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(CONTRACT_FILE, contractText(allNaming('src'), allNaming('test')))
}
