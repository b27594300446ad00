/** The command that makes a whole journal of what can be read of a damaged one. */
import { createHash, randomBytes } from 'node:crypto'
import { dirname, join, resolve } from 'node:path'
import { disk, type Files } from '../../disk/files.ts'
import { RequestGate } from '../../http/request-gate.ts'
import { localSockets } from '../../http/local-socket.ts'
import { systemCode } from '../../errors.ts'
import { nonces, sealBatch } from '../../journal/batch.ts'
import { REWRITTEN, WHOLE, type Continued, type JournalRecord } from '../../journal/journal.ts'
import { readKeyFile, type Keyring } from '../../journal/keys.ts'
import { FIRST_HASH, isoTime } from '../../journal/line.ts'
import { JOURNAL_FILE, locationOf } from '../../journal/open-file.ts'
import { readJournal } from '../../journal/recover.ts'
import { lockJournal } from '../../storage.ts'
import { apply, emptyState } from '../../store/state.ts'
import { OperatorError, UsageError, type Command, type Context } from '../command.ts'
import { makeFile } from '../saved-journal.ts'
import { fileStatus } from './archives.ts'
import { checkState } from './check.ts'
import { add, Slices, type Unnumbered } from './rewrite.ts'
import { idsUpTo, lossesOf, type Losses } from './salvage-report.ts'
import { openRun, scanDamaged, type Run, type Scan } from './salvage-scan.ts'
import { Rebuilding } from './salvage-state.ts'

/** The most ranges of lost lines that the first record names. */
const MAX_RANGES = 1_000
/** What ends the command where something is lost. */
const LOST = 3

/** What is salvaged, into which file, and how. */
interface Salvage {
  readonly files: Files
  readonly source: string
  readonly target: string
  readonly keys: Keyring
  readonly keepsAccess: boolean
  readonly nextId: number
  readonly onProgress: (what: string, share: number) => void
}

/** What came of it. */
interface Salvaged {
  readonly scan: Scan
  readonly losses: Losses
  readonly made: Rebuilding
  readonly records: number
  readonly head: string
  readonly unplaced: number
}

/** Salvages a file into a new one, and what has no place there into `FILE.unplaced.jsonl`. */
export async function salvage(given: Salvage): Promise<Salvaged> {
  const { files, source, target, keys, onProgress } = given
  const scan = scanDamaged(files, source, keys, share => onProgress('reading what is left', share))
  if (scan.opened === 0) throw new OperatorError(`${source}: ${whyNothing(scan)}`)
  const losses = lossesOf(scan)
  const aside = `${target}.unplaced.jsonl`
  let hasAside = false
  try {
    const salvaged = await makeFile(target, async file => {
      const result = await makeFile(aside, async unplaced => {
        const slices = new Slices(file)
        const others = new Slices(unplaced)
        const result = rebuild(given, scan, losses, slices, others)
        compare(given, file.path, result.digest)
        return result
      }, files)
      hasAside = true
      if (result.unplaced === 0) files.remove(aside)
      hasAside = result.unplaced > 0
      return result
    }, files)
    return { scan, losses, ...salvaged }
  } catch (error) {
    if (hasAside) files.remove(aside)
    throw error
  }
}

function whyNothing({ bytes, lines, missingKeys }: Scan): string {
  if (bytes === 0) return 'it is empty'
  if (lines === 0) return 'it is not a journal, or no line of it is left'
  if (missingKeys.length > 0) return `the key file lacks key ${missingKeys.join(', ')}`
  return `none of its ${lines} lines can be opened; is KEY_FILE right?`
}

