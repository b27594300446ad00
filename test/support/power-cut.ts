/**
 * Power cuts of the program on a `VolatileDisk`: a life of it is recorded, the power is cut at a moment of that life,
 * and what is left is held to what was known by then. The life after the cut is recorded too, and can be cut in turn.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Life, now } from './restarts.ts'
import type { Random } from './random.ts'
import type { Cut, Recorded, VolatileDisk } from './volatile-disk.ts'

/** A life that is over and can be cut at any moment. */
export interface Past {
  readonly disk: VolatileDisk
  readonly life: Life
  readonly recorded: Recorded
  /** The first moment at which the program answered for what is on the disk, and the last of the life. */
  readonly fromNs: number
  readonly endNs: number
}

/** What happens in a life; gives when the program began to answer for files that were made by hand and never synced. */
export type Act = (life: Life, disk: VolatileDisk) => Promise<number | void>

/** Records a life from the mounted disk as it is. It ends without a stop, unmounted. */
export async function record(disk: VolatileDisk, life: Life, act: Act): Promise<Past> {
  spawnSync('sync', ['--file-system', disk.folder])
  await disk.record()
  const fromNs = await act(life, disk) ?? 0
  return endOf(disk, life, fromNs)
}

async function endOf(disk: VolatileDisk, life: Life, fromNs: number, look = async () => {}): Promise<Past> {
  const [recorded, endNs] = [await disk.recorded(), now()]
  await life.program.kill()
  await look()
  await disk.unmount()
  return { disk, life, recorded, fromNs, endNs }
}

/** The cut behind everything, with nothing kept of the cache. */
export function lastCut({ recorded: { recording, times } }: Past): Cut {
  return { recording, at: times.length - 1, share: 0, seed: 0 }
}

/** Draws a cut, around a write of the journal, at any operation, or at any time; none before the program started. */
export function drawCut(past: Past, random: Random): Cut {
  const { recording, times, ofJournal } = past.recorded
  const [first = past.endNs] = times
  for (;;) {
    const ns = first + random.next() * (past.endNs - first)
    const at = random.pick([
      () => ofJournal.length > 0 ? random.pick(ofJournal) + random.int(3) : -1,
      () => random.int(times.length + 1) - 1,
      () => times.findLastIndex(one => one < ns)
    ])()
    if (at >= times.length || momentOf(past, at) < past.fromNs) continue
    return { recording, at, share: random.pick([0, 0.2, 0.5, 0.8, 1]), seed: random.int(2 ** 32) }
  }
}

/** The last moment at which nothing more had reached the disk. */
function momentOf({ recorded: { times }, endNs }: Past, at: number): number {
  return times[at + 1] ?? endNs
}

/** What a look at a disk after a cut has shown. */
export interface Checked {
  readonly faults: readonly string[]
  /** Whether a torn tail was cut off. */
  readonly wasTorn: boolean
  /** The life after the cut; undefined where the start was refused. */
  readonly past: Past | undefined
}

/** Cuts a past life, starts the program on what is left and holds it to what was known; then makes some changes. */
export async function check(t: TestContext, past: Past, cut: Cut, random: Random): Promise<Checked> {
  const { disk, life: { data, flags, known } } = past
  const life = new Life(t, data, random)
  Object.assign(life.flags, flags)
  life.known = known.at(momentOf(past, cut.at))
  await disk.cut(cut)
  await disk.mount()
  makeRoom(disk)
  const faults: string[] = []
  const verify = async (): Promise<void> => {
    if (!existsSync(join(data, 'journal.jsonl'))) return
    await life.admin('journal', 'verify').catch(({ code, stderr }) => {
      faults.push(`journal verify ${when} the start ends with ${code}: ${stderr}`)
    })
  }
  const when = random.pick(['before', 'after', 'never'])
  if (when === 'before') await verify()
  try {
    faults.push(...await startWithRoom(life, disk), ...backupFaults(past, momentOf(past, cut.at)))
    await life.load({ clients: 3, changes: 2 })
  } catch (error) {
    faults.push(`the start was refused: ${(error as Error).message}`)
    await disk.unmount()
    return { faults, wasTorn: false, past: undefined }
  }
  const after = await endOf(disk, life, 0, async () => { if (when === 'after') await verify() })
  return { faults, wasTorn: /the journal ended in/.test(life.program.stderr), past: after }
}

/** Starts the program. If the disk has no room for a torn tail's file, the start must change nothing, and gets room. */
async function startWithRoom(life: Life, disk: VolatileDisk): Promise<readonly string[]> {
  const journal = join(life.data, 'journal.jsonl')
  const before = existsSync(journal) ? readFileSync(journal) : undefined
  try {
    return await life.start()
  } catch (error) {
    if (!existsSync(fillerOf(disk)) ||
      !/could not be moved to .*make room, and start again/.test((error as Error).message)) throw error
    assert.deepEqual(readFileSync(journal), before, 'a start that was refused changes nothing')
    rmSync(fillerOf(disk))
    return life.start()
  }
}

export function fillerOf({ folder }: VolatileDisk): string { return join(folder, 'filler') }

/** XFS makes no file at all on a full disk, so not the lock's socket either: a start there only reads. */
export function makeRoom(disk: VolatileDisk): void {
  if (disk.fileSystem.name === 'xfs') rmSync(fillerOf(disk), { force: true })
}

/** A backup is whole or not there, and there once it was reported: it holds what the journal begins with. */
function backupFaults({ life: { data, backups } }: Past, ns: number): string[] {
  return [...backups].flatMap(([file, ackedNs]) => {
    if (!existsSync(file)) return ackedNs < ns ? [`${file} was reported as made`] : []
    const backup = readFileSync(file)
    const journal = readFileSync(join(data, 'journal.jsonl'))
    const isWhole = backup.at(-1) === 0x0a && backup.equals(journal.subarray(0, backup.length))
    return isWhole ? [] : [`${file} is not whole`]
  })
}
