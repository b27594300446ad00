/**
 * The model for long: `npm run test:model -- [--seconds N] [--seed N] [--keep-going]`; one program again:
 * `npm run test:model -- '{"config":…,"steps":…}'`. PROGRAM names the root of another build.
 */
import { parseArgs } from 'node:util'
import { kindOf, live, programOf, shortened, textOf, type Program } from './lives.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string', default: '3600' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) }, shorten: { type: 'string', default: '120' },
    'keep-going': { type: 'boolean' } }
})
const began = performance.now()
const seconds = (): string => `${((performance.now() - began) / 1000).toFixed(0)} s`
if (positionals[0] !== undefined) {
  const defect = await live(JSON.parse(positionals[0]) as Program)
  console.log(defect?.message ?? 'nothing is wrong')
  process.exit(defect === undefined ? 0 : 1)
}
const found = new Set<string>()
let lives = 0
for (let seed = Number(values.seed); performance.now() - began < Number(values.seconds) * 1000; seed++) {
  const program = programOf(seed)
  const defect = await live(program).catch(error => { console.log(`seed ${seed}: ${error.stack}`); return undefined })
  lives++
  if (defect === undefined || found.has(kindOf(defect))) continue
  found.add(kindOf(defect))
  const at = seconds()
  console.log(`seed ${seed}, after ${at} and ${lives} lives: ${defect.message}`)
  const short = await shortened(program, kindOf(defect), performance.now() + 1000 * Number(values.shorten))
  console.log(`  ${short.steps.length} steps, at ${seconds()}: ${textOf(short)}`)
  process.exitCode = 1
  if (values['keep-going'] !== true) break
}
console.log(`${lives} lives in ${seconds()}`)
