/**
 * What the journal in etcd costs beside the file: `node --import tsx --test test/slow/etcd-speed.ts`, SECONDS (default
 * 3) each. The program as it is built, one member of etcd or three, one instance or three, load from other processes;
 * all of it shares this machine. Prints a row a case: the median of three rounds.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import type { LoadReport } from '../bench/load.ts'
import { ANY_CORES, Load, requestBytes } from '../bench/processes.ts'
import { startCluster } from '../support/etcd.ts'
import { FIELDS, flagsOf } from '../support/instances.ts'
import { startProgram, type Program } from '../support/program.ts'
import { send } from '../support/service.ts'

const SECONDS = Number(process.env['SECONDS'] ?? 3)
const ROUNDS = 3
const CREATE = requestBytes({ method: 'POST', path: '/api/createPassword', body: Buffer.from(JSON.stringify(FIELDS)) })
const GETS = Array.from({ length: 100 }, (_, i) => requestBytes({ method: 'GET', path: `/api/getPassword/${i + 1}` }))

async function start(t: TestContext, kind: string): Promise<Program[]> {
  if (kind === 'file') return [await startProgram(t)]
  const [members, instances] = kind.split(' ').map(Number)
  const { endpoints } = await startCluster(t, { members: members! })
  const secret = randomBytes(32)
  return Promise.all(Array.from({ length: instances! }, () => startProgram(t, { flags: flagsOf(t, endpoints, secret) })))
}

/** Shares the connections among the programs; gives the sum of the rates and the worst latencies. */
async function measure(
  programs: readonly Program[], loads: readonly Load[], connections: number, requests: readonly Buffer[]
): Promise<Pick<LoadReport, 'rate' | 'p50Ms' | 'p99Ms'>> {
  const used = programs.slice(0, connections)
  const reports = await Promise.all(used.map(({ url }, i) => loads[i]!.run({
    port: Number(new URL(url).port), connections: Math.floor(connections / used.length), warmMs: 500,
    measuredMs: SECONDS * 1000, requests
  })))
  const worst = (of: (report: LoadReport) => number): number => Math.max(...reports.map(of))
  return {
    rate: reports.reduce((sum, { rate }) => sum + rate, 0), p50Ms: worst(({ p50Ms }) => p50Ms),
    p99Ms: worst(({ p99Ms }) => p99Ms)
  }
}

for (const [kind, name] of [
  ['file', 'file'], ['1 1', 'one member, one instance'], ['3 1', 'three members, one instance'],
  ['3 3', 'three members, three instances']
] as const) {
  test(name, async t => {
    const programs = await start(t, kind)
    const loads = programs.map(() => new Load(ANY_CORES))
    t.after(() => { for (const { child } of loads) child.kill() })
    for (let i = 0; i < 100; i++) {
      assert.equal((await send(programs[0]!.url, 'POST', '/api/createPassword', FIELDS)).status, 200)
    }
    for (const [what, requests] of [['create', [CREATE]], ['get', GETS]] as const) {
      for (const connections of [1, 16, 64]) {
        const rounds = []
        for (let round = 0; round < ROUNDS; round++) rounds.push(await measure(programs, loads, connections, requests))
        const { rate, p50Ms, p99Ms } = rounds.sort((a, b) => a.rate - b.rate)[1]!
        t.diagnostic([name, what, connections, Math.round(rate), p50Ms.toFixed(2), p99Ms.toFixed(2)].join(' | '))
      }
    }
  })
}
