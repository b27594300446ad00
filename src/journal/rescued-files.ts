/** Files beside a journal that is gone, one of which may hold the newest state. */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { MAX_LINE_BYTES, READ_CHUNK_BYTES } from '../limits.ts'
import { withFile, type Files } from './files.ts'
import { parseLine, type Line } from './line.ts'

/** What a stop after a failure has rescued. */
const RESCUED = /^journal\.rescued-.*\.jsonl$/
/** Rescued files, archives, and what the repair of an earlier version left. */
const STATES =
  /^(journal\.rescued-.*\.jsonl|journal\.jsonl\.(replaced|repaired)-.*|(archive|journal)-\d+-\d+\.jsonl)$/
/** Of a rescue that was killed. */
const RESCUE_PARTS = /^journal\.rescued-.*\.jsonl\.\d+\.part$/
const MAX_NAMED = 3

/** With what their last lines say. Undefined if there are none. */
export function statesLeft(files: Files, folder: string): string | undefined {
  return (
    named(files, folder, STATES, 'what was stored here') ??
    named(files, folder, RESCUE_PARTS, 'some or all of what was stored here')
  )
}

/** As `statesLeft`, of rescued files alone, for a journal that is there but damaged. */
export function rescuedLeft(files: Files, folder: string): string | undefined {
  return named(files, folder, RESCUED, 'a newer state')
}

function named(files: Files, folder: string, names: RegExp, what: string): string | undefined {
  if (files.stat(folder) === undefined) return undefined
  const found = files
    .list(folder)
    .filter(name => names.test(name))
    .map(name => join(folder, name))
    .map(path => ({ path, line: lastLine(files, path) }))
    .filter(({ line }) => line !== undefined)
    .sort((a, b) => b.line!.time.localeCompare(a.line!.time))
  const [first] = found
  if (first === undefined) return undefined
  const shown = found
    .slice(0, MAX_NAMED)
    .map(({ path, line }) => `${path} (${recordsUpTo(line!)}, the last of ${line!.time})`)
    .join(', ')
  const more = found.length > MAX_NAMED ? ` and ${found.length - MAX_NAMED} more` : ''
  const how =
    found.length === 1 && names !== RESCUE_PARTS
      ? `take it back with the operator's command journal restore ${first.path}`
      : "look at each (journal verify FILE), and take one back with the operator's command " +
        'journal restore FILE'
  return `${shown}${more} may hold ${what}: ${how}`
}

function recordsUpTo({ seq }: Line): string {
  return seq === 1 ? '1 record' : `${seq} records`
}

/** Not verified. Undefined if the file has none. */
function lastLine(files: Files, path: string): Line | undefined {
  try {
    return withFile(files, files.openToRead(path), file => {
      const { size } = files.openStat(file)
      for (let bytes = READ_CHUNK_BYTES; ; bytes *= 2) {
        const tail = Buffer.alloc(Math.min(bytes, size))
        files.readAt(file, tail, size - tail.length)
        const lines = tail.toString('latin1').split('\n').slice(0, -1)
        const line = parseLine(lines.at(-1) ?? '')
        if (line !== undefined || tail.length === size || bytes > 2 * MAX_LINE_BYTES) return line
      }
    })
  } catch {
    return undefined
  }
}
