/**
 * The rules of the house, executable. A rule is a function from sources, given as values, to the violations it finds;
 * each test first shows that its rule finds what is wrong in a bad sample, and then holds the tree to it.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** Texts by their paths from the top of the repository. */
type Sources = ReadonlyMap<string, string>

interface Room {
  readonly name: string
  /** Files of `src`, or folders with a slash at the end. */
  readonly holds: readonly string[]
  /** What it imports of Node. */
  readonly modules: readonly string[]
}

const part = (name: string, ...modules: readonly string[]): Room => ({ name, holds: [`parts/${name}/`], modules })

/** From the ground up: a room may import those of the floors below its own. */
const HOUSE: readonly (readonly Room[])[] = [
  [
    { name: 'errors', holds: ['errors.ts', 'clock.ts'], modules: [] },
    { name: 'limits', holds: ['limits.ts'], modules: ['node:assert'] },
    { name: 'contract', holds: ['contract.ts', 'version.ts'], modules: [] },
    // What runs in the browser imports nothing but itself, and nothing imports it.
    { name: 'browser', holds: ['parts/page/browser/'], modules: [] }
  ],
  [
    { name: 'json', holds: ['json/'], modules: ['node:buffer'] },
    { name: 'disk', holds: ['disk/'], modules: ['node:buffer', 'node:fs', 'node:os', 'node:path'] }
  ],
  [
    {
      name: 'http', holds: ['http/'],
      modules: ['node:buffer', 'node:http', 'node:https', 'node:net', 'node:path']
    },
    { name: 'journal', holds: ['journal/'], modules: ['node:buffer', 'node:crypto', 'node:path'] }
  ],
  [
    { name: 'config', holds: ['config/'], modules: [] },
    { name: 'log', holds: ['log.ts'], modules: [] },
    { name: 'store', holds: ['store/'], modules: ['node:buffer', 'node:crypto'] }
  ],
  [{ name: 'api', holds: ['api/'], modules: ['node:crypto'] }],
  [{
    name: 'part', holds: ['part', 'command', 'saved-journal', 'terminal'].map(name => `parts/${name}.ts`),
    modules: ['node:buffer', 'node:path', 'node:readline', 'node:stream']
  }],
  [{ name: 'storage', holds: ['storage.ts'], modules: ['node:crypto', 'node:path'] }],
  [
    part('etcd', 'node:assert', 'node:buffer', 'node:crypto', 'node:http', 'node:https'),
    part('metrics', 'node:perf_hooks'),
    part('openapi'),
    part('operator', 'node:buffer', 'node:crypto', 'node:events', 'node:http', 'node:path', 'node:stream/consumers'),
    part('extra'),
    part('page', 'node:buffer', 'node:crypto', 'node:path', 'node:zlib')
  ],
  [{ name: 'parts', holds: ['parts.ts'], modules: [] }],
  [{ name: 'settings', holds: ['settings.ts'], modules: [] }],
  [{ name: 'service', holds: ['service.ts'], modules: ['node:crypto'] }],
  [
    { name: 'index', holds: ['index.ts'], modules: ['node:events'] },
    { name: 'server', holds: ['server.ts', 'main.ts'], modules: [] },
    {
      name: 'operator program', modules: ['node:path', 'node:util'],
      holds: ['program', 'command-line', 'completion', 'connect'].map(name => `parts/operator/${name}.ts`)
    }
  ],
  [{ name: 'admin', holds: ['admin.ts'], modules: [] }]
]
const ROOMS = HOUSE.flat()

const PROGRAMS = ['src/server.ts', 'src/admin.ts']
/** What knows the process and the console. */
const OUTERMOST = [
  ...PROGRAMS, 'src/main.ts', ...['program', 'command-line', 'connect', 'as-owner'].map(name => `src/parts/operator/${name}.ts`)
]
const SURFACE = 'src/index.ts'
/** What the page starts with. */
const PAGE = 'src/parts/page/browser/main.ts'
/** The one file that asks the service. */
const CLIENT = 'src/parts/page/browser/api.ts'
const MAX_LINES = 300
const MAX_COLUMNS = 120
const TOP_LEVEL = [
  'package.json', 'package-lock.json', 'tsconfig.json', 'src', 'test', 'data', 'README.md',
  '.ci', '.gitignore', 'LICENSE', 'SECURITY.md'
]
const DEVELOPMENT_PACKAGES = ['@types/node', 'tsx', 'typescript']
const CATCH_ALL_NAMES = /^(utils?|helpers?|managers?|common|misc|shared)$/

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SRC = readSources('src')
const TEST = readSources('test')

