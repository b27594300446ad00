/**
 * Wherever an absent value stands for everything (the host, all groups, all abilities), nothing that is absent by
 * mistake is taken for it.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import ts from 'typescript'
import { openService, type Options, type Service } from '../../src/embedding/embedded-service.ts'
import { askedFor } from '../../src/rights/rights.ts'
import { atEnd } from '../support/service.ts'

const ENTRY = { password: 'a', sistema: 'b', usuario: 'c' }
const ANA = 'ana@example.org'
const USER = { email: ANA, password: 'a long password 1', abilities: ['*'], groups: null }
/** What a program has that nobody is logged in to, or that is written as it may not be. */
const NOBODY: { readonly [what: string]: readonly unknown[] } = {
  'an undefined argument': [undefined], null: [null], 'an undefined name': [{ by: undefined }],
  'a name that is null': [{ by: null }], 'a name that is a number': [{ by: 5 }], 'no name': [{}],
  'another key': [{ user: ANA }], 'a key more': [{ by: ANA, as: ANA }], 'a text': [ANA], 'a list': [[ANA]],
  'a false': [false], 'two arguments': [{ by: ANA }, undefined]
}
const CALLS: { readonly [operation: string]: readonly unknown[] } = {
  listPassword: [], getPassword: [1], createPassword: [ENTRY], updatePassword: [1, { usuario: 'v' }],
  deletePassword: [1], restorePassword: [1], listEntries: [], historyPassword: [1], whoKnows: [1], oneTimeCode: [1]
}

type Loose = { readonly [name: string]: (...given: readonly unknown[]) => Promise<unknown> }

async function opened(t: TestContext, options: Options = {}): Promise<Service> {
  const service = await openService({ journal: 'memory', auth: 'bearer', page: false, ...options })
  atEnd(t, () => service.close())
  return service
}

test('an operation is the host’s only without a last argument: one that names nobody is refused', async t => {
  const service = await opened(t)
  await service.accounts.addUser(USER)
  await service.createPassword(ENTRY)
  const loose = service as unknown as Loose
  const operations = Object.keys(service).filter(name => /Password$|^listEntries$|^whoKnows$|^oneTimeCode$/.test(name))
  assert.deepEqual(operations.sort(), Object.keys(CALLS).sort(), 'each has a row')
  const unchanged = await service.getPassword(1)
  for (const [operation, own] of Object.entries(CALLS)) {
    const more = operation !== 'updatePassword' ? {} : {
      'an undefined entry': [{ ifUnchanged: undefined }], 'no entry': [{ ifUnchanged: null }],
      'a name and no entry': [{ by: ANA, ifUnchanged: undefined }], 'an entry and no name': [{ by: undefined,
        ifUnchanged: unchanged }]
    }
    for (const [what, given] of Object.entries({ ...NOBODY, ...more })) {
      await assert.rejects(loose[operation]!(...own, ...given),
        { code: 'setting-invalid', message: new RegExp(`the last argument of ${operation} is \\{ by: '`) },
        `${operation} with ${what}`)
    }
  }
  await assert.rejects(loose['getPassword']!(1, { ifUnchanged: unchanged }), { code: 'setting-invalid' })
  assert.deepEqual(await service.listPassword(), [unchanged])
  for (const options of [{ by: ANA }, { ifUnchanged: unchanged }, { by: ANA, ifUnchanged: unchanged }]) {
    assert.deepEqual(await loose['updatePassword']!(1, {}, options), unchanged)
  }
})

test('a service is open only if its host says so: an auth without a value is refused, in production an absent one',
  async t => {
    class Config { readonly journal = 'memory'; get auth(): undefined { return undefined } }
    const refused: readonly (readonly [options: object, why: RegExp])[] = [
      [{ production: true, auth: undefined }, /: auth has no value: give auth: 'bearer', or auth: 'none' on purpose$/],
      [{ production: true }, /: production: true needs auth: 'bearer', or auth: 'none' on purpose$/],
      [{ production: true, init: true }, /: production: true needs auth/],
      [{ auth: undefined }, /: auth has no value/], [{ production: false, auth: undefined }, /: auth has no value/],
      [new Config(), /: auth has no value/], [{ auth: null }, /auth must be/],
      [{ auth: '' }, /auth must be none or bearer/]
    ]
    for (const [options, message] of refused) {
      const all = options instanceof Config ? options : { journal: 'memory', page: false, ...options }
      const opening = openService(all as Options).then(service => service.close())
      await assert.rejects(opening, { code: 'setting-invalid', message })
    }
    for (const auth of ['none', 'bearer'] as const) await opened(t, { production: true, auth } as Options)
    await opened(t, { production: false } as Options)
  })

