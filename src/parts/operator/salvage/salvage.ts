import { randomBytes } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import { Failure } from '../../../errors.ts'
import type { Files } from '../../../journal/files.ts'
import { locationOf } from '../../../journal/folder.ts'
import { REWRITTEN, type Event } from '../../../journal/journal.ts'
import { neededKeys, type KeyFinder, type Keyring } from '../../../journal/keys.ts'
import { isoTime, nonces } from '../../../journal/line.ts'
import { event } from '../../../store/events.ts'
import type { User } from '../../../rights/rights.ts'
import {
  LossError,
  OperatorError,
  UsageError,
  type OperatorCommand,
  type Context
} from '../../commands/command.ts'
import { IN_MEMORY } from '../commands/check.ts'
import { EXIT } from '../../commands/exit-codes.ts'
import type { Ending } from '../../commands/signals.ts'
import { makeFile } from '../rewriting/saved-journal.ts'
import { ofFile } from '../system-error.ts'
import { checkpointOf } from '../rewriting/checkpoint.ts'
import {
  assertKept,
  fileStatus,
  NEXT_ID,
  nextIdOf,
  notedHead,
  type Continued
} from '../commands/journal-files.ts'
import { ENTERED_AGAIN } from '../commands/who-knows.ts'
import { remainsOf } from './salvage-lines.ts'
import { Salvaging, type Loss } from './salvage-state.ts'
import { contentOf, writeJournal, type Content } from '../rewriting/write-journal.ts'

/** In the new journal, and in the report. */
const MAX_NAMED = 1_000
const MAX_SHOWN = 20
const MAX_SHOWN_CHARACTERS = 400

interface Salvage {
  readonly files: Files
  readonly source: string
  readonly target: string
  readonly keys: Keyring
  readonly keepsAccess: boolean
  readonly nextId: number
  readonly head?: string | undefined
  readonly onProgress: (what: string, share: number) => void
  readonly ending: Ending
}

interface Rebuilt {
  readonly made: Salvaging
  readonly unreadableBytes: number
  readonly lockedUsers: readonly string[]
  readonly tokensLeftOut: number
}

interface Found extends Pick<
  Salvaging,
  'lines' | 'opened' | 'losses' | 'last' | 'until' | 'mayLackIds' | 'hasNotedHead' | 'unplaced'
> {
  readonly unreadableBytes: number
  readonly missingKeys: readonly string[]
  readonly entries: number
  readonly gone: string
  readonly users: number
  readonly lockedUsers: readonly string[]
  readonly tokens: number
  readonly tokensLeftOut: number
  readonly nextId: number
  readonly hasRecorded: boolean
}

interface Prepared {
  readonly found: Found
  readonly content: Content
}

interface Salvaged {
  readonly found: Found
  readonly records: number
  readonly head: string
  readonly aside: string | undefined
}

/** What can be opened, without the ids that may be lost at the end. */
export function openable(
  files: Files,
  path: string,
  keys: KeyFinder,
  head?: string,
  onProgress: (share: number) => void = () => {},
  from: number = 0
): { readonly made: Salvaging; readonly bytes: number; readonly unreadableBytes: number } {
  const bytes = files.stat(path)?.size ?? 0
  const made = new Salvaging(keys, head, from)
  let [reported, unreadableBytes] = [0, 0]
  for (const remains of remainsOf(files, path, count => {
    unreadableBytes += count
  })) {
    try {
      made.take(remains)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      throw new Failure(error.code, `${path}: ${error.detail}; use that version`, { cause: error })
    }
    if (remains.end - reported > bytes / 100) onProgress((reported = remains.end) / bytes)
  }
  if (from === 0 && made.foreignBytes !== undefined)
    return openable(files, path, keys, head, onProgress, made.foreignBytes)
  return { made, bytes, unreadableBytes }
}

/** The state of the new journal. Throws an `OperatorError` if no line opens. */
export function rebuild(given: Omit<Salvage, 'target' | 'ending'>): Rebuilt {
  const { files, source, keys, keepsAccess, nextId, head, onProgress } = given
  const found = openable(files, source, keys, head, share =>
    onProgress('reading what is left', share)
  )
  const { made, bytes } = found
  if (made.opened === 0) {
    const why = `${source}: ${whyNothing(bytes, made)}`
    throw made.lines === 0 ? new OperatorError(why) : new LossError(why)
  }
  made.end(bytes, nextId)
  const tokens = made.state.tokens.size
  // Any lost record may have ended anybody's access: then all lose it. Locking a user ends the
  // user's tokens, too.
  const locked = made.losses.length > 0 && !keepsAccess ? made.users : []
  for (const one of ownEvents(locked)) made.apply(one)
  return {
    ...found,
    lockedUsers: locked.map(({ email }) => email),
    tokensLeftOut: tokens - made.state.tokens.size
  }
}

