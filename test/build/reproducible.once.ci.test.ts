/** The build is a function of the sources: the same bytes in any folder, with the right checksums. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { freshFolder } from '../support/service.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SUMS = 'SHA256SUMS'

function filesOf(dist: string): ReadonlyMap<string, string> {
  const files = readdirSync(dist, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  const paths = files.map(({ path, name }) => join(path, name).slice(dist.length + 1))
  return new Map(paths.filter(path => path !== SUMS).sort()
    .map(path => [path, readFileSync(join(dist, path), 'latin1')]))
}

test('two builds in two folders have the same bytes, and their checksums are right', t => {
  const folder = join(freshFolder(t), 'another place')
  for (const name of ['src', 'package.json', 'tsconfig.json']) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const env = { PATH: `${join(ROOT, 'node_modules', '.bin')}:${process.env['PATH']}` }
  const [, build] = /; then (.*); fi$/.exec(scripts.build) ?? []
  execFileSync('sh', ['-c', build!], { cwd: folder, env })
  const made = filesOf(join(folder, 'dist'))
  assert.ok(made.has('server.js') && made.has(join('journal', 'line.js')))
  assert.deepEqual(made, filesOf(join(ROOT, 'dist')))

  const [, command] = /^npm run --silent build && (.*)$/.exec(scripts.checksums) ?? []
  const sum = (): string => {
    execFileSync('sh', ['-c', command!], { cwd: folder })
    return readFileSync(join(folder, 'dist', SUMS), 'utf8')
  }
  const check = (): void => {
    execFileSync('sha256sum', ['--check', '--strict', SUMS], { cwd: join(folder, 'dist'), stdio: 'pipe' })
  }
  const sums = sum()
  assert.equal(sum(), sums)
  assert.equal(sums.trimEnd().split('\n').length, made.size, 'each file has its line, the list itself has none')
  check()
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'],
    { cwd: folder, stdio: 'pipe' })
  const paths: string[] = JSON.parse(packed.toString())[0].files.map((file: { path: string }) => file.path)
  const built = paths.filter(path => path.startsWith('dist/')).map(path => path.slice('dist/'.length))
  assert.deepEqual(built.sort(), [...made.keys()].sort(), 'what is summed is what is packed')
  writeFileSync(join(folder, 'dist', 'server.js'), '// another program\n')
  assert.throws(check)
  rmSync(join(folder, 'dist'), { recursive: true })
})
