/**
 * The project's rules, executable. A rule is a function from sources, given as values, to the violations it finds.
 * Where a rule is more than one pattern, its test first shows that it finds what is wrong in a bad sample.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { joined } from './support/patterns.ts'

/** Texts by their paths from the top of the repository. */
type Sources = ReadonlyMap<string, string>

interface Module {
  readonly name: string
  /** Files of `src`, or folders with a slash at the end. */
  readonly holds: readonly string[]
  /** What it imports of Node. */
  readonly ofNode: readonly string[]
}

const part = (name: string, ...ofNode: readonly string[]): Module => ({ name, holds: [`parts/${name}/`], ofNode })

/** From the lowest layer up: a module may import those of the layers below its own. */
const LAYERS: readonly (readonly Module[])[] = [
  [
    { name: 'errors', holds: ['errors.ts'], ofNode: [] },
    { name: 'limits', holds: ['limits.ts'], ofNode: [] },
    { name: 'contract', holds: ['contract.ts', 'version.ts'], ofNode: [] },
    // What runs in the browser imports nothing but itself, and nothing imports it.
    { name: 'browser', holds: ['parts/page/browser/'], ofNode: [] }
  ],
  [{
    name: 'journal', holds: ['journal/'], ofNode: ['buffer', 'crypto', 'fs', 'http', 'net', 'path'].map(name =>
      `node:${name}`)
  }],
  [{
    name: 'store', ofNode: ['node:buffer', 'node:crypto'],
    holds: ['store/', 'rights/', 'entries/', 'accounts/', 'knowledge/']
  }],
  [{ name: 'slices', holds: ['slices.ts'], ofNode: [] }],
  [{
    name: 'http', holds: ['http/', 'log.ts'],
    ofNode: [
      'node:buffer', 'node:crypto', 'node:http', 'node:https', 'node:net'
    ]
  }],
  [{
    name: 'routes', holds: ['entries/entry-routes.ts', 'accounts/login-routes.ts', 'knowledge/recorder.ts'], ofNode: []
  }],
  [{
    name: 'setting table', holds: ['core-settings.ts'], ofNode: []
  }],
  [{
    name: 'part',
    holds: ['part.ts', 'parts/commands/', 'parts/routes/'],
    ofNode: ['node:buffer', 'node:crypto', 'node:path', 'node:readline', 'node:stream', 'node:timers/promises']
  }],
  [
    part('etcd', 'node:assert', 'node:buffer', 'node:crypto', 'node:http', 'node:https', 'node:stream/promises'),
    part('access-log', 'node:buffer', 'node:crypto'),
    part('metrics', 'node:perf_hooks'),
    part('openapi'),
    part('operator', 'node:assert', 'node:buffer', 'node:crypto', 'node:events', 'node:http', 'node:path',
      'node:stream/consumers', 'node:v8'),
    part('proxy-login', 'node:buffer', 'node:crypto'),
    part('page-api', 'node:buffer', 'node:crypto', 'node:util', 'node:zlib'),
    part('page', 'node:buffer', 'node:crypto', 'node:path', 'node:zlib')
  ],
  [{ name: 'parts', holds: ['parts.ts'], ofNode: [] }],
  [{ name: 'settings', holds: ['settings.ts'], ofNode: ['node:util'] }],
  [{ name: 'storage', holds: ['storage.ts'], ofNode: ['node:crypto'] }],
  [{ name: 'service', holds: ['service.ts'], ofNode: [] }],
  [
    { name: 'index', holds: ['index.ts', 'embedding/'], ofNode: [] },
    { name: 'server', holds: ['server.ts', 'main.ts'], ofNode: [] },
    {
      name: 'operator program', ofNode: ['node:path', 'node:util'],
      holds: ['parts/operator/program/']
    }
  ],
  [{ name: 'admin', holds: ['admin.ts'], ofNode: [] }]
]
const MODULES = LAYERS.flat()

