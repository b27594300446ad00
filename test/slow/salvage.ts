/**
 * The campaign against `journal salvage`: `COUNT` journals (10,000 without it; `SEED`) damaged at random and salvaged, one or
 * two damages each; every result is held against the model. Prints what it saw; the first fault ends it, with its seed.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DAMAGES, KINDS, makeSource, salvageAndCheck, type Source } from '../support/salvage.ts'
import { seeded, seedFromEnv } from '../support/random.ts'

const count = Number(process.env['COUNT'] ?? 10_000)
const seed = seedFromEnv()
const folder = mkdtempSync(join(tmpdir(), 'salvage-'))
const sources: Source[] = []
const random = seeded(seed)
for (const kind of KINDS) {
  for (let n = 0; n < 3; n++) {
    const own = join(folder, `${kind}-${n}`)
    mkdirSync(own)
    sources.push(await makeSource(random, own, kind, 60 + random.int(140)))
  }
}
console.log(`seed ${seed}; journals of ${sources.map(({ lines }) => lines.length).join(', ')} lines`)
const names = Object.keys(DAMAGES)
/** What damages of a kind have cost: all of their lines, and the worst of those that came alone. */
interface Cost { times: number, lost: number, most: number, entries: number, tokens: number }
const seen = new Map<string, Cost>()
let [worstMs, worstIds, idsUnknown] = [0, 0, 0]
for (let n = 0; n < count; n++) {
  const each = seeded((seed + n * 7919) >>> 0)
  const source = each.pick(sources)
  const kinds = each.int(2) === 0 ? [each.pick(names)] : [each.pick(names), each.pick(names)]
  const damaged = kinds.reduce((bytes, kind) => DAMAGES[kind]!(each, bytes), source.bytes)
  // Of lines that are gone without their bytes it is not known how many ids they gave.
  const mayLoseNewestIds = kinds.some(kind => / lost|cut/.test(kind))
  try {
    const { lines, opened, ms, skippedIds, entries, tokens } = await salvageAndCheck(source, damaged, mayLoseNewestIds)
    for (const kind of new Set(kinds)) {
      const before = seen.get(kind) ?? { times: 0, lost: 0, most: 0, entries: 0, tokens: 0 }
      const lost = lines - opened
      const worst = (most: number, one: number): number => Math.max(most, kinds.length === 1 ? one : 0)
      seen.set(kind, {
        times: before.times + 1, lost: before.lost + lost, most: worst(before.most, lost),
        entries: worst(before.entries, entries), tokens: worst(before.tokens, tokens)
      })
    }
    worstMs = Math.max(worstMs, ms)
    worstIds = Math.max(worstIds, skippedIds)
    idsUnknown += Number(skippedIds < 0)
  } catch (error) {
    console.log(`damage ${n} (${kinds.join(', ')}) of ${source.folder}, seed ${seed}:`, error)
    process.exit(1)
  }
}
rmSync(folder, { recursive: true })
for (const [kind, { times, lost, most, entries, tokens }] of seen) {
  const worst = `alone at most ${most} lines, ${entries} entries or their newest values, ${tokens} tokens`
  console.log(`${kind.padEnd(15)} ${times} times, ${(lost / times).toFixed(1)} lines lost, ${worst}`)
}
console.log(`${count} damages without a fault; slowest ${worstMs.toFixed(0)} ms; at most ${worstIds} ids skipped; ` +
  `${idsUnknown} times the newest ids could not be known`)
