/**
 * How fast the journal in etcd is: `node --import tsx --test test/slow/etcd-speed.ts`. Three members, one to three
 * instances of the program as it is built, load from other processes; all of it shares this machine. In the far cases
 * one of the instances has a round trip of 10 ms to etcd, and it alone has the one connection. Prints a row a case, the
 * median of ROUNDS (default 3) of SECONDS (default 2): answers a second, how many of them the slowest instance gave, ms
 * at p50 and p99, and how many were not 200. With FIRST in the environment, another version's `dist/server.js`, each
 * case is run with that as well, by turns.
 */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import type { LoadOrder, LoadReport } from '../bench/load.ts'
import { ANY_CORES, Load } from '../bench/servers.ts'
import { requestBytes } from '../bench/works.ts'
import { startCluster, startDelay } from '../support/etcd.ts'
import { FIELDS, flagsOf } from '../support/instances.ts'
import { startProgram, type Program } from '../support/program.ts'
import { send } from '../support/service.ts'

const SECONDS = Number(process.env['SECONDS'] ?? 2)
const ROUNDS = Number(process.env['ROUNDS'] ?? 3)
const FIRST = process.env['FIRST']
const CREATE = requestBytes({ method: 'POST', path: '/api/createPassword', body: Buffer.from(JSON.stringify(FIELDS)) })
const GETS = Array.from({ length: 100 }, (_, i) => requestBytes({ method: 'GET', path: `/api/getPassword/${i + 1}` }))
const WORKS = [
  ['create', [CREATE], 1], ['create', [CREATE], 16], ['create', [CREATE], 64], ['create', [CREATE], 192],
  ['get', GETS, 64]
] as const
const VERSIONS = ['now', ...FIRST === undefined ? [] : ['first']] as const

interface Row { readonly rate: number, readonly slowest: number, readonly p50: number, readonly p99: number, readonly refused: number }

async function start(t: TestContext, version: string, instances: number, isFar: boolean): Promise<Program[]> {
  const { endpoints, members } = await startCluster(t, { members: 3 })
  const far = isFar ? (await Promise.all(members.map(({ url }) => startDelay(t, url, 5)))).join(',') : endpoints
  const secret = randomBytes(32)
  const programs: Program[] = []
  for (let i = 0; i < instances; i++) {
    const flags = await flagsOf(t, i === 0 ? far : endpoints, secret)
    const command = version === 'first' ? { command: [process.execPath, FIRST!] } : {}
    programs.push(await startProgram(t, { flags, ...command }))
  }
  for (let i = 0; i < 100; i++) await send(programs.at(-1)!.url, 'POST', '/api/createPassword', FIELDS)
  return programs
}

async function run({ child }: Load, order: LoadOrder): Promise<LoadReport> {
  child.send(order)
  const [report] = await once(child, 'message')
  return report
}

/** Shares the connections among the programs. */
async function measure(
  programs: readonly Program[], loads: readonly Load[], connections: number, requests: readonly Buffer[]
): Promise<Row> {
  const used = programs.slice(0, connections)
  const reports = await Promise.all(used.map(({ url }, i) => run(loads[i]!, {
    port: Number(new URL(url).port), connections: Math.floor(connections / used.length), warmMs: 500,
    measuredMs: SECONDS * 1000, requests
  })))
  const all = (of: (report: LoadReport) => number): number[] => reports.map(of)
  return {
    rate: all(({ rate }) => rate).reduce((sum, rate) => sum + rate, 0), slowest: Math.min(...all(({ rate }) => rate)),
    p50: Math.max(...all(({ p50Ms }) => p50Ms)), p99: Math.max(...all(({ p99Ms }) => p99Ms)),
    refused: all(({ refusals }) => refusals).reduce((sum, one) => sum + one, 0)
  }
}

for (const isFar of [false, true]) {
  for (const instances of [1, 2, 3]) {
    const name = `${instances} ${instances === 1 ? 'instance' : 'instances'}${isFar ? ', one far' : ''}`
    test(name, async t => {
      const loads = Array.from({ length: instances }, () => new Load(ANY_CORES))
      t.after(() => { for (const { child } of loads) child.kill() })
      const programs: Program[][] = []
      for (const version of VERSIONS) programs.push(await start(t, version, instances, isFar))
      for (const [what, requests, connections] of WORKS) {
        const rows: Row[][] = VERSIONS.map(() => [])
        for (let round = 0; round < ROUNDS; round++) {
          for (const [i, ones] of programs.entries()) rows[i]!.push(await measure(ones, loads, connections, requests))
        }
        for (const [i, version] of VERSIONS.entries()) {
          const middle = rows[i]!.sort((a, b) => a.rate - b.rate)[Math.floor(ROUNDS / 2)]!
          const numbers = Object.values(middle).map(value => value < 10 ? value.toFixed(1) : String(Math.round(value)))
          t.diagnostic([name, what, connections, version, ...numbers].join(' | '))
        }
      }
    })
  }
}
