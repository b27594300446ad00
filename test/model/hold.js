/**
 * Loaded before a program (`--import`): a slow disk. While a file `HOLD/rewrite` exists, a rewrite of the journal does
 * not get on; while `HOLD/read` exists, reading the file that it names does not. `HOLD/reached` says that it waits.
 */
import fs, { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const HOLD = process.env.HOLD
const REWRITES = /rewrit|compact|checkpoint|reencrypt/
const [rewrite, read] = ['rewrite', 'read'].map(name => `${HOLD}/${name}`)
const reached = () => { if (!existsSync(`${HOLD}/reached`)) writeFileSync(`${HOLD}/reached`, '') }
const cell = new Int32Array(new SharedArrayBuffer(4))

const { setImmediate: soon, setTimeout: later } = globalThis
globalThis.setImmediate = (act, ...given) => {
  if (!existsSync(rewrite) || !REWRITES.test(new Error().stack)) return soon(act, ...given)
  const look = () => {
    if (!existsSync(rewrite)) return act(...given)
    reached() // each time: the next step may hold what the last one has just let go
    later(look, 10)
  }
  return soon(look)
}

const { openSync } = fs
fs.openSync = (path, ...given) => {
  while (existsSync(read) && String(path) === readFileSync(read, 'utf8')) {
    reached()
    Atomics.wait(cell, 0, 0, 10)
  }
  return openSync(path, ...given)
}
syncBuiltinESMExports()
