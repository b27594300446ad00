/** A start on a large journal: how long it takes, beside a bare loop over the same file, and what memory it needs. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { JOURNAL_FILE } from '../../src/journal/file.ts'
import { BODY_BYTES } from './journal.ts'
import type { Bench } from './measure.ts'
import { parseLoopMs, peakBytes, serveProgram } from './processes.ts'

/** What a round measures. */
export interface StartRound {
  /** From the program's birth until it serves. */
  readonly startMs: number
  /** The bare loop alone. */
  readonly loopMs: number
  /** The peak of memory over that of the program on an empty journal; undefined where the system does not tell. */
  readonly bytesAnEntry: number | undefined
}

/** Starts the program on so many records, once. */
export async function measureStart(bench: Bench, records: number): Promise<StartRound> {
  const started = async (entries: number): Promise<{ startMs: number, peak: number | undefined, loopMs: number }> => {
    const folder = bench.dataFolder(entries, BODY_BYTES)
    try {
      const loopMs = await parseLoopMs(join(folder, JOURNAL_FILE), bench.cores)
      const program = await serveProgram(folder, bench.cores)
      const peak = peakBytes(program)
      await program.stop()
      return { startMs: program.startMs, peak, loopMs }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  const empty = await started(0)
  const full = await started(records)
  const over = full.peak === undefined || empty.peak === undefined ? undefined : full.peak - empty.peak
  return { startMs: full.startMs, loopMs: full.loopMs, bytesAnEntry: over === undefined ? undefined : over / records }
}