test('accounts take one object; the form of 1.0.0, and an absent list, are refused with the new form', async t => {
  const { accounts } = await opened(t)
  await accounts.addUser(USER)
  const { groups: _, ...withoutGroups } = USER
  const { abilities: __, ...withoutAbilities } = USER
  const eva = 'eva@example.org'
  const token = { email: ANA, abilities: null, groups: null }
  const wrong: readonly (readonly [call: string, ...given: unknown[]])[] = [
    ['addUser', eva, 'Eva', ['*'], 'a long password 1'], ['addUser', eva, 'a long password 1'], ['addUser'],
    ['addUser', { ...withoutGroups, email: eva }], ['addUser', { ...withoutAbilities, email: eva }],
    ['addUser', { ...USER, email: eva, groups: undefined }], ['addUser', { ...USER, email: eva, group: ['X'] }],
    ['addUser', { ...USER, email: eva, password: undefined }], ['addUser', { ...USER, email: eva }, ['X']],
    ['changeUser', ANA, 'Ana', ['password:read']], ['changeUser', { email: ANA, groups: undefined }],
    ['changeUser', { email: ANA, abilities: undefined }], ['setPassword', ANA, 'a long password 2'],
    ['setPassword', { email: ANA }], ['removeUser', ANA], ['revokeAll', ANA], ['revokeToken', 'id'],
    ['revokeToken', { id: undefined }], ['issue', ANA], ['issue', ANA, ['*'], 60], ['issue', { email: ANA }],
    ['issue', { ...token, groups: undefined }], ['issue', { ...token, abilities: undefined }],
    ['issue', { email: ANA, abilities: null }], ['issue', { ...token, ttlMinutes: undefined }], ['issue', null]
  ]
  const loose = accounts as unknown as Loose
  for (const [call, ...given] of wrong) {
    await assert.rejects(loose[call]!(...given),
      { code: 'setting-invalid', message: new RegExp(`${call} takes one object.*: ${call}\\(\\{ (email|id)`) },
      `${call} ${JSON.stringify(given)}`)
  }
  assert.deepEqual(await accounts.users(), [{ id: 1, email: ANA, name: ANA, abilities: ['*'] }])
  assert.deepEqual(await accounts.tokens(), [])
  assert.equal((await accounts.issue({ ...token, groups: ['X'] }))?.groups?.join(), 'X')
})

test('an operation that nobody has given an ability is an error, and not open to any token', () => {
  assert.deepEqual(askedFor(new Map([['a', ['x']]]), 'a'), ['x'])
  assert.equal(askedFor(new Map([['a', undefined]]), 'a'), undefined)
  assert.throws(() => askedFor(new Map(), 'a'), /no ability is named for a/)
})

/** One line each; `session` is that of a request, perhaps of nobody. */
const REFUSED = [
  'service.listPassword({ by: session?.email })', 'service.listPassword(session && { by: session.email })',
  'service.listPassword(undefined)', "service.listPassword({ user: 'eva@example.org' })",
  "service.listPassword('eva@example.org')", 'service.listPassword({})',
  'service.deletePassword(2, { by: undefined })', 'service.deletePassword(2, session && { by: session.email })',
  'service.getPassword(1, { by: session?.email })', 'service.createPassword(entry, { by: session?.email })',
  'service.updatePassword(1, {}, { by: session?.email })', 'service.updatePassword(1, {}, { ifUnchanged: found })',
  "service.updatePassword(1, {}, { by: 'a', ifUnchanged: found })",
  'service.updatePassword(1, {}, { by: session?.email, ifUnchanged: entry })',
  'service.updatePassword(1, {}, {})', 'service.updatePassword(1, {}, undefined)',
  "service.accounts.addUser('a@x.org', 'a long password')",
  "service.accounts.addUser({ email: 'a', password: 'p', abilities: [] })",
  "service.accounts.addUser({ email: 'a', password: 'p', abilities: [], groups: session?.groups })",
  "service.accounts.addUser({ email: 'a', password: 'p', abilities: [], groups: null, group: [] })",
  "service.accounts.issue('a@x.org')", 'openService({ production: true })',
  'openService({ production: true, auth: session?.auth })', 'openService({ production: isProduction })',
  "service.accounts.issue({ email: 'a', abilities: session?.abilities, groups: [] })"
]
const TAKEN = [
  'service.listPassword()', "service.listPassword({ by: 'a' })", "service.updatePassword(1, {}, { by: 'a' })",
  'service.updatePassword(1, {}, { ifUnchanged: entry })',
  "openService({ production: isProduction, auth: 'bearer' })", 'openService()', "openService({ dataDir: 'a' })",
  "service.updatePassword(1, {}, { by: 'a', ifUnchanged: entry })",
  'if (session !== undefined) service.deletePassword(2, { by: session.email })',
  "service.accounts.addUser({ email: 'a', password: 'p', abilities: [], groups: null })",
  "service.accounts.changeUser({ email: 'a', groups: null })",
  "service.accounts.issue({ email: 'a', abilities: null, groups: ['X'], ttlMinutes: 5 })"
]

test('strict TypeScript refuses a user who may be undefined, and the old form of accounts', () => {
  const begin = [
    "import { openService, type Entry, type Service } from './src/index.ts'",
    'declare const service: Service',
    'interface Session { email: string, groups: string[], abilities: string[], auth: "bearer" }',
    'declare const isProduction: boolean',
    'declare const session: Session | undefined',
    'declare const [entry, found]: [Entry, Entry | undefined]'
  ]
  const lines = [...begin, ...REFUSED, ...TAKEN]
  const path = join(process.cwd(), 'calls.ts')
  const options: ts.CompilerOptions = {
    strict: true, noEmit: true, target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext, types: ['node'],
    moduleResolution: ts.ModuleResolutionKind.NodeNext, allowImportingTsExtensions: true, skipLibCheck: true
  }
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists } = host
  host.fileExists = file => file === path || fileExists(file)
  host.getSourceFile = (file, ...more) =>
    file === path ? ts.createSourceFile(file, lines.join('\n'), ts.ScriptTarget.ES2023) : getSourceFile(file, ...more)
  const program = ts.createProgram([path], options, host)
  const source = program.getSourceFile(path)!
  const refused = new Set(program.getSemanticDiagnostics(source).map(({ start }) =>
    lines[source.getLineAndCharacterOfPosition(start!).line]))
  assert.deepEqual([...refused], REFUSED)
})
