/**
 * Power cuts on real file systems. Each scenario is recorded, write by write, on a disk with a cache
 * (`test/support/volatile-disk.ts`); then the power is cut at moments drawn by a seed, any sectors of 512 bytes that
 * were not flushed being lost, and the program is started on what is left: it is not refused, shows all that was
 * acknowledged and nothing that was answered 500, and `journal verify` finds nothing wrong. What it does then is
 * recorded too, and cut again.
 *
 * `npm run test:power-cut` runs every scenario on ext4 and XFS with CUTS cuts each (36); without CUTS there are a few
 * cuts of the telling scenarios on ext4. SEED repeats the draws (the recording itself depends on timing);
 * `--test-name-pattern` picks scenarios. The disk after a cut that found something is kept: `mount -o loop` shows it.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, rmSync, statSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { describe, test, type TestContext } from 'node:test'
import { Life, now } from '../support/restarts.ts'
import { check, drawCut, fillerOf, lastCut, makeRoom, record, type Act, type Past } from '../support/power-cut.ts'
import { randomOf, type Random } from '../support/random.ts'
import { FILE_SYSTEMS, VolatileDisk, volatileDiskMissing, type FileSystem } from '../support/volatile-disk.ts'

const IS_CAMPAIGN = process.env['CUTS'] !== undefined
const CUTS = Number(process.env['CUTS'] ?? 2)
const CUTS_A_RECORDING = 18
/** Cuts that follow one another, each in the life after the one before. */
const CHAIN = 2
/** How many cuts may find something before a scenario gives up. */
const MAX_FAULTS = 3

interface Scenario {
  readonly name: string
  /** Whether it is also tried where there is little time. */
  readonly isTelling?: boolean
  /** What stands on the disk, safely, when the recording begins. */
  readonly before?: Act
  readonly act: Act
}

async function filled(life: Life): Promise<void> {
  await life.start()
  await life.load({ ms: 300 })
  await life.program.stop()
}

async function startFilled(life: Life): Promise<void> {
  await filled(life)
  await life.start()
}

/** Starts and lets clients work for a while; gives when it was ready. */
async function startedAndLoaded(life: Life): Promise<number> {
  await life.start()
  const readyNs = now()
  await life.load({})
  return readyNs
}

/** The README's way of making a key. */
function makeKey(file: string, redirect: '>' | '>>' = '>'): void {
  execFileSync('sh', ['-c', `umask 077; openssl rand -hex 32 ${redirect} "$0"`, file])
}

/** Has another program sync the disk all the time, so that the file system commits what it has at any moment. */
async function besideSyncs({ folder }: VolatileDisk, act: () => Promise<unknown>): Promise<void> {
  const script = 'while :; do echo >> "$0"; sync --file-system "$0"; done'
  const neighbour = spawn('sh', ['-c', script, join(folder, 'neighbour')], { detached: true })
  try {
    await act()
  } finally {
    process.kill(-neighbour.pid!, 'SIGKILL')
    await once(neighbour, 'close')
  }
}