/** Records that do not fit go to `FILE.unplaced.jsonl`. Throws as `rebuild`. */
export async function salvage(given: Salvage): Promise<Salvaged> {
  // The content alone holds the state, and lets it go once it is written.
  return written(given, prepare(given))
}

function prepare(given: Salvage): Prepared {
  const { made, unreadableBytes, lockedUsers, tokensLeftOut } = rebuild(given)
  const { state, losses } = made
  const { entries, tokens, knowledge } = state
  const data: Continued = {
    why: 'salvaged',
    head: made.head,
    records: made.last,
    time: made.until,
    source: given.source,
    opened: made.opened,
    lost: losses.slice(0, MAX_NAMED).map(({ from, to, bytes }) => ({ from, to, bytes }))
  }
  const time = isoTime(Date.now())
  if (knowledge.recording === 'begun') {
    // the lost records may say who was told what
    state.apply({ seq: 0, time, ...event('recording.gap', null, { why: 'salvaged' }) })
  }
  const { lines, opened, last, until, mayLackIds, hasNotedHead, unplaced } = made
  const gone = made.gone.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`))
  return {
    found: {
      ...{ lines, opened, last, until, mayLackIds, hasNotedHead, losses, unplaced },
      ...{ unreadableBytes, lockedUsers, tokensLeftOut },
      missingKeys: [...made.missingKeys],
      entries: entries.count,
      gone: gone.join(','),
      users: made.users.length,
      tokens: tokens.size,
      nextId: entries.size + 1,
      hasRecorded: knowledge.recording !== undefined
    },
    content: contentOf({ time, type: REWRITTEN, by: null, data }, checkpointOf(state))
  }
}

async function written(
  { files, target, keys, onProgress, ending }: Salvage,
  { found, content }: Prepared
): Promise<Salvaged> {
  const { unplaced } = found
  // First: while the new journal has its name, nothing that was read may be missing beside it.
  const aside = unplaced.length === 0 ? undefined : `${target}.unplaced.jsonl`
  const texts = unplaced.map(record => `${JSON.stringify(record)}\n`)
  if (aside !== undefined) await makeFile(ending, aside, file => file.write(texts.join('')), files)
  try {
    // A signal leaves neither of the two.
    const leavingNeither: Ending = (onEnd, act) =>
      ending(() => {
        if (aside !== undefined) files.remove(aside)
        return onEnd()
      }, act)
    const { records, head } = await makeFile(
      leavingNeither,
      target,
      file =>
        writeJournal(file, content, {
          files,
          key: keys.newest,
          nonce: nonces(randomBytes),
          onProgress: share => onProgress('writing the new journal', share)
        }),
      files
    )
    return { found, records, head, aside }
  } catch (error) {
    if (aside !== undefined) files.remove(aside)
    throw error
  } finally {
    onProgress('', 1)
  }
}

/** What the new journal says beyond the records that were read. */
function* ownEvents(locked: readonly User[]): Generator<Event, void, void> {
  for (const { id } of locked) yield event('password.changed', null, { id, isLocked: true })
}

function whyNothing(bytes: number, { lines, missingKeys }: Salvaging): string {
  if (bytes === 0) return 'it is empty'
  if (lines === 0) return 'it is not a journal, or no line of it is left'
  if (missingKeys.size > 0) return `the key file lacks key ${[...missingKeys].join(', ')}`
  return `none of its ${lines} lines can be opened; is KEY_FILE right?`
}

function report(context: Context, source: string, target: string, salvaged: Salvaged): number {
  const { losses, unplaced, missingKeys } = salvaged.found
  const result = resultOf(source, target, salvaged, context.flags['head'] !== undefined)
  const again = result.forgetsFormer ? [ENTERED_AGAIN] : []
  context.terminal.show(result, [...linesOf(result), ...again])
  const isLost = losses.length > 0 || unplaced.length > 0 || missingKeys.length > 0
  return isLost ? EXIT.lost : EXIT.done
}

function resultOf(source: string, target: string, salvaged: Salvaged, wasNoted: boolean) {
  const { found, records, head, aside } = salvaged
  const { lines, opened, losses, unreadableBytes, missingKeys, entries, gone, users } = found
  const { lockedUsers, tokens, tokensLeftOut, until, nextId, mayLackIds, hasNotedHead } = found
  return {
    ...{ source, path: target, records, head, lines, opened, lost: losses },
    lostLines: losses.reduce((sum, { from, to }) => sum + (to === null ? 0 : to - from + 1), 0),
    isEndKnown: losses.every(({ to }) => to !== null),
    ...{ unreadableBytes, missingKeys, entries, gone, users, lockedUsers, tokens, tokensLeftOut },
    ...{ until, nextId, mayLackIds, unplaced: found.unplaced.length },
    forgetsFormer: found.hasRecorded,
    ...(aside !== undefined && { unplacedFile: aside }),
    ...(wasNoted && { noted: hasNotedHead })
  }
}

function linesOf(result: ReturnType<typeof resultOf>): readonly string[] {
  const { lost, gone, lockedUsers, tokensLeftOut, noted, nextId } = result
  const when = (condition: unknown, line: string): string[] => (condition ? [line] : [])
  return [
    `lines    ${result.lines} found, ${result.opened} opened, ` +
      `${result.lostLines}${result.isEndKnown ? '' : ' or more'} lost`,
    ...when(
      result.unreadableBytes,
      `device   ${result.unreadableBytes} bytes could not be read, and count as zeros`
    ),
    ...lost.slice(0, MAX_SHOWN).map(shownLoss),
    ...when(
      lost.length > MAX_SHOWN,
      `         and ${lost.length - MAX_SHOWN} more, which --json names`
    ),
    ...when(
      noted !== undefined,
      `noted    ${noted ? 'the head is there' : 'no line that was opened has the head'}`
    ),
    ...result.missingKeys.map(
      key => `key      ${key} is missing; put it into the key file, and begin again`
    ),
    `entries  ${result.entries}`,
    ...when(
      gone,
      `gone     ids ${shortened(gone)}: nothing is left of them, or they were never given`
    ),
    ...when(lost.length, '         any entry may show an older value, since changes may be lost'),
    `users    ${result.users}`,
    ...when(
      lockedUsers.length,
      `         these need a new password: ${shortened(lockedUsers.join(', '))}`
    ),
    `tokens   ${result.tokens}`,
    ...when(
      tokensLeftOut,
      `         ${tokensLeftOut} were ended, since they may have been revoked`
    ),
    `until    ${result.until}`,
    `next id  ${nextId}`,
    ...when(
      result.mayLackIds,
      '         if bytes of lost lines are gone, they may have given this id: then use --next-id'
    ),
    ...when(
      result.unplacedFile,
      `unplaced ${result.unplaced} records that do not fit are in ${result.unplacedFile}, ` +
        'which holds passwords'
    ),
    `journal  ${result.path}: ${result.records} records, head ${result.head}`
  ]
}

function shownLoss({ from, to, bytes, after, before }: Loss): string {
  if (to === null)
    return (
      `lost     perhaps the newest, from ${from} on, after ${after}: ` +
      `${bytes} bytes there hold no record that follows`
    )
  const where =
    before === null ? `after ${after}` : `between ${after ?? 'the beginning'} and ${before}`
  return `lost     ${from === to ? from : `${from} to ${to}`}, ${where}, ${bytes} bytes`
}

function shortened(text: string): string {
  return text.length <= MAX_SHOWN_CHARACTERS
    ? text
    : `${text.slice(0, MAX_SHOWN_CHARACTERS)}… (--json names all)`
}

async function run(context: Context): Promise<number> {
  const {
    terminal,
    store,
    flags,
    positionals: [file = '']
  } = context
  if (typeof flags['to'] !== 'string') throw new UsageError('--to FILE is missing: the new journal')
  const nextId = nextIdOf(flags)
  const head = notedHead(flags)
  const { files } = store
  const { path: source } = fileStatus({ store }, file)
  const target = resolve(flags['to'])
  assertKept(store, target)
  const running = await store.look()
  if (running !== undefined && files.real(running.path) === files.real(source)) {
    throw new OperatorError(`a service runs on this journal; if it is damaged, ${IN_MEMORY}`)
  }
  const { keyFile, folder } = locationOf(store.settings)
  if (files.real(dirname(target)) === files.real(folder)) store.assertOwner()
  const keys = neededKeys(files, keyFile, source)
  const onProgress = (what: string, share: number): void => terminal.progress(what, share)
  const keepsAccess = flags['keep-tokens'] === true
  const salvaged = await salvage({
    files,
    source,
    target,
    keys,
    keepsAccess,
    nextId,
    head,
    onProgress,
    ending: store.ending
  }).catch(error => {
    throw ofFile(error, source)
  })
  return report(context, source, target, salvaged)
}

export const COMMANDS: readonly OperatorCommand[] = [
  {
    name: 'journal salvage',
    positionals: ['SOURCE'],
    options: {
      'to': { value: 'FILE', help: 'the new journal, which is made whole' },
      'keep-tokens': {
        help: 'keep tokens and passwords, even if records that end them may be lost'
      },
      ...NEXT_ID,
      'head': { value: 'HEAD', help: 'a noted head; if it is not there, the newest lines are lost' }
    },
    help:
      'makes a whole journal of what can be read of a damaged one; ' +
      'its former values stay behind',
    journal: () => 'file',
    run
  }
]
