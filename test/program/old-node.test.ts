/** A Node that is too old gets one line and not a stack. `npm run test:nodes` tries it with such Nodes. */
import { strict as assert } from 'node:assert'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Script } from 'node:vm'
import { freshFolder } from '../support/service.ts'

for (const name of ['server', 'admin']) {
  const program = fileURLToPath(new URL(`../../dist/${name}.js`, import.meta.url))

  test(`the entry of ${name} is a script that Node 10 can parse: no module syntax, nothing newer than ES2018`, () => {
    const text = readFileSync(program, 'utf8')
    assert.ok(new Script(text) instanceof Script) // throws for a static import, an export, an await at the top
    const code = text.replace(/\/\*[^]*?\*\//g, '')
    assert.doesNotMatch(code, /\?\.|\?\?|catch \{|\d_\d|\|\|=|&&=|#\w+ in|\.at\(|Object\.hasOwn/)
  })

  test(`on Node 20.11 ${name} ends with 1 and one line that says which Node it needs`, t => {
    const folder = freshFolder(t)
    const preload = join(folder, 'older.cjs')
    writeFileSync(preload, "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: " +
      "'20.11.1' } })")
    const { status, stdout, stderr } = spawnSync(process.execPath, ['-r', preload, program, '--help'],
      { encoding: 'utf8' })
    assert.deepEqual([status, stdout, stderr], [1, '', 'error: this is Node 20.11.1; 20.12 or later is needed\n'])
  })
}