/** Writes the new journal; `digest` is that of its records. */
function rebuild(
  { files, source, keys, keepsAccess, nextId, onProgress }: Salvage, scan: Scan, losses: Losses,
  slices: Slices, others: Slices
): Omit<Salvaged, 'scan' | 'losses'> & { readonly digest: string } {
  const time = isoTime(Date.now())
  const nonce = nonces(randomBytes)
  const written = createHash('sha256')
  let [records, head, unplaced] = [0, FIRST_HASH, 0]
  let line = 0
  const write = ({ time, type, by, data }: Unnumbered): void => {
    const event = { type, by, data, json: JSON.stringify(data) }
    const sealed = sealBatch([event], records, head, { time, key: keys.newest, nonce })
    add(written, sealed.records[0]!)
    head = sealed.head
    records++
    slices.add(`${sealed.lines[0]}\n`)
  }
  const unplace = ({ time, type, by, data }: Unnumbered, why: string): void => {
    unplaced++
    others.add(asciiLine({ line, time, type, by, why, data }))
  }
  const made = new Rebuilding({ time, lockedHash: lockedHash(), keepsAccess, write, unplace })
  const { head: last, until } = scan.runs.at(-1)!
  const { lines: lost } = losses
  const first: Continued = {
    why: 'salvaged', head: last, records: scan.last, time: until ?? null, source, opened: scan.opened,
    lost: lost.slice(0, MAX_RANGES)
  }
  made.begin({ time, type: REWRITTEN, by: null, data: first })
  let opened = 0
  const again = new Map<number, Run[]>()
  for (const run of scan.again) again.set(run.last, [...again.get(run.last) ?? [], run])
  const foreign = [...scan.foreign]
  for (const [i, run] of scan.runs.entries()) {
    let loss = losses.before[i]
    for (const { record, hash } of openRun(files, source, keys, run)) {
      foreign.push(...again.get(record.seq)?.filter(other => other.head !== hash) ?? [])
      if (loss !== undefined) made.lose(loss, record)
      loss = undefined
      line = record.seq
      made.take(record)
      if (++opened % 1_000 === 0) onProgress('writing the new journal', opened / scan.opened)
    }
  }
  if (losses.after !== undefined) made.lose(losses.after)
  made.end(nextId)
  for (const run of foreign) {
    for (const { record } of openRun(files, source, keys, run)) {
      line = record.seq
      unplace(record, 'it may be of another journal: its place is taken, or it is older than what comes before it')
    }
  }
  write({ time, type: WHOLE, by: null, data: { records } })
  slices.end()
  others.end()
  onProgress('', 1)
  return { made, records, head, unplaced, digest: written.digest('hex') }
}

/** A line of JSON in ASCII. */
function asciiLine(value: unknown): string {
  const text = JSON.stringify(value)
  return `${text.replace(/[\u007f-\uffff]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`
}

/** A hash, as of a password, of which nobody knows the password. */
function lockedHash(): string {
  const random = (bytes: number): string => randomBytes(bytes).toString('base64').replace(/=+$/, '')
  return `$scrypt$ln=15,r=8,p=3$${random(16)}$${random(32)}`
}

/** Reads the new journal as a start does: it must hold what was written, and agree with itself. */
function compare({ files, keys, onProgress }: Salvage, path: string, digest: string): void {
  const read = createHash('sha256')
  const state = emptyState()
  const take = (record: JournalRecord): void => { add(read, record); apply(state, record) }
  readJournal(files, path, keys, take, { onProgress: share => onProgress('verifying it', share) })
  if (read.digest('hex') !== digest) throw new Error('what was written does not read back the same')
  checkState(state)
}

/** Works while no service has a folder that one of these files is in. */
async function alone<T>(
  { store }: Context, source: string, target: string, work: (files: Files) => Promise<T>
): Promise<T> {
  const { folder } = locationOf(store.settings)
  const folders = [...new Set([source, target].map(path => disk.real(dirname(path))))]
  const own = disk.real(folder)
  const locks: { release(): Promise<void> }[] = []
  try {
    for (const other of folders.filter(one => one !== own)) {
      if (disk.stat(join(other, JOURNAL_FILE)) === undefined) continue
      try {
        locks.push(await lockJournal(disk, other, localSockets(new RequestGate().handle)))
      } catch (error) {
        // Where nothing can be written, no service writes.
        const { cause = error } = error as Error
        const isReadOnly = ['EROFS', 'EACCES', 'EPERM'].includes(systemCode(cause))
        if (!isReadOnly || other !== disk.real(dirname(source))) throw error
      }
    }
    if (!folders.includes(own)) return await work(disk)
    return await store.alone([source], () => work(store.files))
  } finally {
    for (const lock of locks) await lock.release()
  }
}

