/** Loaded before a program (`--import`): it gets the signal `AT_PART` once it has made so many files `.part` as `PART` says. */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const { openSync } = fs
let made = 0
fs.openSync = (path, flags, ...given) => {
  const descriptor = openSync(path, flags, ...given)
  const isMade = String(path).endsWith('.part') && (flags & fs.constants.O_CREAT) !== 0
  if (isMade && ++made === Number(process.env.PART)) process.kill(process.pid, process.env.AT_PART)
  return descriptor
}
syncBuiltinESMExports()
