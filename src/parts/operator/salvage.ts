/** The command that makes a whole journal of what can be read of a damaged one. */
import { createHash, randomBytes } from 'node:crypto'
import { dirname, join, resolve } from 'node:path'
import { disk, type Files } from '../../journal/files.ts'
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
import { OperatorError, UsageError, type Command, type Context, type OnRecord, type Reached } from '../command.ts'
import { makeFile } from '../saved-journal.ts'
import { ofFile } from '../system-error.ts'
import { becomeOwner } from './as-owner.ts'
import { ARCHIVE, fileStatus, joinArchives, notedHead } from './archives.ts'
import { checkState } from './check.ts'
import { add, Slices, type Unnumbered } from './rewrite.ts'
import { lossesBeside, recordsLeft, standInFor, type JoinArchives } from './salvage-archive.ts'
import { lossesOf, report, type Salvaged, type Unplaced } from './salvage-report.ts'
import { copied, openRun, scanDamaged, type Run, type Scan } from './salvage-scan.ts'
import { Rebuilding } from './salvage-state.ts'

/** The most ranges of lost lines that the first record names. */
const MAX_RANGES = 1_000
/** Each id that is left out takes a few bytes of the new journal, and of memory. */
const MAX_NEXT_ID = 10_000_000
/** The most unplaced records that the report names. */
const MAX_NAMED = 1_000

/** What is salvaged, into which file, and how. */
interface Salvage {
  readonly files: Files
  readonly source: string
  readonly target: string
  readonly keys: Keyring
  readonly keepsAccess: boolean
  readonly nextId: number
  /** A head that was noted, and the archives that were given. */
  readonly head?: string | undefined
  readonly join?: JoinArchives
  readonly onProgress: (what: string, share: number) => void
}

type Plan = Pick<Salvaged, 'scan' | 'losses' | 'standIn' | 'missing'>

