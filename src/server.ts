#!/usr/bin/env node
/**
 * The entry of the program. It loads nothing before it knows that this Node is new enough: an older one prints a stack.
 * Node 10 can read this file, since it has no static import, no export and no `await` outside of a function.
 */
{
  // At this signal Node would open its debugger, to every user of this machine.
  process.on('SIGUSR1', () => {})
  process.umask(0o077) // what is made here, the sockets too, is its owner's alone from its first moment
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 12)) {
    void import('./main.ts').then(({ runServer }) => runServer())
  } else {
    process.stderr.write(`error: this is Node ${process.versions.node}; 20.12 or later is needed\n`)
    process.exitCode = 1
  }
}
