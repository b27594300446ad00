/** The processes of a measurement: the program, the measures beside it, the load. None outlives this one. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Floor } from './floor.ts'
import type { LoadOrder, LoadReport } from './load.ts'
import type { Asked } from './works.ts'

/** The core that servers run on, and that of the load; undefined leaves it to the system. */
export type Cores = { readonly [process in 'server' | 'load']: number | undefined }

/** A server; `startMs` is from its birth until it was ready. */
export interface Served {
  readonly child: ChildProcess
  readonly port: number
  readonly startMs: number
  stop(): Promise<void>
}

export const ANY_CORES: Cores = { server: undefined, load: undefined }

const live = new Set<ChildProcess>()
process.on('exit', () => { for (const child of live) child.kill('SIGKILL') })

/** A core for the servers and another one for the load, where the system has them and a command to choose them. */
export function separateCores(): Cores {
  const canChoose = spawnSync('taskset', ['-c', '1', 'true']).status === 0
  return canChoose && availableParallelism() > 1 ? { server: 0, load: 1 } : ANY_CORES
}

function pathOf(name: string): string { return fileURLToPath(new URL(name, import.meta.url)) }

function start(args: readonly string[], core: number | undefined): ChildProcess {
  const command = [...core === undefined ? [] : ['taskset', '-c', String(core)], process.execPath, ...args]
  const child = spawn(command[0]!, command.slice(1), {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'], serialization: 'advanced', env: { PATH: process.env['PATH'] }
  })
  live.add(child)
  child.once('exit', () => live.delete(child))
  return child
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  if (child.kill('SIGKILL')) await ended
}

async function serve(args: readonly string[], core: number | undefined): Promise<Served> {
  const beganMs = performance.now()
  const child = start(args, core)
  let text = ''
  for await (const piece of child.stdout!.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    text += String(piece)
    if (/^ready$/m.test(text)) break
  }
  const startMs = performance.now() - beganMs
  child.stdout!.resume()
  const port = /^address +http:.*:(\d+)$/m.exec(text)?.[1]
  if (port === undefined) throw new Error(`a server ended before it was ready: ${text}`)
  return { child, port: Number(port), startMs, stop: () => end(child) }
}

/** Starts the program as it is shipped on a data folder, without the rate limit. */
export function serveProgram(folder: string, cores: Cores): Promise<Served> {
  const flags = ['--port=0', '--rate-limit=0', `--data=${folder}`]
  return serve([pathOf('../../../dist/server.js'), ...flags], cores.server)
}

/** Starts bare `node:http` with answers, for which it makes that file; `journal`: it writes bodies to this new one. */
export function serveFloor(floor: Floor, file: string, cores: Cores, journal?: string): Promise<Served> {
  writeFileSync(file, JSON.stringify(floor))
  return serve(['--import', 'tsx', pathOf('floor.ts'), file, ...journal === undefined ? [] : [journal]], cores.server)
}

/** Milliseconds that a bare loop of `JSON.parse` over the lines of a file takes. */
export async function parseLoopMs(file: string, cores: Cores): Promise<number> {
  const loop = `import fs from 'node:fs'
    const beganMs = performance.now(), found = new Map()
    for (const line of fs.readFileSync(process.argv[1], 'latin1').trimEnd().split('\\n')) {
      found.set(found.size, line && JSON.parse(line))
    }
    process.send(performance.now() - beganMs)`
  const child = start(['--input-type=module', '-e', loop, file], cores.server)
  const [ms] = await once(child, 'message')
  await end(child)
  return ms
}

export class Load {
  readonly child: ChildProcess
  readonly #exited: Promise<never>

  constructor(cores: Cores) {
    this.child = start(['--import', 'tsx', pathOf('load.ts')], cores.load)
    this.#exited = once(this.child, 'exit').then(() => { throw new Error('the load has ended by itself') })
    this.#exited.catch(() => {}) // where nothing waits for it any more
  }

  /** Has a load made; rejects when a connection broke, or an answer was not 200. */
  async run(order: LoadOrder): Promise<LoadReport> {
    this.child.send(order)
    const [report] = await Promise.race([once(this.child, 'message'), this.#exited])
    if (report.error !== undefined) throw new Error(`the load: ${report.error}`)
    if (report.refusals > 0) throw new Error(`${report.refusals} of ${report.answers} answers were not 200`)
    return report
  }

  end(): Promise<void> { return end(this.child) }
}

/** Asks a server for a few things, one of a method, and gives what a floor needs to answer the same. */
export async function floorOf(port: number, asked: readonly Asked[]): Promise<Floor> {
  const answers: { [method: string]: Floor['answers'][string] } = {}
  let keepAliveMs = 0
  for (const { method, path, body } of asked) {
    const headers = body === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': body.length }
    const [response] = await once(request({ host: '127.0.0.1', port, method, path, headers }).end(body), 'response')
    const parts: Buffer[] = await response.toArray()
    if (response.statusCode !== 200) throw new Error(`${method} ${path} was answered ${response.statusCode}`)
    const raw = response.rawHeaders as readonly string[]
    // But for those that node:http adds by itself.
    const kept = raw.filter((_, i) => !/^(date|connection|keep-alive)$/i.test(raw[i - i % 2]!))
    answers[method] = { headers: kept, body: Buffer.concat(parts).toString('base64') }
    keepAliveMs = Number(/timeout=(\d+)/.exec(response.headers['keep-alive'])?.[1]) * 1000
  }
  return { keepAliveMs, answers }
}

/**
 * What the machine has worked so far for others than these processes, in ms; NaN where it does not say. From
 * proc_stat(5): user, nice, system, then idle and waiting, irq, softirq, steal, in hundredths of a second.
 */
export function othersMs(...own: readonly { readonly child: ChildProcess }[]): number {
  try {
    const all = readFileSync('/proc/stat', 'latin1').split('\n')[0]!.trim().split(/ +/).slice(1).map(Number)
    const worked = [0, 1, 2, 5, 6, 7].reduce((sum, i) => sum + all[i]!, 0)
    return own.reduce((rest, { child: { pid } }) => {
      const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ')
      return rest - Number(fields[11]) - Number(fields[12])
    }, worked) * 10
  } catch {
    return NaN
  }
}

/** The most memory that a process has had so far, in bytes (proc_pid_status(5)); NaN where the system does not say. */
export function peakBytes({ child }: Served): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1]) * 1024
  } catch {
    return NaN
  }
}
