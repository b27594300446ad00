/** What the shells complete, asked of the shells themselves. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { ADMIN, adminProcess } from '../support/admin.ts'
import { freshFolder } from '../support/service.ts'

/** For each shell, what comes before its script, and how it is asked what may follow. */
const SHELLS: { readonly [shell: string]: readonly [before: string, asked: string] } = {
  bash: ['', "COMP_WORDS=(x 'user' ''); COMP_CWORD=2; _password_entry_admin; echo ${COMPREPLY[*]}"],
  // `_describe` is there in an interactive shell alone.
  zsh: [
    'autoload -U compinit && compinit -D -u',
    '_describe() { echo ${found%%:*} }; words=(x user ""); CURRENT=3; _password_entry_admin'
  ],
  fish: ['', "set -x HOME (mktemp -d); echo (complete -C 'password-entry-admin user ' | cut -f1)"]
}

for (const [shell, [before, asked]] of Object.entries(SHELLS)) {
  const missing = spawnSync(shell, ['-c', 'true']).error === undefined ? false : `there is no ${shell} here`
  test(`${shell} completes what is typed, after the installed name and where node runs the file`, { skip: missing }, async t => {
    const folder = freshFolder(t)
    const ask = async (script: string, env: NodeJS.ProcessEnv): Promise<void> => {
      const text = [before, script, asked].join('\n')
      // A locale that is not installed is something that some shells warn of.
      const { stdout, stderr } = spawnSync(shell, ['-c', text], { encoding: 'utf8', env: { ...env, LC_ALL: 'C' } })
      assert.deepEqual([stdout.trim().split(' ').sort(), stderr], [['add', 'edit', 'list', 'password', 'remove'], ''])
    }
    const { out } = await adminProcess(folder, `completion ${shell}`)
    assert.equal(out.startsWith('#compdef password-entry-admin\n'), shell === 'zsh')
    await ask(out, process.env)
    // In a folder whose name the shell has to have quoted.
    const quoted = join(folder, "it's")
    for (const name of ['dist', "it's"]) cpSync(dirname(ADMIN), join(folder, name), { recursive: true })
    copyFileSync(join(dirname(ADMIN), '../package.json'), join(folder, 'package.json'))
    await ask(spawnSync(process.execPath, [join(quoted, 'admin.js'), 'completion', shell], { encoding: 'utf8' }).stdout, process.env)
    // As npm installs it: a link that may be run.
    const installed = join(folder, 'password-entry-admin')
    chmodSync(join(folder, 'dist/admin.js'), 0o755)
    symlinkSync(join(folder, 'dist/admin.js'), installed)
    const env = { ...process.env, PATH: `${folder}:${dirname(process.execPath)}:${process.env['PATH']}` }
    const { stdout } = spawnSync('password-entry-admin', ['completion', shell], { encoding: 'utf8', env })
    assert.ok(stdout !== out && !stdout.includes(folder))
    await ask(stdout, env)
  })
}