function readText(path: string): string { return readFileSync(join(ROOT, path), 'utf8') }

function readSources(folder: string): Sources {
  const paths = readdirSync(join(ROOT, folder), { recursive: true }).map(String).filter(path => path.endsWith('.ts'))
  return new Map(paths.sort().map(path => posix.join(folder, path.replaceAll('\\', '/')))
    .map(path => [path, readText(path)]))
}

interface Rule {
  readonly find: (sources: Sources) => readonly string[]
  /** Sources that break it, a text or its lines each, and what is found in them. */
  readonly bad: { readonly [path: string]: string | readonly string[] }
  readonly found: readonly string[]
  /** What is held to it, instead of `src`. */
  readonly tree?: Sources
}

const parsed = new Map<string, ts.SourceFile>()

function parse(text: string): ts.SourceFile {
  const known = parsed.get(text)
  if (known !== undefined) return known
  const file = ts.createSourceFile('source.ts', text, ts.ScriptTarget.ES2023, true)
  parsed.set(text, file)
  return file
}

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node)
  ts.forEachChild(node, child => walk(child, visit))
}

function lineOf(node: ts.Node): number {
  return node.getSourceFile().getLineAndCharacterOfPosition(node.getStart()).line + 1
}

interface Import {
  readonly line: number
  /** As it is written; undefined where it is computed. */
  readonly from: string | undefined
  /** The names taken; `*` is all of them. */
  readonly names: readonly string[]
  /** Whether nothing of it is left at run time: an inline `type` is not enough for that. */
  readonly isType: boolean
}

function importsOf(text: string): readonly Import[] {
  const found: Import[] = []
  const add = (node: ts.Node, from: ts.Node | undefined, names: readonly string[], isType: boolean): void => {
    const isWritten = from !== undefined && ts.isStringLiteralLike(from)
    found.push({ line: lineOf(node), from: isWritten ? from.text : undefined, names, isType })
  }
  const given = (one: ts.ImportSpecifier | ts.ExportSpecifier): string => (one.propertyName ?? one.name).text
  walk(parse(text), node => {
    if (ts.isImportDeclaration(node)) {
      const { importClause: clause } = node
      const bindings = clause?.namedBindings
      const named = bindings === undefined ? [] : ts.isNamedImports(bindings) ? bindings.elements.map(given) : ['*']
      const names = clause?.name === undefined ? named : ['default', ...named]
      add(node, node.moduleSpecifier, names, clause?.isTypeOnly === true)
    } else if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
      const clause = node.exportClause
      const names = clause !== undefined && ts.isNamedExports(clause) ? clause.elements.map(given) : ['*']
      add(node, node.moduleSpecifier, names, node.isTypeOnly)
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node, node.arguments[0], ['*'], false)
    } else if (ts.isImportTypeNode(node)) {
      add(node, ts.isLiteralTypeNode(node.argument) ? node.argument.literal : undefined, ['*'], true)
    } else if (ts.isImportEqualsDeclaration(node)) {
      add(node, undefined, ['*'], false)
    }
  })
  return found
}

/** The path that a relative import means; undefined for another one. */
function targetOf(path: string, { from }: Import): string | undefined {
  return from !== undefined && /^\.\.?\//.test(from) ? posix.join(posix.dirname(path), from) : undefined
}

function roomOf(path: string): Room | undefined {
  return ROOMS.find(({ holds }) => holds.some(one => path === `src/${one}`)) ??
    ROOMS.find(({ holds }) => holds.some(one => one.endsWith('/') && path.startsWith(`src/${one}`)))
}

const floorOf = (room: Room): number => HOUSE.findIndex(floor => floor.includes(room))
const isPart = ({ holds }: Room): boolean => /^parts\/[a-z]+\/$/.test(holds[0]!)

/** Calls `look` with each import of each source and gathers what it says. */
function eachImport(sources: Sources, look: (path: string, one: Import) => string | undefined): string[] {
  return [...sources].flatMap(([path, text]) => importsOf(text).flatMap(one => {
    const said = look(path, one)
    return said === undefined ? [] : [`${path}:${one.line} ${said}`]
  }))
}

