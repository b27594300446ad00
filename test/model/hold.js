/**
 * Loaded before a program (`--import`): a slow disk. While a file `HOLD/rewrite` exists, a rewrite of the journal does
 * not get on; while `HOLD/read` exists, reading the file that it names does not. What waits renames that file, to
 * `rewrite.reached` or `read.reached`: in one step, so that none is left behind which was let go meanwhile.
 */
import fs, { existsSync, readFileSync, renameSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const HOLD = process.env.HOLD
const REWRITES = /rewrit|compact|checkpoint|reencrypt/
const cell = new Int32Array(new SharedArrayBuffer(4))

/** Does the step, unless a file is not there, or no longer. */
function ifThere(step) {
  try {
    return step()
  } catch {
    return undefined
  }
}

/** What is in the file of that kind, also where a process waits for it already. */
const heldBy = kind => ifThere(() => readFileSync(`${HOLD}/${kind}`, 'utf8')) ?? ifThere(() => readFileSync(`${HOLD}/${kind}.reached`, 'utf8'))

function isHeld(kind, what) {
  if (heldBy(kind) !== what) return false
  ifThere(() => renameSync(`${HOLD}/${kind}`, `${HOLD}/${kind}.reached`))
  return existsSync(`${HOLD}/${kind}.reached`)
}

const { setImmediate: soon, setTimeout: later } = globalThis
globalThis.setImmediate = (act, ...given) => {
  if (heldBy('rewrite') === undefined || !REWRITES.test(new Error().stack)) return soon(act, ...given)
  const look = () => { isHeld('rewrite', '') ? later(look, 10) : act(...given) }
  return soon(look)
}

const { openSync } = fs
fs.openSync = (path, ...given) => {
  while (isHeld('read', String(path))) Atomics.wait(cell, 0, 0, 10)
  return openSync(path, ...given)
}
syncBuiltinESMExports()