const PROGRAMS = ['src/server.ts', 'src/admin.ts']
/** What knows the process and the console. */
const OUTERMOST = [
  ...PROGRAMS, 'src/main.ts', 'src/parts/access-log/standard-output.ts',
  ...['program', 'command-line', 'connect'].map(name =>
    `src/parts/operator/program/${name}.ts`)
]
const SURFACE = 'src/embedding/embedded-service.ts'
/** The one file that asks the service. */
const CLIENT = 'src/parts/page/browser/api.ts'
const MAX_LINES = 450
const MAX_COLUMNS = 120
/** Of code; data and the page's scripts have `MAX_COLUMNS`, and a regular expression cannot be broken. */
const MAX_CODE_COLUMNS = 100
const MAY_BE_WIDE = ['src/accounts/common-words.ts', 'src/parts/page/browser/', 'src/parts/operator/rewriting/']
const MAX_FUNCTION_LINES = 60
/** Functions that are longer: tables, whose rows would be no plainer elsewhere; and what is to be made shorter. */
const LONG_FUNCTIONS: readonly string[] = [
  'src/core-settings.ts coreSettings',
  'src/entries/entry-routes.ts entryRoutes',
  'src/parts/metrics/exposition.ts exposition',
  'src/parts/page/browser/editor.ts openEditor',
  'src/parts/page/browser/fields.ts createGenerator'
]
/** What decides who may do what, and who somebody is; and who may name it. */
const JUDGES = ['sees', 'covers', 'mayCall', 'tokens']
const MAY_JUDGE: { readonly [path: string]: readonly string[] } = {
  'src/accounts/accounts.ts': ['covers', 'sees', 'tokens'],
  'src/core-settings.ts': ['mayCall'],
  'src/embedding/operations.ts': ['mayCall'],
  'src/entries/entry-commands.ts': ['sees'],
  'src/entries/entry-routes.ts': ['mayCall', 'sees'],
  'src/entries/entry-table.ts': ['sees'],
  'src/http/pipeline.ts': ['mayCall'],
  'src/knowledge/disclosure.ts': ['sees'],
  'src/knowledge/exposure.ts': ['mayCall', 'sees'],
  'src/parts/operator/salvage/salvage-state.ts': ['tokens'],
  'src/parts/operator/salvage/salvage.ts': ['tokens'],
  'src/parts/page-api/deleted.ts': ['sees'],
  'src/parts/page-api/history.ts': ['sees'],
  'src/parts/page-api/listing.ts': ['sees'],
  'src/parts/page-api/page-api-routes.ts': ['mayCall'],
  'src/parts/page/page-routes.ts': ['mayCall'],
  'src/rights/rights.ts': ['covers', 'mayCall', 'sees'],
  'src/store/state.ts': ['tokens']
}
const TOP_LEVEL = [
  'package.json', 'package-lock.json', 'tsconfig.json', 'src', 'test', 'data', 'README.md',
  '.ci', '.gitignore', 'LICENSE', 'SECURITY.md', 'CHANGELOG.md'
]
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
  /** What is held to it, instead of `src`. */
  readonly tree?: Sources
  /** Sources that break it, in lines, and what is found in them. */
  readonly bad?: { readonly [path: string]: readonly string[] }
  readonly found?: readonly string[]
}

const lineOf = (text: string, index: number): number => text.slice(0, index).split('\n').length

interface Import {
  readonly line: number
  /** As it is written; undefined where it is computed. */
  readonly from: string | undefined
  /** The names taken; `*` is all of them. */
  readonly names: readonly string[]
  /** Whether nothing of it is left at run time: an inline `type` is not enough for that. */
  readonly isType: boolean
}

/** In the one way in which imports are written here. */
const IMPORT = new RegExp([
  joined(/^(?:import|export) (?<type>type )?(?:\*(?: as \w+)?|(?<one>\w+)?(?:, )?(?:\{(?<names>[^}]*)\})?)/,
    / from ['"](?<from>[^'"]+)['"]/),
  /^import ['"](?<bare>[^'"]+)['"]/, /\bimport\((?<computed>[^)\n]+)\)/, /^import \w+ = (?<old>.*)/
].map(({ source }) => source).join('|'), 'gm')

function importsOf(text: string): readonly Import[] {
  return [...text.matchAll(IMPORT)].map(({ groups: { type, one, names, from, bare, computed } = {}, index }) => {
    const [, dynamic] = /^['"]([^'"]+)['"]$/.exec(computed ?? '') ?? []
    const named = names?.split(',').map(name => name.trim().replace(/^type /, '').split(' as ')[0]!).filter(name =>
      name !== '')
    const taken = [...one === undefined ? [] : ['default'], ...named ?? []]
    return {
      line: lineOf(text, index), from: from ?? bare ?? dynamic, isType: type !== undefined,
      names: taken.length > 0 || bare !== undefined ? taken : ['*']
    }
  })
}