/** Salvages a file into a new one, and what has no place there into `FILE.unplaced.jsonl`. */
export async function salvage(given: Salvage): Promise<Salvaged> {
  const { files, source, target, keys, head, join = async () => [], onProgress } = given
  const found = scanDamaged(files, source, keys, share => onProgress('reading what is left', share), head)
  if (found.opened === 0) throw new OperatorError(`${source}: ${whyNothing(found)}`)
  let { hasHead } = found
  const lookForHead: OnRecord = (_record, _state, text) => { hasHead ||= text.endsWith(`"hash":"${head}"}`) }
  const { standIn, missing } = await standInFor(given, found, lossesOf(found).lines, join, lookForHead)
  const scan = { ...found, hasHead }
  const losses = lossesBeside(lossesOf(scan), scan, standIn)
  const plan = { scan, losses, standIn, missing }
  const aside = `${target}.unplaced.jsonl`
  let hasAside = false
  try {
    const salvaged = await makeFile(target, async file => {
      const result = await makeFile(aside, async unplaced => {
        const slices = new Slices(file)
        const others = new Slices(unplaced)
        const result = rebuild(given, plan, slices, others)
        checkState(result.made.state)
        compare(given, file.path, result.digest)
        return result
      }, files)
      hasAside = true
      if (result.unplaced === 0) files.remove(aside)
      hasAside = result.unplaced > 0
      return result
    }, files)
    return { ...plan, ...salvaged }
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
  given: Salvage, { scan, losses, standIn }: Plan, slices: Slices, others: Slices
): Omit<Salvaged, keyof Plan> & { readonly digest: string } {
  const { files, source, keys, keepsAccess, nextId, onProgress } = given
  const time = isoTime(Date.now())
  const nonce = nonces(randomBytes)
  const written = createHash('sha256')
  let [records, head, unplaced] = [0, FIRST_HASH, 0]
  const named: Unplaced[] = []
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
    const { id, first } = data as { readonly id?: number, readonly first?: number }
    const about = { line, time: copied(time), type: copied(type), id: id ?? first ?? null, why }
    if (named.length < MAX_NAMED) named.push(about)
    others.add(asciiLine({ line, time, type, by, why, data }))
  }
  const made = new Rebuilding({ time, lockedHash: lockedHash(), keepsAccess, write, unplace })
  const { head: last, until } = scan.runs.at(-1)!
  const { lines: lost } = losses
  const first: Continued = {
    why: 'salvaged', head: last, records: scan.last, time: until ?? null, source,
    ...standIn && { archive: standIn.path }, opened: scan.opened, lost: lost.slice(0, MAX_RANGES)
  }
  made.begin({ time, type: REWRITTEN, by: null, data: first })
  let opened = 0
  const again = new Map<number, Run[]>()
  for (const run of scan.again) again.set(run.last, [...again.get(run.last) ?? [], run])
  const foreign = [...scan.foreign]
  for (const { record, loss, hash } of recordsLeft(given, scan, losses, standIn)) {
    for (const run of again.get(record.seq) ?? []) if (hash !== undefined && run.head !== hash) foreign.push(run)
    if (loss !== undefined) made.lose(loss, record)
    line = record.seq
    made.take(record)
    if (++opened % 1_000 === 0) onProgress('writing the new journal', Math.min(1, opened / scan.opened))
  }
  if (losses.after !== undefined) made.lose(losses.after)
  if (scan.doubtful.length > 0) made.lose({ lines: 0, bytes: 0 }) // what may be of another journal gives nobody access
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
  return { made, records, head, unplaced, named, digest: written.digest('hex') }
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

/**
 * Reads the new journal as a start does: it must hold the records that were written. The state that these have made is
 * not made a second time, which would take as much memory again.
 */
function compare({ files, keys, onProgress }: Salvage, path: string, digest: string): void {
  const read = createHash('sha256')
  const take = (record: JournalRecord): void => add(read, record)
  readJournal(files, path, keys, take, { onProgress: share => onProgress('verifying it', share) })
  if (read.digest('hex') !== digest) throw new Error('what was written does not read back the same')
}

/**
 * Works while no service has a folder that the source, the first of the files that are read, or the target is in; in
 * its own folder as the owner of that.
 */
async function alone<T>(
  store: Reached, reads: readonly string[], target: string, work: (files: Files) => Promise<T>
): Promise<T> {
  const { folder } = locationOf(store.settings)
  const [sources, targets] = [disk.real(dirname(reads[0]!)), disk.real(dirname(target))]
  const isOwn = targets === disk.real(folder)
  const releases: (() => Promise<void>)[] = []
  try {
    for (const other of new Set(isOwn ? [sources] : [sources, targets])) {
      if ((isOwn && other === targets) || disk.stat(join(other, JOURNAL_FILE)) === undefined) continue
      try {
        releases.push(await lockAsOwner(other))
      } catch (error) {
        // Where nothing can be written, no service writes.
        const { cause = error } = error as Error
        if (other !== sources || !['EROFS', 'EACCES', 'EPERM'].includes(systemCode(cause))) throw error
      }
    }
    return isOwn ? await store.alone(reads, () => work(store.files)) : await work(disk)
  } finally {
    for (const release of releases) await release()
  }
}

/** Locks a folder; gives what ends that. The lock of a root that is killed must not keep the folder's owner out. */
async function lockAsOwner(folder: string): Promise<() => Promise<void>> {
  const asOwner = async <T>(act: (files: Files) => Promise<T>): Promise<T> => {
    const owner = becomeOwner(folder, [])
    try {
      return await act(owner.files)
    } finally {
      owner.end()
    }
  }
  const lock = await asOwner(files => lockJournal(files, folder, localSockets(new RequestGate().handle)))
  return () => asOwner(() => lock.release())
}

async function run(context: Context): Promise<number> {
  const { terminal, store, flags, positionals: [file = ''] } = context
  if (typeof flags['to'] !== 'string') throw new UsageError('--to FILE is missing: the new journal')
  const nextId = Number(flags['next-id'] ?? 1)
  if (!Number.isSafeInteger(nextId) || nextId < 1 || nextId > MAX_NEXT_ID) {
    throw new UsageError(`--next-id must be an integer from 1 to ${MAX_NEXT_ID}`)
  }
  const head = notedHead(flags)
  const { path: source, keyFile } = fileStatus(context, file)
  const target = resolve(flags['to'])
  const keepsAccess = flags['keep-tokens'] === true
  const onProgress = (what: string, share: number): void => terminal.progress(what, share)
  // Of paths that are absolute: the folder of the owner becomes the working one.
  const archive = (flags['archive'] as readonly string[] | undefined)?.map(path => resolve(path))
  const given = { ...context, flags: { ...flags, archive } }
  const salvaged = await alone(store, [source, ...archive ?? []], target, files => {
    const keys = readKeyFile(files, keyFile)
    if (keys === undefined) throw new OperatorError(`there is no key file ${keyFile}; is KEY_FILE right?`)
    const join: JoinArchives = (ends, onRecord) => joinArchives(given, ends, () => onRecord)
    return salvage({ files, source, target, keys, keepsAccess, nextId, head, join, onProgress })
      .catch(error => { throw ofFile(error, source) })
  })
  return report(context, source, target, salvaged, keepsAccess)
}

export const COMMANDS: readonly Command[] = [{
  name: 'journal salvage', positionals: ['SOURCE'],
  options: {
    to: { value: 'FILE', help: 'the new journal, which is made whole' },
    'keep-tokens': { help: 'keep tokens and passwords, even if records that end them may be lost' },
    'next-id': { value: 'N', help: 'give no id below this one to a new entry' },
    head: { value: 'HEAD', help: 'a noted head; if it is not there, the newest lines are lost' },
    archive: { ...ARCHIVE.archive, help: 'the journal before a compaction, for what is lost of its checkpoint' }
  },
  help: 'makes a whole journal of what can be read of a damaged one; the service must not run',
  journal: () => 'file',
  run
}]
