/**
 * Loaded before a program (`--import`): a slow disk. While a file `HOLD/rewrite` exists, a journal that was written
 * again is not read back; while `HOLD/read` exists, reading the file that it names does not. What waits renames that
 * file, to `rewrite.reached` or `read.reached`: in one step, so that none is left behind which was let go meanwhile.
 */
import fs, { existsSync, readFileSync, renameSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const HOLD = process.env.HOLD
const PART = /\.jsonl\.\d+\.part$/
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
const heldBy = kind => ifThere(() => readFileSync(`${HOLD}/${kind}`, 'utf8')) ??
  ifThere(() => readFileSync(`${HOLD}/${kind}.reached`, 'utf8'))

function isHeld(kind, what) {
  if (heldBy(kind) !== what) return false
  ifThere(() => renameSync(`${HOLD}/${kind}`, `${HOLD}/${kind}.reached`))
  return existsSync(`${HOLD}/${kind}.reached`)
}

const { openSync } = fs
fs.openSync = (path, flags, ...given) => {
  const isReadBack = PART.test(String(path)) && (flags & fs.constants.O_CREAT) === 0
  while (isHeld('read', String(path)) || (isReadBack && isHeld('rewrite', ''))) Atomics.wait(cell, 0, 0, 10)
  return openSync(path, flags, ...given)
}
syncBuiltinESMExports()