/** The path that a relative import means; undefined for another one. */
function targetOf(path: string, { from }: Import): string | undefined {
  return from !== undefined && /^\.\.?\//.test(from) ? posix.join(posix.dirname(path), from) : undefined
}

function moduleOf(path: string): Module | undefined {
  const heldAs = ({ holds }: Module): number => Math.max(0, ...holds.filter(one =>
    one.endsWith('/') ? path.startsWith(`src/${one}`) : path === `src/${one}`).map(({ length }) => length))
  const longest = Math.max(...MODULES.map(heldAs))
  return longest === 0 ? undefined : MODULES.find(one => heldAs(one) === longest)
}

const layerOf = (module: Module): number => LAYERS.findIndex(layer => layer.includes(module))
const isPart = ({ holds }: Module): boolean => /^parts\/[a-z-]+\/$/.test(holds[0]!)

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
  const strays = [...sources.keys()].filter(path => moduleOf(path) === undefined).map(path => `${path} is in no module`)
  return [...strays, ...eachImport(sources, (path, one) => {
    const module = moduleOf(path)
    const target = moduleOf(targetOf(path, one) ?? '')
    if (module === undefined || target === undefined || module === target) return undefined
    const mayImportPart = module.name === 'parts' || module.name === `${target.name} program`
    const isBelow = layerOf(target) < layerOf(module) && target.name !== 'browser' && (!isPart(target) || mayImportPart)
    return isBelow ? undefined : `imports ${target.name} from ${module.name}`
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

/** Of the store, which knows slices and is handed them; their types name what the state holds. */
function roomsOfStore(sources: Sources): string[] {
  return eachImport(sources, (path, one) => {
    const [, room] = /^src\/(entries|accounts|knowledge)\//.exec(targetOf(path, one) ?? '') ?? []
    return path.startsWith('src/store/') && room !== undefined && !one.isType ? `imports ${room}` : undefined
  })
}

function strayModules(sources: Sources): string[] {
  return eachImport(sources, (path, { from }) => {
    const isKnown = from?.startsWith('node:') !== true || moduleOf(path)?.ofNode.includes(from) === true
    return isKnown ? undefined : `imports ${from}`
  })
}

/** What a module may import of Node and does not. */
function idleAllowances(sources: Sources): string[] {
  const used = new Set([...sources].flatMap(([path, text]) =>
    importsOf(text).map(({ from }) => `${moduleOf(path)?.name} ${from}`)))
  return MODULES.flatMap(({ name, ofNode }) => ofNode.map(one => `${name} ${one}`)).filter(one => !used.has(one))
}

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node)
  ts.forEachChild(node, child => walk(child, visit))
}

const parsed = new Map<string, ts.SourceFile>()

function parse(text: string): ts.SourceFile {
  const known = parsed.get(text) ?? ts.createSourceFile('source.ts', text, ts.ScriptTarget.ES2023, true)
  parsed.set(text, known)
  return known
}

/** The global names that are contacts with the outside; what the programs may use, and what everybody may. */
const GLOBALS = new Map<string, { readonly inPrograms: boolean, readonly members: readonly string[] }>([
  ['process', { inPrograms: true, members: ['pid', 'cwd', 'version', 'memoryUsage', 'cpuUsage', 'report'] }],
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
      if (!allowed.members.includes(member.slice(1))) found.push(`${path}:${lineOf(text,
        node.getStart())} ${node.getText()}${member}`)
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
  return [...sources].filter(([path]) => moduleOf(path)?.name === 'browser').flatMap(([path, text]) => {
    const found: string[] = []
    walk(parse(text), node => {
      if (ts.isIdentifier(node) && UNSAFE.has(node.text)) found.push(`${path}:${lineOf(text,
        node.getStart())} ${node.text}`)
      if (ts.isPropertyAccessExpression(node) && /^(document\.write|window\.open)$/.test(node.getText())) {
        found.push(`${path}:${lineOf(text, node.getStart())} ${node.getText()}`)
      }
      if (!ts.isCallExpression(node) || !node.expression.getText().endsWith('.setAttribute')) return
      if (!/^'(href|form|list|aria-(labelledby|describedby))'$/.test(node.arguments[0]?.getText() ??
        '')) found.push(`${path}:${lineOf(text, node.getStart())} ${node.getText()}`)
    })
    return found
  })
}

/** Conditional expressions that are a part of another one. */
function nestedTernaries(sources: Sources): string[] {
  const found: string[] = []
  for (const [path, text] of sources) {
    walk(parse(text), node => {
      if (!ts.isConditionalExpression(node)) return
      const holder = ts.isParenthesizedExpression(node.parent) ? node.parent.parent : node.parent
      if (ts.isConditionalExpression(holder)) found.push(`${path}:${lineOf(text, node.getStart())}`)
    })
  }
  return found
}

/**
 * Calls in the operator's program with as many arguments as a list has items, which may be more than a call can have.
 */
function spreadArguments(sources: Sources): string[] {
  return [...sources].filter(([path]) => /^src\/parts\/(operator\/)?[^/]+$/.test(path)).flatMap(([path, text]) => {
    const found: string[] = []
    const source = parse(text)
    // What was given as arguments is no more than a call can have.
    const given = new Set<string>()
    walk(source, node => { if (ts.isParameter(node) &&
      node.dotDotDotToken !== undefined) given.add(node.name.getText()) })
    walk(source, node => {
      if (!ts.isCallExpression(node) && !ts.isNewExpression(node)) return
      const spread = node.arguments?.find(ts.isSpreadElement)?.expression
      if (spread === undefined || given.has(/^\w*/.exec(spread.getText())![0])) return
      found.push(`${path}:${lineOf(text, node.getStart())} ...${spread.getText()}`)
    })
    return found
  })
}

const OTHERS = ['README.md', 'SECURITY.md', 'package.json', 'tsconfig.json', 'test/tsconfig.json', '.ci/run']
const CONTACTS = [
  'process.exit(1)', "process.on('exit', f)", 'process.env.HOME', 'console.log(1)', 'process.pid', 'process.cwd()',
  'use({ process })', "process['exit']()", 'const { env } = process', 'a.process.console()',
  'interface A { console: string }', 'await fetch(url)', "eval('1')", 'globalThis.process', '// process.exit'
]
/** What a page must not hold: scripts and styles of its own, handlers, forms that go somewhere, foreign addresses. */
const UNSAFE_MARKUP =
  joined(/<script(?![^>]* src="web\/)[^>]*>|<style|\s(?:on\w+|style|action|srcdoc)=|(?:src|href)="(?!web\/|#)[^"]*"|/,
    /\bjavascript:/i)

function linesWith(sources: Sources, pattern: RegExp): string[] {
  return [...sources].flatMap(([path, text]) =>
    text.split('\n').flatMap((line, i) => pattern.test(line) ? [`${path}:${i + 1}`] : []))
}

/** Tests that do not run, and those that keep others from running; a reason that is worked out has a name. */
const CUT = new RegExp([
  /\b(?:test|it|describe|suite|t|context)\.(?:test\.)?(?:only|skip|todo)\b/,
  /\b(?:test|it|describe)\(.*\{.*\b(?:(?:only|todo):|skip: (?:true|'|"|`|!))/
].map(({ source }) => source).join('|'))

interface Export {
  readonly name: string
  readonly index: number
  readonly isType: boolean
}

function exportsOf(text: string): readonly Export[] {
  const declared = /^export (?:default |async |abstract )*(const|let|function\*?|class|interface|type) (\w+)/gm
  return [...text.matchAll(declared)].map(({ 1: kind = '', 2: name = '', index }) =>
    ({ name, index, isType: /interface|type/.test(kind) }))
}

/** Exported values, but those of `surface`, that no source and no user imports. A type is there for signatures. */
function deadExports(sources: Sources, users: Sources, surface: string): string[] {
  const used = new Set<string>()
  for (const [path, text] of [...sources, ...users]) {
    for (const one of importsOf(text)) for (const name of one.names) used.add(`${targetOf(path, one)} ${name}`)
  }
  return [...sources].filter(([path]) => path !== surface && !used.has(`${path} *`)).flatMap(([path, text]) =>
    exportsOf(text).filter(({ isType }) => !isType).map(({ name }) => `${path} ${name}`).filter(one => !used.has(one)))
}

function longFiles(sources: Sources): string[] {
  return [...sources].map(([path, text]) => [path, text.replace(/\n$/, '').split('\n').length] as const)
    .filter(([, lines]) => lines > MAX_LINES).map(([path, lines]) => `${path} has ${lines} lines`)
}

/** Functions with more lines than a screen has, by their own names, or those of what they are given to. */
function longFunctions(sources: Sources): string[] {
  return [...sources].flatMap(([path, text]) => {
    const found: string[] = []
    walk(parse(text), node => {
      if (!ts.isFunctionLike(node) || !('body' in node) || node.body === undefined) return
      const lines = node.getText().split('\n').length
      const { name = (node.parent as { readonly name?: ts.Node }).name } = node as { readonly name?: ts.Node }
      const called = name?.getText() ?? `line ${lineOf(text, node.getStart())}`
      if (lines > MAX_FUNCTION_LINES) found.push(`${path} ${called}`)
    })
    return found
  })
}

/** Who names a judge: imports or calls one, or asks a state for its tokens. */
function judging(sources: Sources): string[] {
  return [...sources].filter(([path]) => !path.includes('/browser/')).flatMap(([path, text]) => {
    const named = new Set<string>()
    walk(parse(text), node => {
      if (!ts.isIdentifier(node) || !JUDGES.includes(node.text)) return
      const isOfState = ts.isPropertyAccessExpression(node.parent) && node.parent.name === node &&
        /\bstate$/.test(node.parent.expression.getText())
      if (node.text !== 'tokens' || isOfState) named.add(node.text)
    })
    return [...named].sort().map(name => `${path} ${name}`)
  })
}

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
      'src/journal/a.ts': ["import { b } from '../http/b.ts'", "import { Failure } from '../errors.ts'"],
      'src/http/b.ts': ["import type { Entry } from '../settings.ts'", "import { a } from '../store/a.ts'"],
      'src/errors.ts': ["import { MAX } from './limits.ts'"],
      'src/store/c.ts': ["import { b } from '../http/b.ts'", "export * from '../journal/d.ts'"],
      'src/service.ts': ["import { run } from './parts/operator/run.ts'", "import { SETTINGS } from './settings.ts'"],
      'src/parts/operator/run.ts': ["import { Part } from '../../part.ts'", "import { e } from '../etcd/e.ts'"],
      'src/parts.ts': ["export { operator } from './parts/operator/part.ts'"],
      'src/parts/page/browser/main.ts': ["import { MAX } from '../../../limits.ts'", "import { Api } from './api.ts'"],
      'src/cellar/e.ts': []
    },
    found: [
      'src/cellar/e.ts is in no module', 'src/journal/a.ts:1 imports http from journal',
      'src/http/b.ts:1 imports settings from http', 'src/errors.ts:1 imports limits from errors',
      'src/store/c.ts:1 imports http from store', 'src/service.ts:1 imports operator from service',
      'src/parts/operator/run.ts:2 imports etcd from operator',
      'src/parts/page/browser/main.ts:1 imports limits from browser'
    ]
  },
  'no circle of imports remains at run time': {
    find: circles,
    bad: {
      'src/journal/c.ts': ["import { a } from './a.ts'"],
      'src/journal/a.ts': ["import { type B } from './b.ts'"],
      'src/journal/b.ts': ["import { c } from './c.ts'", "import type { D } from './d.ts'"],
      'src/journal/d.ts': ["import { b } from './b.ts'"],
      'src/store/e.ts': ["import { e } from './e.ts'"]
    },
    found: ['src/journal/c.ts', 'src/journal/a.ts', 'src/journal/b.ts', 'src/store/e.ts']
  },
  'the store imports nothing of entries, accounts and knowledge but types': {
    find: roomsOfStore,
    bad: {
      'src/store/a.ts': [
        "import { b } from '../entries/b.ts'", "import type { C } from '../accounts/c.ts'",
        "import { type D } from '../knowledge/d.ts'", "import { e } from '../rights/e.ts'"
      ],
      'src/knowledge/d.ts': ["import { b } from '../entries/b.ts'"]
    },
    found: ['src/store/a.ts:1 imports entries', 'src/store/a.ts:3 imports knowledge']
  },
  'each module imports the modules of Node that it is allowed': { find: strayModules },
  'what a module is allowed of Node is used': { find: idleAllowances },
  'only the two programs, and the way out of the access log, know the process and the console': {
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
  'no ternary stands in another one': {
    find: nestedTernaries,
    bad: { 'src/a.ts': ['a ? b : c', 'a ? b : c ? d : e', 'a ? (b ? c : d) : e', 'a ? f(b ? c : d) : e'] },
    found: ['src/a.ts:2', 'src/a.ts:3']
  },
  'no call of the operator\'s program has as many arguments as a list has items': {
    find: spreadArguments,
    bad: { 'src/parts/operator/a.ts': [
      'a.push(...b)', 'f([...b])', 'Math.max(0, ...b.map(c))', 'new A(...b())', 'const d = (...e) => f(...e.map(g))'
    ] },
    found: ['1 ...b', '3 ...b.map(c)', '4 ...b()'].map(one => `src/parts/operator/a.ts:${one}`)
  },
  'the page makes no markup, script or style of texts, and stores nothing': { find: unsafeNames },
  'nothing is left to be finished later': {
    find: sources => linesWith(sources, new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X'.repeat(3)].join('|')})\\b`)),
    tree: new Map([...SRC, ...TEST, ...OTHERS.map(path => [path, readText(path)] as const)])
  },
  'every test runs': {
    find: sources => linesWith(sources, CUT),
    tree: new Map([...TEST].filter(([path]) => !['test/tidy.newest.test.ts',
      'test/runner.newest.ci.test.ts'].includes(path))),
    bad: { 'test/a.test.ts': [
      "test.only('a', f)", "describe.skip('b', f)", "t.todo('c')", "test('d', { timeout: 1, skip: true }, f)",
      "test('e', { only: true }, f)", "await t.test.skip('f', f)", "test('g', { skip: REASON }, f)"
    ] },
    found: [1, 2, 3, 4, 5, 6].map(line => `test/a.test.ts:${line}`)
  },
  'every exported value is imported by a source or a test': {
    find: sources => deadExports(sources, TEST, SURFACE),
    bad: {
      'src/a.ts': ['export const one = 1', 'export type Five = 5', 'export async function two() {}'],
      'src/b.ts': ["export { one as six } from './a.ts'", 'export function seven() {}'],
      'src/c.ts': ['export const nine = 9'],
      'src/d.ts': ["import type { Five as V } from './a.ts'", "await import('./c.ts')"],
      [SURFACE]: ["export { seven } from '../b.ts'"]
    },
    found: ['src/a.ts two']
  },
  [`a file of src has at most ${MAX_LINES} lines`]: { find: longFiles },
  [`a function of src has at most ${MAX_FUNCTION_LINES} lines`]: {
    find: sources => longFunctions(sources).filter(one => !LONG_FUNCTIONS.includes(one)),
    bad: { 'src/a.ts': ['const short = () => {', ...Array(58).fill('f()'), '}', 'function long() {',
      ...Array(59).fill('f()'), '}'] },
    found: ['src/a.ts long']
  },
  'only the named files ask who may do what, to which entries, and for the tokens of the state': {
    find: sources => judging(sources).filter(one => {
      const [path, name] = one.split(' ') as [string, string]
      return MAY_JUDGE[path]?.includes(name) !== true
    }),
    bad: { 'src/a.ts': ["import { sees as s } from './b.ts'", 'if (covers(a, b)) f(store.state.tokens, tokens)'] },
    found: ['src/a.ts covers', 'src/a.ts sees', 'src/a.ts tokens']
  },
  [`a line of src and test has at most ${MAX_COLUMNS} characters`]: {
    find: sources => [...sources].flatMap(([path, text]) => text.split('\n').flatMap((line, i) =>
      line.length > MAX_COLUMNS && [...line].length > MAX_COLUMNS ? [`${path}:${i + 1}`] : [])),
    tree: new Map([...SRC, ...TEST]),
    bad: { 'test/a.test.ts': ['ñ'.repeat(MAX_COLUMNS), 'ñ'.repeat(MAX_COLUMNS + 1)] },
    found: ['test/a.test.ts:2']
  },
  [`a line of code of src has at most ${MAX_CODE_COLUMNS} characters`]: {
    find: sources => [...sources].filter(([path]) => !MAY_BE_WIDE.some(one => path.startsWith(one)))
      .flatMap(([path, text]) => text.split('\n').flatMap((line, i) =>
        [...line].length > MAX_CODE_COLUMNS && !/^ *\/[^/*].*\/$/.test(line) ? [`${path}:${i + 1}`] : [])),
    bad: { 'src/a.ts': ['a'.repeat(MAX_CODE_COLUMNS), 'a'.repeat(MAX_CODE_COLUMNS + 1), `  /${'a'.repeat(100)}/`] },
    found: ['src/a.ts:2']
  },
  'no file or folder has a catch-all name': {
    find: sources => [...sources.keys()].filter(path =>
      path.split('/').some(part => CATCH_ALL_NAMES.test(part.split('.')[0]!))),
    tree: new Map([...SRC, ...TEST])
  }
}

for (const [title, { find, bad = {}, found = [], tree = SRC }] of Object.entries(RULES)) {
  test(title, () => {
    const sources = Object.entries(bad).map(([path, lines]) => [path, lines.join('\n')] as const)
    if (sources.length > 0) assert.deepEqual(find(new Map(sources)), found, 'the rule finds what is wrong')
    assert.deepEqual(find(tree), [])
  })
}

test('the allowances keep the disk in journal/, and sockets there (the lock), in http/, etcd/ and operator/', () => {
  const allowed = (pattern: RegExp): string[] =>
    MODULES.filter(({ ofNode }) => ofNode.some(one => pattern.test(one))).map(({ name }) => name)
  assert.deepEqual(allowed(/^node:fs/), ['journal'])
  assert.deepEqual(allowed(/^node:(http|http2|https|net|tls|dgram|dns)\b/), ['journal', 'http', 'etcd', 'operator'])
  assert.deepEqual(allowed(/^node:(child_process|cluster|worker_threads|vm|module|process|inspector)\b/), [])
})

test('the long functions and the judges that are excused are there', () => {
  const long = longFunctions(SRC)
  assert.deepEqual(LONG_FUNCTIONS.filter(one => !long.includes(one)), [], 'take them out of the list')
  const judges = judging(SRC)
  const excused = Object.entries(MAY_JUDGE).flatMap(([path, names]) => names.map(name => `${path} ${name}`))
  assert.deepEqual(excused.filter(one => !judges.includes(one)), [], 'take them out of the list')
})

test('no two files of src have one name, but for the part.ts of each part', () => {
  const names = [...SRC.keys()].filter(path => !path.includes('/browser/')).map(path => posix.basename(path))
  assert.deepEqual(names.filter((name, i) => names.indexOf(name) !== i && name !== 'part.ts'), [])
})

test('the core knows nothing of etcd, the one part whose name is no ordinary word', () => {
  const core = new Map([...SRC].filter(([path]) => !path.startsWith('src/parts') && path !== 'src/admin.ts'))
  assert.deepEqual(linesWith(core, /etcd/i), [])
})

test('the markup of the page holds no script, style, handler or foreign address', () => {
  assert.doesNotMatch(readText('src/parts/page/browser/page.html'), UNSAFE_MARKUP)
  const styles = readdirSync(join(ROOT, 'src/parts/page/browser')).filter(name => name.endsWith('.css'))
  assert.ok(styles.length > 0)
  for (const name of styles) assert.doesNotMatch(readText(`src/parts/page/browser/${name}`),
    /@import|url\(|expression\(/, name)
})

test('the packages are the three for development, with the types of the oldest Node, and none for running', () => {
  const manifest = JSON.parse(readText('package.json'))
  assert.deepEqual(Object.keys(manifest).filter(field => field.endsWith('ependencies')), ['devDependencies'])
  assert.deepEqual(Object.keys(manifest.devDependencies).sort(), ['@types/node', 'tsx', 'typescript'])
  // A newer API than the oldest supported Node has must not compile.
  assert.ok(manifest.devDependencies['@types/node'].startsWith(manifest.engines.node.replace('>=', '~')))
})

test('the lock file names no registry, and every package in it is for development', () => {
  for (const [path, entry] of Object.entries<any>(JSON.parse(readText('package-lock.json')).packages)) {
    if (path === '') continue
    assert.deepEqual([entry.resolved, typeof entry.integrity, entry.dev], [undefined, 'string', true], path)
  }
})

test('whatever embedders import has a doc comment', () => {
  const missing = importsOf(readText(SURFACE)).flatMap(one => one.names.filter(name => {
    const text = SRC.get(targetOf(SURFACE, one) ?? '') ?? ''
    const found = exportsOf(text).find(declared => declared.name === name)
    return found !== undefined && !/\*\/\s*$/.test(text.slice(0, found.index))
  }))
  assert.deepEqual(missing, [])
})

test('the top of the repository holds what the design names, and all of it', () => {
  const ignored = readText('.gitignore').split('\n').map(line => line.replace(/\/$/, ''))
  const names = readdirSync(ROOT).filter(name => TOP_LEVEL.includes(name) || !/^\.|\.tgz$/.test(name) &&
    !ignored.includes(name))
  assert.deepEqual(names.sort(), [...TOP_LEVEL].sort())
})
