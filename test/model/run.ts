/**
 * The model for long: `npm run test:model -- [--seconds N] [--seed N] [--store file|small|etcd] [--keep-going]`; one
 * program again: `npm run test:model -- '{"config":…,"steps":…}'`. PROGRAM names the root of another build.
 */
import { parseArgs } from 'node:util'
import { startCluster } from '../support/etcd.ts'
import { within } from '../support/service.ts'
import { failing, live, type Program } from './lives.ts'
import type { Store } from './world.ts'

const { values, positionals: [text] } = parseArgs({
  allowPositionals: true,
  options: { 'seconds': { type: 'string', default: '3600' },
    'seed': { type: 'string', default: String(Date.now() % 2 ** 31) }, 'shorten': { type: 'string', default: '120' },
    'store': { type: 'string', default: 'file' }, 'keep-going': { type: 'boolean' } }
})
const began = performance.now()
const seconds = (): string => `${((performance.now() - began) / 1000).toFixed(0)} s`
const given = text === undefined ? undefined : JSON.parse(text) as Program
const store = given?.config.store ?? values.store as Store

await within(async scope => {
  const etcd = store === 'etcd' ? (await startCluster(scope)).members[0] : undefined
  if (given !== undefined) {
    const defect = await live(given, etcd)
    console.log(defect?.message ?? 'nothing is wrong')
    process.exitCode = defect === undefined ? 0 : 1
    return
  }
  const lives = failing({ store, first: Number(values.seed), ms: 1000 * Number(values.seconds), etcd,
    shortenMs: 1000 * Number(values.shorten) })
  for (;;) {
    const { done, value } = await lives.next()
    if (done) { console.log(`${value} lives in ${seconds()}`); return }
    const { seed, lives: count, defect, program } = value
    console.log(`seed ${seed}, at ${seconds()}, ${count} lives: ${defect.message}`)
    console.log(`  ${program.steps.length} steps: ${JSON.stringify(program)}`)
    process.exitCode = 1
    if (values['keep-going'] !== true) return
  }
})
process.exit() // processes that serve commands wait for more
