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
import { breath, type Ending } from '../../commands/signals.ts'
import { readWithBreaths } from '../commands/same-file.ts'
import { ofFile } from '../system-error.ts'

/**
 * As `makeWhole`, but throws an `OperatorError` if the name is taken, and a signal leaves no file.
 */
export async function makeFile<T>(
  ending: Ending,
  path: string,
  make: Make<T>,
  files: Files = disk,
  { replaces, aside }: HowMade = {}
): Promise<T> {
  const target = resolve(path)
  try {
    const state = `${target} ${replaces === undefined ? 'was not made' : 'is as it was'}`
    const act: Tracked<T> = track => makeWhole(files, target, track(make), { replaces })
    return await leavingNoPart(ending, files, state, act, aside)
  } catch (error) {
    if (systemCode(error) === 'EEXIST') throw new OperatorError((error as Error).message)
    if (systemCode(error) === 'ESTALE')
      throw new OperatorError(`${(error as Error).message}, and was left as it is`)
    throw ofFile(error, target)
  }
}

interface HowMade {
  readonly replaces?: FileStat | undefined
  /** Goes if a signal ends this. */
  readonly aside?: string | undefined
}

type Tracked<T> = (track: (make: Make<T>) => Make<T>) => Promise<T>
type Make<T> = (file: NewFile) => T | Promise<T>

/** A signal before the file has its name removes it, says `state`, and ends the program. */
export function leavingNoPart<T>(
  ending: Ending,
  files: Files,
  state: string,
  act: Tracked<T>,
  aside?: string
): Promise<T> {
  let part: string | undefined
  const track =
    (make: Make<T>): Make<T> =>
    async file => {
      part = file.path
      const made = await make(file)
      await breath()
      return made
    }
  const remove = (): string => {
    for (const path of [part, aside])
      if (path !== undefined && files.stat(path) !== undefined) files.remove(path)
    return state
  }
  return ending(remove, () => act(track))
}

interface HowSaved {
  readonly replaces?: FileStat | undefined
  readonly onText?: (text: string) => void
  /** Gives events to append; throws if the copy is not wanted. */
  readonly more?: (read: JournalRead) => readonly EncodedEvent[] | Promise<readonly EncodedEvent[]>
}

/** Throws an `OperatorError` if newer records may exist elsewhere. */
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
    { replaces }
  )
}
