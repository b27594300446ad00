#!/usr/bin/env node
/**
 * The entry of the operator's program. It loads nothing before it knows that this Node is new enough, as `server.ts`.
 */
{
  // At this signal Node would open its debugger, to every user of this machine.
  process.on('SIGUSR1', () => {})
  process.umask(0o077) // what is made here, the sockets too, is its owner's alone from its first moment
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 12)) {
    void import('./parts/operator/program.ts').then(async ({ runProgram }) => {
      process.exitCode = await runProgram(process.argv.slice(2))
    })
  } else {
    process.stderr.write(`error: this is Node ${process.versions.node}; 20.12 or later is needed\n`)
    process.exitCode = 1
  }
}
