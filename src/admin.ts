#!/usr/bin/env node
/** The operator's program. It checks Node's version first. */
{
  // Node would open its debugger to every local user.
  process.on('SIGUSR1', () => {})
  process.umask(0o077) // files and sockets are the owner's alone
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 12)) {
    void import('./parts/operator/program/program.ts').then(async ({ runProgram }) => {
      process.exitCode = await runProgram(process.argv.slice(2))
    })
  } else {
    process.stderr.write(`error: this is Node ${process.versions.node}; 20.12 or later is needed\n`)
    process.exitCode = 1
  }
}
