/** Makes files for commands, such as a copy of the journal. */
import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { disk, type Files, type FileStat } from '../../../journal/files.ts'
import { systemCode } from '../../../errors.ts'
import type { EncodedEvent } from '../../../journal/journal.ts'
import { readKeyFile } from '../../../journal/keys.ts'
import { isoTime, nonces, sealBatch } from '../../../journal/line.ts'
import { READ_CHUNK_BYTES } from '../../../limits.ts'
import { makeWhole, type NewFile } from '../../commands/whole-file.ts'
import {
  OperatorError,
  type JournalRead,
  type JournalStatus,
  type Reached
} from '../../commands/command.ts'
import type { Ending } from '../../commands/signals.ts'
import { readWithBreaths } from '../commands/same-file.ts'
import { ofFile } from '../system-error.ts'

/** As `makeWhole`. Throws an `OperatorError` if the name is taken. A signal leaves no file. */
export async function makeFile<T>(
  ending: Ending,
  path: string,
  make: (file: NewFile) => T | Promise<T>,
  files: Files = disk,
  replaces?: FileStat
): Promise<T> {
  const target = resolve(path)
  try {
    return await makeWhole(files, target, make, { replaces, ending })
  } catch (error) {
    if (systemCode(error) === 'EEXIST') throw new OperatorError((error as Error).message)
    if (systemCode(error) === 'ESTALE')
      throw new OperatorError(`${(error as Error).message}, and was left as it is`)
    throw ofFile(error, target)
  }
}

interface HowSaved {
  readonly replaces?: FileStat | undefined
  readonly onText?: (text: string) => void
  /** Gives events to append; throws if the copy is not wanted. */
  readonly more?: (read: JournalRead) => readonly EncodedEvent[] | Promise<readonly EncodedEvent[]>
}

/** Newer records may exist elsewhere. */
function assertNewest({ fault, mayLack }: JournalStatus): void {
  if (mayLack === true) throw new OperatorError(`the newest records may be missing here: ${fault}`)
}

/** Hands lines on before all are verified. Throws as `assertNewest`. */
export async function copyLines(
  store: Reached,
  status: JournalStatus,
  write: (text: string) => void
): Promise<JournalRead> {
  assertNewest(status)
  let slice = ''
  const read = await store.read(status, (_record, _state, text) => {
    slice += `${text}\n`
    if (slice.length < READ_CHUNK_BYTES) return
    write(slice)
    slice = ''
  })
  write(slice) // the rest
  return read
}

/**
 * Copies durably, appends what `more` gives, reads the file back, and only then gives it the name:
 * a file of that name is a whole journal. Rejects as `copyLines` and `more` do.
 */
export function saveJournal(
  store: Reached,
  path: string,
  status: JournalStatus,
  { replaces, onText = () => {}, more = () => [] }: HowSaved = {}
): Promise<JournalRead> {
  const { files } = store
  return makeFile(
    store.ending,
    path,
    async file => {
      const read = await copyLines(store, status, text => {
        file.write(text)
        onText(text)
      })
      const events = await more(read)
      const keys = readKeyFile(files, status.keyFile)!
      const seal = { time: isoTime(Date.now()), key: keys.newest, nonce: nonces(randomBytes) }
      const { lines, head } = sealBatch(events, read.records, read.head, seal)
      if (lines.length > 0) file.write(`${lines.join('\n')}\n`)
      const made = await readWithBreaths(files, file.path, keys, () => {})
      // The head proves every line before it.
      if (made.head !== head || made.tornBytes > 0)
        throw new OperatorError('the copy differs from the journal')
      return { ...read, records: made.records, head }
    },
    files,
    replaces
  )
}