async function run(context: Context): Promise<number> {
  const { terminal, flags, positionals: [file = ''] } = context
  if (typeof flags['to'] !== 'string') throw new UsageError('--to FILE is missing: the new journal')
  const nextId = Number(flags['next-id'] ?? 1)
  if (!Number.isSafeInteger(nextId) || nextId < 1) throw new UsageError('--next-id must be a positive integer')
  const { path: source, keyFile } = fileStatus(context, file)
  const target = resolve(flags['to'])
  const keepsAccess = flags['keep-tokens'] === true
  const onProgress = (what: string, share: number): void => terminal.progress(what, share)
  const salvaged = await alone(context, source, target, files => {
    const keys = readKeyFile(files, keyFile)
    if (keys === undefined) throw new OperatorError(`there is no key file ${keyFile}; is KEY_FILE right?`)
    return salvage({ files, source, target, keys, keepsAccess, nextId, onProgress })
  })
  return report(context, source, target, salvaged, keepsAccess)
}

function report(
  { terminal }: Context, source: string, target: string, salvaged: Salvaged, keepsAccess: boolean
): number {
  const { scan, losses, made, records, head, unplaced } = salvaged
  const { entries, users } = made.state
  const lostLines = losses.lines.reduce((sum, { from, to }) => sum + (to === null ? 0 : to - from + 1), 0)
  const lostBytes = losses.lines.reduce((sum, { bytes }) => sum + bytes, 0)
  const doubtful = idsUpTo(entries, made.doubtfulIds)
  const doubtfulCount = countOf(doubtful)
  const all = [...users.entries()]
  const locked = keepsAccess ? [] : all.filter(([id]) => made.isLocked(id)).map(([, { email }]) => email)
  const kept = all.filter(([, { passwordHash }]) => passwordHash !== undefined).length
  const hasLost = losses.lines.length > 0 || unplaced > 0 || scan.missingKeys.length > 0
  const aside = unplaced === 0 ? undefined : `${target}.unplaced.jsonl`
  const result = {
    source, path: target, records, head, lines: scan.lines, opened: scan.opened, lost: losses.lines, lostLines,
    lostBytes, missingKeys: scan.missingKeys, entries: entries.count, whole: entries.count - doubtfulCount,
    mayLackChanges: doubtful,
    users: kept, lockedUsers: locked, tokensLeftOut: made.tokensLeftOut, tokens: made.state.tokens.size,
    until: made.until, nextId: entries.size + 1, unplaced, ...aside && { unplacedFile: aside }
  }
  terminal.show(result,
    `lines    ${scan.lines} found, ${scan.opened} opened, ${lostLines} known to be lost`,
    ...losses.lines.slice(0, 20).map(shownLoss),
    ...losses.lines.length > 20 ? [`lost     and ${losses.lines.length - 20} more places; --json names them`] : [],
    ...scan.missingKeys.map(key => `key      ${key} is missing; put it into the key file, and begin again`),
    `entries  ${entries.count}, of which ${entries.count - doubtfulCount} are whole`,
    ...doubtful === '' ? [] : [`         these may lack changes: ${shortened(doubtful)}`],
    `users    ${kept}`,
    ...locked.length === 0 ? [] : [`         these need a new password: ${shortened(locked.join(', '))}`],
    `tokens   ${made.state.tokens.size}`,
    ...made.tokensLeftOut === 0 ? [] : [`         ${made.tokensLeftOut} are left out, which may have been revoked`],
    `until    ${made.until ?? '-'}`, `next id  ${entries.size + 1}`,
    ...aside === undefined ? [] : [`unplaced ${unplaced} records, kept in ${aside}, which holds passwords`],
    `journal  ${target}: ${records} records, head ${head}`)
  return hasLost ? LOST : 0
}

function shownLoss({ from, to, bytes }: Losses['lines'][number]): string {
  if (to === null) return `lost     perhaps the newest, from ${from} on: ${bytes} bytes are no line`
  return `lost     ${from === to ? from : `${from} to ${to}`}, ${bytes} bytes`
}

function shortened(text: string): string {
  return text.length <= 400 ? text : `${text.slice(0, 400)}… (--json names all)`
}

function countOf(ids: string): number {
  return ids === '' ? 0 : ids.split(',').reduce((sum, range) => {
    const [first, last = first] = range.split('-').map(Number)
    return sum + last! - first! + 1
  }, 0)
}

export const COMMANDS: readonly Command[] = [{
  name: 'journal salvage', positionals: ['SOURCE'],
  options: {
    to: { value: 'FILE', help: 'the new journal, which is made whole' },
    'keep-tokens': { help: 'keep tokens and passwords, even if records that end them may be lost' },
    'next-id': { value: 'N', help: 'give no id below this one to a new entry' }
  },
  help: 'makes a whole journal of what can be read of a damaged one; the service must not run',
  journal: () => 'file',
  run
}]