function foreignImports(sources: Sources): string[] {
  return eachImport(sources, (path, one) => {
    if (one.from?.startsWith('node:')) return undefined
    const target = targetOf(path, one)
    if (target === undefined || !target.endsWith('.ts')) return `imports ${one.from ?? 'what it computes'}`
    return sources.has(target) ? undefined : `imports ${target}, which is not there`
  })
}

function upwardImports(sources: Sources): string[] {
  const homeless = [...sources.keys()].filter(path => roomOf(path) === undefined).map(path => `${path} is in no room`)
  return [...homeless, ...eachImport(sources, (path, one) => {
    const room = roomOf(path)
    const target = roomOf(targetOf(path, one) ?? '')
    if (room === undefined || target === undefined || room === target) return undefined
    const mayImportPart = room.name === 'parts' || room.name === `${target.name} program`
    const isBelow = floorOf(target) < floorOf(room) && target.name !== 'browser' && (!isPart(target) || mayImportPart)
    return isBelow ? undefined : `imports ${target.name} from ${room.name}`
  })]
}

/** Sources that import each other in a circle at run time, and those between two circles. */
function circles(sources: Sources): string[] {
  const left = new Map([...sources].map(([path, text]) =>
    [path, importsOf(text).filter(one => !one.isType).map(one => targetOf(path, one) ?? '')]))
  // What imports none of the rest, or is imported by none, is in no circle.
  for (let size = 0; size !== left.size;) {
    size = left.size
    for (const [path, targets] of left) {
      const isImported = [...left.values()].some(others => others.includes(path))
      if (!isImported || !targets.some(target => left.has(target))) left.delete(path)
    }
  }
  return [...left.keys()]
}

function strayModules(sources: Sources): string[] {
  return eachImport(sources, (path, { from }) => {
    const isKnown = from?.startsWith('node:') !== true || roomOf(path)?.modules.includes(from) === true
    return isKnown ? undefined : `imports ${from}`
  })
}

/** What a room may import of Node and does not. */
function idleAllowances(sources: Sources): string[] {
  const used = new Set([...sources].flatMap(([path, text]) =>
    importsOf(text).map(({ from }) => `${roomOf(path)?.name} ${from}`)))
  return ROOMS.flatMap(({ name, modules }) => modules.map(one => `${name} ${one}`)).filter(one => !used.has(one))
}

/** The global names that are contacts with the outside; what the programs may use, and what everybody may. */
const GLOBALS = new Map<string, { readonly inPrograms: boolean, readonly members: readonly string[] }>([
  ['process', { inPrograms: true, members: ['pid', 'cwd', 'version', 'memoryUsage', 'cpuUsage'] }],
  ['console', { inPrograms: true, members: [] }],
  ...['fetch', 'WebSocket', 'EventSource', 'globalThis', 'global', 'eval', 'require'].map(name =>
    [name, { inPrograms: false, members: [] }] as const)
])

function strayGlobals(sources: Sources): string[] {
  const found: string[] = []
  for (const [path, text] of sources) {
    walk(parse(text), node => {
      const allowed = ts.isIdentifier(node) ? GLOBALS.get(node.text) : undefined
      if (allowed === undefined || (allowed.inPrograms && OUTERMOST.includes(path))) return
      if (path === CLIENT && node.getText() === 'fetch') return
      const { parent } = node
      // A property or a declaration of that name is not the global; `{ process }` is.
      if ('name' in parent && parent.name === node && !ts.isShorthandPropertyAssignment(parent)) return
      if (ts.isQualifiedName(parent) && parent.right === node) return
      const member = ts.isPropertyAccessExpression(parent) ? `.${parent.name.text}` : ''
      if (!allowed.members.includes(member.slice(1))) found.push(`${path}:${lineOf(node)} ${node.getText()}${member}`)
    })
  }
  return found
}

/** Names by which a text becomes markup, script or style, or by which a secret outlives the page or leaves it. */
const UNSAFE = new Set([
  'innerHTML', 'outerHTML', 'insertAdjacentHTML', 'setHTMLUnsafe', 'parseHTMLUnsafe', 'DOMParser', 'srcdoc',
  'createContextualFragment', 'writeln', 'Function', 'cssText', 'insertRule', 'localStorage', 'sessionStorage',
  'indexedDB', 'cookie', 'caches', 'XMLHttpRequest', 'sendBeacon', 'postMessage', 'serviceWorker'
])