/** Leaves a torn tail: a long line of which the end and some sectors are missing. */
function tear({ data, random }: Life): void {
  const journal = join(data, 'journal.jsonl')
  const line = readFileSync(journal, 'latin1').trimEnd().split('\n').at(-1)!
  const [head = ''] = /^.*"sealed":"/.exec(line) ?? []
  const seq = Number(/^{"seq":(\d+)/.exec(line)![1])
  const tail = Buffer.from(head.replace(`:${seq},`, `:${seq + 1},`) + 'A'.repeat(random.int(60_000)))
  const sector = 512 * (1 + random.int(tail.length / 512))
  tail.fill(0, sector - statSync(journal).size % 512, sector - statSync(journal).size % 512 + 512)
  appendFileSync(journal, tail)
}

const KEEP = ['journal.jsonl', 'journal.key']

/** Moves the journal and its key out of the way, as a backup on another disk. */
async function backUp(life: Life, { folder }: VolatileDisk): Promise<void> {
  await filled(life)
  const backup = `${folder}-backup`
  rmSync(backup, { recursive: true, force: true })
  mkdirSync(backup)
  for (const name of KEEP) copyFileSync(join(life.data, name), join(backup, name))
  rmSync(life.data, { recursive: true })
}

function restore({ data }: Life, { folder }: VolatileDisk): void {
  mkdirSync(data)
  for (const name of KEEP) execFileSync('cp', [join(`${folder}-backup`, name), join(data, name)])
}

/** Leaves little room, and sends 64 changes at a time until some are refused. */
async function fillDisk(life: Life, disk: VolatileDisk): Promise<void> {
  const { bavail, bsize } = statfsSync(disk.folder)
  execFileSync('fallocate', ['--length', String(bavail * bsize - 400_000), fillerOf(disk)])
  let refused = 0
  for (let n = 0; n < 20 && refused === 0; n++) refused = await life.load({ clients: 64, changes: 1, bytes: 60_000 })
  assert.ok(refused > 0, 'the disk is not full')
}

const SCENARIOS: readonly Scenario[] = [
  { name: 'a first start', act: async life => { await startedAndLoaded(life) } },
  {
    name: 'a load of creates, updates and deletes, mostly beside a program that syncs',
    before: startFilled,
    act: (life, disk) => {
      const load = (): Promise<unknown> => life.load({ ms: 800, clients: 16, bytes: 60_000 })
      return life.random.next() < 0.7 ? besideSyncs(disk, load) : load().then(() => {})
    }
  },
  {
    name: 'a torn tail',
    before: async life => { await filled(life); tear(life) },
    act: (life, disk) => besideSyncs(disk, async () => {
      await life.start()
      await life.load({ clients: 2, changes: 10 })
    })
  },
  {
    name: 'a key file that was just made by hand',
    act: async (life, { folder }) => {
      makeKey(life.flags['key-file'] = join(folder, 'made.key'))
      return startedAndLoaded(life)
    }
  },
  {
    name: 'a key that was just added by hand',
    before: filled,
    act: async life => {
      makeKey(join(life.data, 'journal.key'), '>>')
      return startedAndLoaded(life)
    }
  },
  {
    name: 'a journal that was just restored by copying',
    isTelling: true,
    before: backUp,
    act: async (life, disk) => { restore(life, disk); return startedAndLoaded(life) }
  },
  {
    name: 'SIGKILL and a start',
    before: startFilled,
    act: async life => {
      for (let n = 0; n < 3; n++) {
        const load = life.load({ ms: 200, bytes: 60_000 })
        await setTimeout(20 + life.random.int(150))
        await life.restart('SIGKILL')
        await load
      }
    }
  },
  {
    name: 'rotations under load, and then re-encryptions and compactions without a service',
    isTelling: true,
    before: startFilled,
    act: async life => {
      const load = life.load({ ms: 2_500, clients: 3 })
      for (let n = 0; n < 3; n++) await life.admin('key', 'rotate')
      await load
      await life.program.stop('SIGTERM')
      for (const words of ['key rewrite', 'journal compact', 'key rotate', 'journal compact --drop-history --yes']) {
        await life.admin(...words.split(' '))
      }
      assert.deepEqual(await life.start(), [])
    }
  },
  {
    name: 'a disk that becomes full, a start on it, and room again',
    before: startFilled,
    act: async (life, disk) => {
      await fillDisk(life, disk)
      await life.load({ clients: 4, changes: 4, bytes: 60_000 })
      makeRoom(disk)
      await life.restart('SIGKILL')
      await life.load({ clients: 4, changes: 4, bytes: 60_000 })
      rmSync(fillerOf(disk), { force: true })
      assert.equal(await life.load({ clients: 4, changes: 4 }), 0, 'it does not heal')
    }
  },
  {
    name: 'a device that fails to flush, and with it the file system',
    before: startFilled,
    act: async (life, disk) => {
      await life.load({ ms: 150 })
      life.mayReturn = true
      await disk.fail('flushes')
      assert.ok(await life.load({ ms: 100 }) > 0, 'it has not noticed')
      await disk.fail(undefined)
      await life.load({ ms: 50 })
    }
  },
  {
    name: 'backups and imports under load',
    before: startFilled,
    act: async (life, { folder }) => {
      const load = life.load({ ms: 2_000, clients: 3 })
      for (const word of ['first', 'second']) {
        await life.backUp(join(folder, word))
        await life.import(`${folder}-import`, word, 300)
      }
      await load
    }
  },
  {
    name: 'a device that fails, none or half of the sectors arriving',
    isTelling: true,
    before: startFilled,
    act: async (life, disk) => {
      for (let n = 0; n < 3; n++) {
        assert.equal(await life.load({ ms: 80 }), 0, 'it does not heal')
        life.mayReturn = true
        await disk.fail(life.random.pick([0, 0.5]))
        assert.ok(await life.load({ ms: 50, bytes: 60_000 }) > 0, 'it has not noticed')
        await disk.fail(undefined)
        life.mayReturn = false
        await life.restart(life.random.pick(['SIGKILL', 'SIGTERM']))
      }
      assert.equal(await life.load({ ms: 200 }), 0, 'it does not heal')
    }
  }
]

interface Tally { cuts: number, torn: number, changes: number, readonly faults: string[] }

/** Cuts a past, at first when all is over and the cache lost; and again in the life after each cut. */
async function cutAll(t: TestContext, past: Past, count: number, random: Random, tally: Tally): Promise<void> {
  for (let n = 0; n < count && tally.faults.length < MAX_FAULTS; n += CHAIN) {
    const trail: string[] = []
    for (let [depth, from] = [0, past as Past | undefined]; depth < CHAIN && from !== undefined; depth++) {
      const cut = n + depth === 0 ? lastCut(from) : drawCut(from, random)
      trail.push(`behind ${cut.at} of ${from.recorded.times.length}, share ${cut.share}, seed ${cut.seed}`)
      const { faults, wasTorn, past: next } = await check(t, from, cut, random)
      tally.cuts++
      tally.torn += Number(wasTorn)
      if (faults.length > 0) {
        const image = join(tmpdir(), `power-cut-${process.pid}-${cut.seed}.img`)
        await from.disk.cut(cut)
        await from.disk.save(image)
        tally.faults.push([...faults.slice(0, 3), `${faults.length} in all; ${trail.join('; ')}; ${image}`].join('\n'))
      }
      if (depth > 0) await from.disk.forget(from.recorded.recording)
      from = faults.length > 0 ? undefined : next
    }
  }
}

async function campaign(t: TestContext, fileSystem: FileSystem, { before, act }: Scenario): Promise<void> {
  const random = randomOf(t)
  const tally: Tally = { cuts: 0, torn: 0, changes: 0, faults: [] }
  while (tally.cuts < CUTS && tally.faults.length < MAX_FAULTS) {
    const disk = await VolatileDisk.make(t, fileSystem)
    const life = new Life(t, join(disk.folder, 'data'), random)
    await before?.(life, disk)
    const past = await record(disk, life, act)
    tally.changes += life.known.acknowledged
    await cutAll(t, past, Math.min(CUTS_A_RECORDING, CUTS - tally.cuts), random, tally)
    await disk.end()
  }
  const { cuts, torn, changes, faults } = tally
  t.diagnostic(`${cuts} cuts, ${faults.length} with faults; ${torn} torn tails, ${changes} changes`)
  assert.ok(faults.length === 0, faults.join('\n\n'))
}

for (const fileSystem of IS_CAMPAIGN ? FILE_SYSTEMS : FILE_SYSTEMS.slice(0, 1)) {
  const missing = volatileDiskMissing(fileSystem)
  describe(`power cuts on ${fileSystem.name}`, { skip: missing }, () => {
    for (const scenario of SCENARIOS) {
      if (IS_CAMPAIGN || scenario.isTelling) test(scenario.name, t => campaign(t, fileSystem, scenario))
    }
  })
}
