/**
 * The built programs under every restriction, on every supported Node, and on some that are too old: `npm run
 * test:nodes`. The npm package `node` brings the Nodes, into `node_modules/.cache`. Ends with a table; not part of
 * `npm test`, for it downloads.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { RESTRICTIONS, tryRestriction } from '../support/restrictions.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The oldest one exactly, and the newest of each line. */
const VERSIONS = ['20.12.0', '20', '22', '24', '26']
/** Of those that are too old, what distributions still bring, and the newest. */
const TOO_OLD = ['10', '12', '14', '16', '18', '20.11.1']

/** The path of a Node, fetched if it is not there yet. */
function fetchNode(version: string): string {
  const folder = join(ROOT, 'node_modules', '.cache', `node-${version}`)
  const node = join(folder, 'node_modules', 'node', 'bin', 'node')
  if (!existsSync(node)) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{}')
    // Its install script puts the program in its place.
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts=false', `node@${version}`],
      { cwd: folder, stdio: 'pipe' })
  }
  return node
}

const rows: string[] = []
after(() => console.log(['', '| Node | restriction | result |', '| --- | --- | --- |', ...rows, ''].join('\n')))

for (const wanted of VERSIONS) {
  const node = fetchNode(wanted)
  const full = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1)
  const [major = 0, minor = 0] = full.split('.').map(Number)
  const place = { node, version: [major, minor] } as const
  describe(`Node ${full}`, () => {
    for (const restriction of RESTRICTIONS) {
      const missing = restriction.missing?.(place) ?? false
      test(restriction.name, { skip: missing }, async t => {
        rows.push(`| ${full} | ${restriction.name} | failed |`)
        await tryRestriction(t, restriction, place)
        rows[rows.length - 1] = `| ${full} | ${restriction.name} | works |`
      })
      if (missing !== false) after(() => rows.push(`| ${full} | ${restriction.name} | not tried: ${missing} |`))
    }
  })
}

for (const wanted of TOO_OLD) {
  const node = fetchNode(wanted)
  test(`Node ${wanted} is refused in one line`, () => {
    for (const program of ['server', 'admin']) {
      const { status, stdout, stderr } = spawnSync(node, [join(ROOT, 'dist', `${program}.js`)], { encoding: 'utf8' })
      assert.deepEqual([status, stdout], [1, ''])
      assert.match(stderr, /^error: this is Node [\d.]+; 20\.12 or later is needed\n$/)
    }
  })
}
