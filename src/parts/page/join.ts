/**
 * A step of the build, after `tsc`: joins the page's modules into one, each after those that it imports, and its
 * styles, so that a browser asks for one file of each. What is joined stays readable; `node --check` then refuses two
 * names that are the same.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { disk } from '../../journal/files.ts'

const FOLDER = join(import.meta.dirname, 'browser')
const MAIN = 'main.js'
const PAGE = 'page.html'
/** In the order of the cascade. */
const STYLES = ['page.css', 'list.css', 'dialog.css']
const IMPORT = /^import \{[^}]*\} from ["']\.\/([\w-]+\.js)["'];\n/gm
/** Comments stay in the source, as those of the modules do. */
const COMMENT = /\/\*[^]*?\*\/\n?/g
const EXPORT = /^export (?=(?:async )?(?:class|const|function) )/gm

const textOf = (name: string): string => disk.read(join(FOLDER, name)).toString()

/** Names of modules in the order in which they can run. */
function ordered(name: string, before: readonly string[] = []): readonly string[] {
  if (before.includes(name)) return before
  const imported = [...textOf(name).matchAll(IMPORT)].map(([, from]) => from!)
  return [...imported.reduce((done, from) => ordered(from, done), before), name]
}

function withoutLinks(name: string): string {
  const text = textOf(name).replace(IMPORT, '').replace(/^export \{\};\n?/m, '').replace(EXPORT, '')
  if (/^(?:import|export)\b/m.test(text)) throw new Error(`${name}: an import or export of another form`)
  if (/;\n\s*[([`*/+-]/.test(text)) throw new Error(`${name}: a line that begins as the one before could go on`)
  // The source does without them at the ends of lines as well.
  return `// ${name}\n${text.replace(/;$/gm, '')}`
}

/** Tabs weigh less than spaces, and are read as well. */
function withTabs(text: string): string {
  return text.replace(/^(?: {4})+/gm, spaces => '\t'.repeat(spaces.length / 4))
}

/** Markup and styles are read without it. */
function withoutIndent(text: string): string { return text.replace(/^\s+/gm, '') }

/** Puts a text in the place of the files that it was made of. */
function replace(name: string, parts: readonly string[], joined: string): void {
  const descriptor = disk.openToOverwrite(join(FOLDER, name))
  const bytes = Buffer.from(joined)
  for (let at = 0; at < bytes.length;) at += disk.writeAt(descriptor, bytes.subarray(at), at)
  disk.truncate(descriptor, bytes.length)
  disk.close(descriptor)
  for (const part of parts) if (part !== name) disk.remove(join(FOLDER, part))
}

const modules = ordered(MAIN)
replace(MAIN, modules, withTabs(modules.map(withoutLinks).join('\n')))
replace(STYLES[0]!, STYLES, withoutIndent(STYLES.map(textOf).join('\n').replace(COMMENT, '')))
replace(PAGE, [], withoutIndent(textOf(PAGE)))
