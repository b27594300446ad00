/** How much code there is to read, in words: names, signs and texts, however the lines are broken. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const SRC = fileURLToPath(new URL('../../src/', import.meta.url))
/** Files that are mostly one long text are data. */
const DATA_SHARE = 0.6

function wordsIn(text: string): number {
  const source = ts.createSourceFile('a.ts', text, ts.ScriptTarget.ES2023, true)
  let [words, ofTexts] = [0, 0]
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) return
    if (node.getChildCount(source) === 0 && node.kind !== ts.SyntaxKind.EndOfFileToken) {
      words++
      if (ts.isStringLiteralLike(node)) ofTexts += node.getWidth(source)
    }
    for (const child of node.getChildren(source)) if (!ts.isJSDoc(child)) visit(child)
  }
  visit(source)
  return ofTexts > text.length * DATA_SHARE ? 0 : words
}

/** By the path below `src`. */
const TEXTS: ReadonlyMap<string, string> = new Map(readdirSync(SRC, { recursive: true }).map(String)
  .filter(path => path.endsWith('.ts')).map(path => [path, readFileSync(join(SRC, path), 'utf8')]))

const wordsOf = (paths: Iterable<string>): number =>
  [...paths].reduce((sum, path) => sum + wordsIn(TEXTS.get(path)!), 0)

export function wordsOfSources(): { readonly core: number, readonly parts: number } {
  const paths = [...TEXTS.keys()]
  const isPart = (path: string): boolean => path.startsWith('parts/')
  return { core: wordsOf(paths.filter(path => !isPart(path))), parts: wordsOf(paths.filter(isPart)) }
}

/** What the files of the core import at run time, they themselves included, up to what is taken as given. */
export function wordsFrom(roots: readonly string[], given: readonly string[]): number {
  const read = new Set<string>()
  const follow = (path: string): void => {
    const isGiven = given.some(one => one.endsWith('/') ? path.startsWith(one) : path === one)
    if (read.has(path) || isGiven || path.startsWith('parts/') || !TEXTS.has(path)) return
    read.add(path)
    for (const [, from] of TEXTS.get(path)!.matchAll(/^(?:import|export)(?! type)\b[^'"]*?['"](\.[^'"]+)['"]/gm)) {
      follow(posix.join(posix.dirname(path), from!))
    }
  }
  for (const root of roots) follow(root)
  return wordsOf(read)
}

/** The files below `src`, or folders with a slash at the end, that a cell of a table names, but for tests. */
export function pathsIn(cell: string): string[] {
  return [...cell.matchAll(/`([\w./-]+(?:\.ts|\/))`/g)].map(found => found[1]!)
    .filter(path => !path.startsWith('test/'))
}
export const isSource = (path: string): boolean => TEXTS.has(path) ||
  path.endsWith('/') && [...TEXTS.keys()].some(one => one.startsWith(path))
