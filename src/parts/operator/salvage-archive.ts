/**
 * An archive in the place of a damaged checkpoint. The journal before a compaction makes the very state that the
 * compaction has written: so where lines of that are lost, its records are taken, and nothing is lost.
 */
import type { Files } from '../../journal/files.ts'
import { Failure } from '../../errors.ts'
import { CONTINUATIONS, REWRITTEN, type JournalRecord, type LostLines } from '../../journal/journal.ts'
import type { KeyFinder } from '../../journal/keys.ts'
import { FIRST_HASH } from '../../journal/line.ts'
import { OperatorError, type OnRecord } from '../command.ts'
import { earlierEnd, type Archive, type EarlierEnd } from './archives.ts'
import type { Losses } from './salvage-report.ts'
import { openRun, type Run, type Scan } from './salvage-scan.ts'
import type { Loss } from './salvage-state.ts'

/** Verifies the archives that were given, each of which must end as one of these did. */
export type JoinArchives = (ends: readonly EarlierEnd[], onRecord: OnRecord) => Promise<readonly Archive[]>

/** An archive whose records come behind the line `after`, in the place of the lines up to `to`. */
export interface StandIn {
  readonly path: string
  readonly run: Run
  readonly after: number
  readonly to: number
}

/** The files that a journal is salvaged from. */
export interface Sources {
  readonly files: Files
  readonly source: string
  readonly keys: KeyFinder
}

/** What takes the place of a checkpoint of which a part is lost; or the end of the archive that could. */
export interface Found {
  readonly standIn?: StandIn
  readonly missing?: EarlierEnd
}

/** Looks whether a part of the checkpoint is lost, and whether one of the archives is the journal before. */
export async function standInFor(
  sources: Sources, scan: Scan, lost: readonly LostLines[], join: JoinArchives, onRecord: OnRecord
): Promise<Found> {
  const named = continuations(sources, scan)
  const ends = named.map(record => earlierEnd(record)!)
  const archives = await join(ends, onRecord).catch((error: unknown) => { throw refusal(error, ends.length > 0) })
  const before = ends.findIndex(({ why }) => why !== 're-encrypted')
  const end = ends[before]
  const to = end?.why === 'compacted' ? endOfCheckpoint(scan, lost, named, before) : undefined
  if (end === undefined || to === undefined) return {}
  const archive = archives.find(one => one.end === end)
  if (archive === undefined) return { missing: end }
  const { status: { path, bytes } } = archive
  const { head, records } = end
  const run = {
    at: 0, end: bytes, previousHash: FIRST_HASH, head, first: 1, last: records, since: undefined, until: undefined,
    kept: 0, whole: 0
  }
  return { standIn: { path, run, after: before + 1, to } }
}

/** The last line that is known to belong to the checkpoint; undefined where nothing of it is lost. */
function endOfCheckpoint(
  { runs }: Scan, lost: readonly LostLines[], named: readonly JournalRecord[], before: number
): number | undefined {
  // After a re-encryption the record that ends what was written again is far behind the checkpoint.
  const whole = before > 0 ? 0 : runs.reduce((last, run) => Math.max(last, run.whole), 0)
  const kept = runs.reduce((last, run) => Math.max(last, run.kept), named.length)
  const next = lost.find(({ from }) => from === kept + 1)
  // That record has to be there: so it is the one line that is lost.
  const isNext = before === 0 && named[0]!.type === REWRITTEN && whole === 0 && next?.to === next?.from
  const end = whole > 0 ? whole : kept
  const isDamaged = lost.some(({ from }) => from <= end) || (whole === 0 && next !== undefined)
  return isDamaged ? end + Number(isNext && next !== undefined) : undefined
}

function refusal(error: unknown, hasEnds: boolean): unknown {
  if (!(error instanceof Failure)) return error
  const why = hasEnds ? '' : '; what would say where the journal came from, its first line, is lost'
  return new OperatorError(`${error.message}${why}; without --archive it is salvaged as far as it goes`)
}

/** The first lines, which name the ends of the journals before, the newest first; none where the first one is lost. */
function continuations({ files, source, keys }: Sources, { runs }: Scan): readonly JournalRecord[] {
  const named: JournalRecord[] = []
  for (const run of runs) {
    for (const { record } of openRun(files, source, keys, run)) {
      if (record.seq !== named.length + 1 || !CONTINUATIONS.has(record.type)) return named
      named.push(record)
    }
  }
  return named
}

/** What is lost all the same. */
export function lossesBeside({ before, after, lines }: Losses, { runs }: Scan, standIn: StandIn | undefined): Losses {
  if (standIn === undefined) return { before, after, lines }
  const isLost = (to: number): boolean => to > standIn.to
  return {
    before: before.map((loss, i) => isLost(runs[i]!.first - 1) ? loss : undefined), after,
    lines: lines.filter(({ to }) => to === null || isLost(to))
  }
}

/** A record to be taken, and what is lost before it. */
interface Step {
  readonly record: JournalRecord
  readonly loss: Loss | undefined
  /** The hash of its line; undefined: it is of the archive. */
  readonly hash: string | undefined
}

/** The records that are left, in the order in which they are taken. */
export function * recordsLeft(
  { files, source, keys }: Sources, { runs }: Scan, { before }: Losses, standIn: StandIn | undefined
): Generator<Step, void, void> {
  let waiting = standIn
  const archived = function * (): Generator<Step, void, void> {
    if (waiting === undefined) return
    for (const { record } of openRun(files, waiting.path, keys, waiting.run)) {
      yield { record, loss: undefined, hash: undefined }
    }
    waiting = undefined
  }
  for (const [i, run] of runs.entries()) {
    let loss = before[i]
    for (const { record, hash } of openRun(files, source, keys, run)) {
      if (record.seq > (standIn?.after ?? Infinity)) yield * archived()
      if (standIn !== undefined && record.seq > standIn.after && record.seq <= standIn.to) continue
      yield { record, loss, hash }
      loss = undefined
    }
  }
  yield * archived()
}