/** Unsafe names in the scripts of the page, and attributes that are set without being known for harmless. */
function unsafeNames(sources: Sources): string[] {
  return [...sources].filter(([path]) => roomOf(path)?.name === 'browser').flatMap(([path, text]) => {
    const found: string[] = []
    walk(parse(text), node => {
      if (ts.isIdentifier(node) && UNSAFE.has(node.text)) found.push(`${path}:${lineOf(node)} ${node.text}`)
      if (ts.isPropertyAccessExpression(node) && /^(document\.write|window\.open)$/.test(node.getText())) {
        found.push(`${path}:${lineOf(node)} ${node.getText()}`)
      }
      if (!ts.isCallExpression(node) || !node.expression.getText().endsWith('.setAttribute')) return
      if (node.arguments[0]?.getText() !== "'href'") found.push(`${path}:${lineOf(node)} ${node.getText()}`)
    })
    return found
  })
}

/** What a page must not hold: scripts and styles of its own, handlers, forms that go somewhere, foreign addresses. */
function unsafeMarkup(html: string): string[] {
  return [...html.matchAll(
    /<script(?![^>]* src="web\/)[^>]*>|<style|\s(?:on\w+|style|action|srcdoc)=|(?:src|href)="(?!web\/|#)[^"]*"|\bjavascript:/gi
  )].map(([text]) => text.trim())
}

interface Manifest {
  readonly [field: string]: unknown
  readonly devDependencies?: { readonly [name: string]: string }
  readonly engines?: { readonly node?: string }
}

function strayPackages(manifest: Manifest): string[] {
  const { devDependencies = {}, engines } = manifest
  const kinds = ['dependencies', ...['peer', 'optional', 'bundle', 'bundled'].map(kind => `${kind}Dependencies`)]
  const oldest = /^>=(\d+\.\d+)$/.exec(engines?.node ?? '')?.[1]
  return [
    ...kinds.filter(kind => kind in manifest),
    ...Object.keys(devDependencies).filter(name => !DEVELOPMENT_PACKAGES.includes(name)),
    ...DEVELOPMENT_PACKAGES.filter(name => !(name in devDependencies)).map(name => `no ${name}`),
    // A newer API than the oldest supported Node has must not compile.
    ...devDependencies['@types/node']?.startsWith(`~${oldest}.`) === true ? [] : ['@types/node of another Node']
  ]
}

/** Entries of a lock file that tie it to one registry, or that would be installed for running. */
function lockFaults({ packages }: { readonly packages: { readonly [path: string]: Manifest } }): string[] {
  return Object.entries(packages).filter(([path]) => path !== '').flatMap(([path, entry]) => [
    ...'resolved' in entry ? [`${path} is resolved`] : [],
    ...typeof entry['integrity'] === 'string' ? [] : [`${path} has no integrity`],
    ...entry['dev'] === true ? [] : [`${path} is for running`]
  ])
}

const UNFINISHED = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X'.repeat(3)].join('|')})\\b`)

function linesWith(sources: Sources, isFound: (line: string) => boolean): string[] {
  return [...sources].flatMap(([path, text]) =>
    text.split('\n').flatMap((line, i) => isFound(line) ? [`${path}:${i + 1}`] : []))
}

/** Tests that do not run, and those that keep others from running. */
function cutTests(sources: Sources): string[] {
  const words = ['only', 'skip', 'todo']
  const owners = ['test', 'it', 'describe', 'suite', 't', 'context']
  const isTest = (node: ts.Node): boolean =>
    ts.isPropertyAccessExpression(node) ? isTest(node.expression) : ts.isIdentifier(node) && owners.includes(node.text)
  const found: string[] = []
  for (const [path, text] of sources) {
    walk(parse(text), node => {
      if (ts.isPropertyAccessExpression(node) && words.includes(node.name.text) && isTest(node.expression)) {
        found.push(`${path}:${lineOf(node)} ${node.getText()}`)
      }
      if (!ts.isCallExpression(node) || !isTest(node.expression)) return
      for (const options of node.arguments.filter(ts.isObjectLiteralExpression)) {
        for (const property of options.properties) {
          const { name } = property
          const word = name?.getText() ?? ''
          // A program that is missing on a user's machine is a reason, worked out and given a name.
          if (ts.isPropertyAssignment(property) && ts.isIdentifier(property.initializer) && word === 'skip') continue
          if (words.includes(word)) found.push(`${path}:${lineOf(name!)} ${word}`)
        }
      }
    })
  }
  return found
}

function deadFiles(sources: Sources, roots: readonly string[]): string[] {
  const reached = new Set(roots)
  for (const path of reached) {
    for (const one of importsOf(sources.get(path) ?? '')) {
      const target = targetOf(path, one)
      if (target !== undefined) reached.add(target)
    }
  }
  return [...sources.keys()].filter(path => !reached.has(path))
}

interface Export {
  readonly name: string
  readonly node: ts.Node
  /** Whether it only passes on what is declared, and documented, elsewhere. */
  readonly isPassedOn: boolean
}

function exportsOf(text: string): readonly Export[] {
  const names = (name: ts.BindingName): string[] => ts.isIdentifier(name) ? [name.text]
    : name.elements.flatMap(one => ts.isOmittedExpression(one) ? [] : names(one.name))
  return parse(text).statements.flatMap((node): Export[] => {
    if (ts.isExportDeclaration(node)) {
      const clause = node.exportClause
      const given = clause === undefined ? ['*'] : ts.isNamedExports(clause) ? clause.elements.map(one => one.name.text)
        : [clause.name.text]
      return given.map(name => ({ name, node, isPassedOn: true }))
    }
    if (ts.isExportAssignment(node)) return [{ name: 'default', node, isPassedOn: false }]
    const modifiers = ts.canHaveModifiers(node) ? ts.getModifiers(node) ?? [] : []
    const has = (kind: ts.SyntaxKind): boolean => modifiers.some(one => one.kind === kind)
    if (!has(ts.SyntaxKind.ExportKeyword)) return []
    const declared = ts.isVariableStatement(node) ? node.declarationList.declarations.flatMap(one => names(one.name))
      : has(ts.SyntaxKind.DefaultKeyword) ? ['default']
      : 'name' in node && node.name !== undefined ? [(node.name as ts.Identifier).text] : []
    return declared.map(name => ({ name, node, isPassedOn: false }))
  })
}

/** Exported values, but those of `surface`, that no source and no user imports. A type is there for signatures. */
function deadExports(sources: Sources, users: Sources, surface: string): string[] {
  const used = new Set<string>()
  for (const [path, text] of [...sources, ...users]) {
    for (const one of importsOf(text)) for (const name of one.names) used.add(`${targetOf(path, one)} ${name}`)
  }
  return [...sources].filter(([path]) => path !== surface && !used.has(`${path} *`)).flatMap(([path, text]) =>
    exportsOf(text).filter(({ node }) => !ts.isInterfaceDeclaration(node) && !ts.isTypeAliasDeclaration(node))
      .map(({ name }) => `${path} ${name}`).filter(one => !used.has(one)))
}

function longFiles(sources: Sources): string[] {
  return [...sources].map(([path, text]) => [path, text.replace(/\n$/, '').split('\n').length] as const)
    .filter(([, lines]) => lines > MAX_LINES).map(([path, lines]) => `${path} has ${lines} lines`)
}

function strayNames(names: readonly string[]): string[] { return names.filter(name => !TOP_LEVEL.includes(name)) }

function hasCatchAllName(path: string): boolean {
  return path.split('/').some(part => CATCH_ALL_NAMES.test(part.split('.')[0]!))
}

/** What stands at the top of the repository; of a copy without its history, what its `.gitignore` does not name. */
function topLevelNames(): string[] {
  if (existsSync(join(ROOT, '.git'))) {
    try {
      const paths = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' }).split('\0')
      return [...new Set(paths.filter(path => path !== '').map(path => path.split('/')[0]!))]
    } catch {
      // There is no git here, or it does not trust the owner of the folder.
    }
  }
  const ignored = readText('.gitignore').split('\n').map(line => line.replace(/\/$/, ''))
  return readdirSync(ROOT).filter(name => !ignored.includes(name) && !name.endsWith('.tgz'))
}

const isUnfinished = (line: string): boolean => UNFINISHED.test(line)
const isLong = (line: string): boolean => [...line].length > MAX_COLUMNS
const OTHERS = ['README.md', 'SECURITY.md', 'package.json', 'tsconfig.json', 'test/tsconfig.json', '.ci/run']
const CONTACTS = [
  'process.exit(1)', "process.on('exit', f)", 'process.env.HOME', 'console.log(1)', 'process.pid', 'process.cwd()',
  'use({ process })', "process['exit']()", 'const { env } = process', 'a.process.console()',
  'interface A { console: string }', 'await fetch(url)', "eval('1')", 'globalThis.process', '// process.exit'
]
const MARKUP = [
  'a.innerHTML = b', "c.setAttribute('style', d)", "c.setAttribute('href', d)", 'localStorage.d = e',
  'document.write(f)', 'void write(g)', 'new Function(h)', 'document.cookie'
]

const RULES: { readonly [title: string]: Rule } = {
  'src imports its own .ts files by relative paths, and node: modules, and nothing else': {
    find: foreignImports,
    bad: { 'src/a.ts': [
      'import a from "left-pad"', 'import "fs"', 'import b from "./b.js"', 'import c from "./c.ts"',
      'await import(name)', 'import x = require("x")', 'type D = import("./d").D', 'import e from "node:fs"',
      'export * from "e"'
    ] },
    found: [
      'src/a.ts:1 imports left-pad', 'src/a.ts:2 imports fs', 'src/a.ts:3 imports ./b.js',
      'src/a.ts:4 imports src/c.ts, which is not there', 'src/a.ts:5 imports what it computes',
      'src/a.ts:6 imports what it computes', 'src/a.ts:7 imports ./d', 'src/a.ts:9 imports e'
    ]
  },
  'imports point downward only, types included': {
    find: upwardImports,
    bad: {
      'src/json/a.ts': ["import { b } from '../http/b.ts'", "import { Failure } from '../errors.ts'"],
      'src/http/b.ts': ["import type { Entry } from '../store/events.ts'", "import { a } from './a.ts'"],
      'src/errors.ts': "import { MAX } from './limits.ts'",
      'src/store/c.ts': ["import { b } from '../http/b.ts'", "export * from '../api/d.ts'"],
      'src/service.ts': ["import { run } from './parts/operator/run.ts'", "import { SETTINGS } from './settings.ts'"],
      'src/parts/operator/run.ts': ["import { open } from '../../storage.ts'", "import { e } from '../etcd/e.ts'"],
      'src/parts.ts': "export { operator } from './parts/operator/part.ts'",
      'src/parts/page/browser/main.ts': ["import { MAX } from '../../../limits.ts'", "import { Api } from './api.ts'"],
      'src/cellar/e.ts': ''
    },
    found: [
      'src/cellar/e.ts is in no room', 'src/json/a.ts:1 imports http from json',
      'src/http/b.ts:1 imports store from http', 'src/errors.ts:1 imports limits from errors',
      'src/store/c.ts:2 imports api from store', 'src/service.ts:1 imports operator from service',
      'src/parts/operator/run.ts:2 imports etcd from operator',
      'src/parts/page/browser/main.ts:1 imports limits from browser'
    ]
  },
  'no circle of imports remains at run time': {
    find: circles,
    bad: {
      'src/json/c.ts': "import { a } from './a.ts'",
      'src/json/a.ts': "import { type B } from './b.ts'",
      'src/json/b.ts': ["import { c } from './c.ts'", "import type { D } from './d.ts'"],
      'src/json/d.ts': "import { b } from './b.ts'",
      'src/store/e.ts': "import { e } from './e.ts'"
    },
    found: ['src/json/c.ts', 'src/json/a.ts', 'src/json/b.ts', 'src/store/e.ts']
  },
  'each room imports the modules of Node that it is allowed': {
    find: strayModules,
    bad: {
      'src/store/a.ts': ["import { open } from 'node:fs'", "import { hash } from 'node:crypto'"],
      'src/api/b.ts': "import type { Socket } from 'node:net'",
      'src/journal/c.ts': "const fs = await import('node:fs/promises')"
    },
    found: [
      'src/store/a.ts:1 imports node:fs', 'src/api/b.ts:1 imports node:net',
      'src/journal/c.ts:1 imports node:fs/promises'
    ]
  },
  'what a room is allowed of Node is used': {
    find: idleAllowances,
    bad: Object.fromEntries(ROOMS.filter(({ name }) => name !== 'disk').map(({ holds: [one = ''], modules }) =>
      [`src/${one}${one.endsWith('/') ? 'a.ts' : ''}`, modules.map(module => `import '${module}'`)])),
    found: ['disk node:buffer', 'disk node:fs', 'disk node:os', 'disk node:path']
  },
  'only the two programs know the process and the console': {
    find: strayGlobals,
    bad: { 'src/service.ts': CONTACTS, 'src/admin.ts': CONTACTS, [CLIENT]: ['fetch(a)', 'eval(b)'] },
    found: [
      ...[
        '1 process.exit', '2 process.on', '3 process.env', '4 console.log', '7 process', '8 process', '9 process',
        '12 fetch', '13 eval', '14 globalThis.process'
      ].map(one => `src/service.ts:${one}`),
      'src/admin.ts:12 fetch', 'src/admin.ts:13 eval', 'src/admin.ts:14 globalThis.process', `${CLIENT}:2 eval`
    ]
  },
  'the page makes no markup, script or style of texts, and stores nothing': {
    find: unsafeNames,
    bad: { [PAGE]: MARKUP, 'src/service.ts': MARKUP },
    found: [
      '1 innerHTML', "2 c.setAttribute('style', d)", '4 localStorage', '5 document.write', '7 Function', '8 cookie'
    ].map(one => `${PAGE}:${one}`)
  },
  'nothing is left to be finished later': {
    find: sources => linesWith(sources, isUnfinished),
    bad: { 'src/a.ts': [`// ${'TO'}DO: later`, 'const todos = 1', `// ${'FIX'}ME`, `// ${'X'}XX`] },
    found: ['src/a.ts:1', 'src/a.ts:3', 'src/a.ts:4'],
    tree: new Map([...SRC, ...TEST, ...OTHERS.map(path => [path, readText(path)] as const)])
  },
  'every test runs': {
    find: cutTests,
    bad: { 'test/a.test.ts': [
      "test.only('a', f)", "describe.skip('b', f)", "t.todo('c')", "test('d', { skip: true, timeout: 1 }, f)",
      "t.test('e', { only: true }, f)", 'reader.skip(3)', "await t.test.skip('f', f)"
    ] },
    found: ['1 test.only', '2 describe.skip', '3 t.todo', '4 skip', '5 only', '7 t.test.skip']
      .map(one => `test/a.test.ts:${one}`),
    tree: TEST
  },
  'every file of src is reached from a program, from index.ts or from the page': {
    find: sources => deadFiles(sources, [...PROGRAMS, SURFACE, PAGE]),
    bad: {
      'src/server.ts': "import './a.ts'", 'src/a.ts': "import type { B } from './json/b.ts'", 'src/json/b.ts': '',
      'src/c.ts': "import './d.ts'", 'src/d.ts': "import './c.ts'"
    },
    found: ['src/c.ts', 'src/d.ts']
  },
  'every exported value is imported by a source or a test': {
    find: sources => deadExports(sources, TEST, SURFACE),
    bad: {
      'src/a.ts': [
        'export const one = 1, [two, { three: four }] = f()', 'export type Five = 5', 'export default class {}'
      ],
      'src/b.ts': ["export { one as six } from './a.ts'", 'export function seven() {}', 'export { f as eight }'],
      'src/c.ts': 'export const nine = 9',
      'src/d.ts': "import type { Five as V } from './a.ts'; await import('./c.ts')",
      'src/index.ts': "export { seven } from './b.ts'"
    },
    found: ['src/a.ts two', 'src/a.ts four', 'src/a.ts default', 'src/b.ts six', 'src/b.ts eight']
  },
  [`a file of src has at most ${MAX_LINES} lines`]: {
    find: longFiles, bad: { 'src/a.ts': '\n'.repeat(300), 'src/b.ts': '\n'.repeat(301) },
    found: ['src/b.ts has 301 lines']
  },
  [`a line of src has at most ${MAX_COLUMNS} characters`]: {
    find: sources => linesWith(sources, isLong),
    bad: { 'src/a.ts': ['😀'.repeat(120), 'x'.repeat(121)] }, found: ['src/a.ts:2']
  },
  'no file or folder has a catch-all name': {
    find: sources => [...sources.keys()].filter(hasCatchAllName),
    bad: {
      'src/utils.ts': '', 'src/shared/a.ts': '', 'test/json.helper.ts': '', 'test/misc.test.ts': '',
      'src/http/manager.ts': ''
    },
    found: ['src/utils.ts', 'src/shared/a.ts', 'test/misc.test.ts', 'src/http/manager.ts'],
    tree: new Map([...SRC, ...TEST])
  }
}

for (const [title, { find, bad, found, tree = SRC }] of Object.entries(RULES)) {
  test(title, () => {
    const sources = Object.entries(bad).map(([path, text]) => [path, [text].flat().join('\n')] as const)
    assert.deepEqual(find(new Map(sources)), found, 'the rule finds what is wrong')
    assert.deepEqual(find(tree), [])
  })
}

test('the allowances themselves keep the disk in disk/, and sockets in http/, etcd/ and operator/', () => {
  const allowed = (pattern: RegExp): string[] =>
    ROOMS.filter(({ modules }) => modules.some(one => pattern.test(one))).map(({ name }) => name)
  assert.deepEqual(allowed(/^node:fs/), ['disk'])
  assert.deepEqual(allowed(/^node:(http|http2|https|net|tls|dgram|dns)\b/), ['http', 'etcd', 'operator'])
  assert.deepEqual(allowed(/^node:(child_process|cluster|worker_threads|vm|module|process|inspector)\b/), [])
})

test('no two files of src have one name, but for the part.ts of each part', () => {
  const names = [...SRC.keys()].filter(path => !path.includes('/browser/')).map(path => posix.basename(path))
  assert.deepEqual(names.filter((name, i) => names.indexOf(name) !== i && name !== 'part.ts'), [])
})

test('the core knows nothing of etcd, the one part whose name is no ordinary word', () => {
  const core = new Map([...SRC].filter(([path]) => !path.startsWith('src/parts') && path !== 'src/admin.ts'))
  assert.deepEqual(linesWith(core, line => /etcd/i.test(line)), [])
})

test('the markup of the page holds no script, style, handler or foreign address', () => {
  assert.deepEqual(unsafeMarkup(
    '<script src="web/a.js"></script><script>b</script><p style="c" onclick="d"><a href="https://e"><use href="#f"/>'
  ), ['<script>', 'style=', 'onclick=', 'href="https://e"'])
  assert.deepEqual(unsafeMarkup(readText('src/parts/page/browser/page.html')), [])
  const styles = readdirSync(join(ROOT, 'src/parts/page/browser')).filter(name => name.endsWith('.css'))
  assert.ok(styles.length > 0)
  for (const name of styles) assert.doesNotMatch(readText(`src/parts/page/browser/${name}`), /@import|url\(|expression\(/, name)
})

test('the packages are the three for development, with the types of the oldest Node, and none for running', () => {
  assert.deepEqual(strayPackages({
    engines: { node: '>=20.12' }, dependencies: {},
    devDependencies: { 'typescript': '~5.8.3', 'tsx': '^4.1.0', '@types/node': '^22.0.0', 'eslint': '^9.0.0' }
  }), ['dependencies', 'eslint', '@types/node of another Node'])
  assert.deepEqual(strayPackages({}),
    ['no @types/node', 'no tsx', 'no typescript', '@types/node of another Node'])
  assert.deepEqual(strayPackages(JSON.parse(readText('package.json'))), [])
})

test('the lock file names no registry, and every package in it is for development', () => {
  assert.deepEqual(lockFaults({
    packages: {
      '': {},
      'node_modules/a': { resolved: 'https://registry.example/a.tgz', integrity: 'sha512-', dev: true },
      'node_modules/b': { integrity: 'sha512-' },
      'node_modules/c': { dev: true }
    }
  }), ['node_modules/a is resolved', 'node_modules/b is for running', 'node_modules/c has no integrity'])
  assert.deepEqual(lockFaults(JSON.parse(readText('package-lock.json'))), [])
})

test('whatever embedders import has a doc comment', () => {
  const exported = importsOf(readText(SURFACE)).filter(({ names }) => names.length > 0)
  const missing = exported.flatMap(one => one.names.filter(name => {
    const text = SRC.get(targetOf(SURFACE, one) ?? '') ?? ''
    const found = exportsOf(text).find(declared => declared.name === name)
    return found !== undefined && !/\*\/\s*$/.test(text.slice(0, found.node.getStart()))
  }))
  assert.deepEqual(missing, [])
})

test('the top of the repository holds what the design names, and all of it', () => {
  assert.deepEqual(strayNames(['src', 'docs', 'README.md', 'eslint.config.js']), ['docs', 'eslint.config.js'])
  const names = topLevelNames()
  assert.deepEqual(strayNames(names), [])
  assert.deepEqual(TOP_LEVEL.filter(name => !names.includes(name)), [])
})
