/** The processes of a measurement: the program, the measures beside it, the load. None outlives this one. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { FixedAnswer, Floor } from './floor.ts'
import type { LoadOrder, LoadReport } from './load.ts'

/** The core that servers run on, and that of the load; undefined leaves it to the system. */
export interface Cores {
  readonly server: number | undefined
  readonly load: number | undefined
}

/** A process of a measurement. */
export interface Process {
  readonly child: ChildProcess
}

/** A server. */
export interface Served extends Process {
  readonly port: number
  /** From its birth until it was ready. */
  readonly startMs: number
  /** Ends it, and waits for that. */
  stop(): Promise<void>
}

/** Left to the system. */
export const ANY_CORES: Cores = { server: undefined, load: undefined }

const live = new Set<ChildProcess>()
process.on('exit', () => { for (const child of live) child.kill('SIGKILL') })

/** A core for the servers and another one for the load, where the system has them and a command to choose them. */
export function separateCores(): Cores {
  const canChoose = spawnSync('taskset', ['-c', '1', 'true']).status === 0
  return canChoose && availableParallelism() > 1 ? { server: 0, load: 1 } : ANY_CORES
}

function pathOf(name: string): string { return fileURLToPath(new URL(name, import.meta.url)) }

function start(args: readonly string[], core: number | undefined, output: 'pipe' | 'inherit' = 'pipe'): ChildProcess {
  const command = [...core === undefined ? [] : ['taskset', '-c', String(core)], process.execPath, ...args]
  const child = spawn(command[0]!, command.slice(1), {
    stdio: ['ignore', output, output, 'ipc'], serialization: 'advanced', env: { PATH: process.env['PATH'] }
  })
  live.add(child)
  child.once('exit', () => live.delete(child))
  return child
}

async function end(child: ChildProcess): Promise<void> {
  if (!live.has(child)) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

async function serve(args: readonly string[], core: number | undefined): Promise<Served> {
  const beganMs = performance.now()
  const child = start(args, core)
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', text => { said += String(text) })
  for await (const text of child.stdout!.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    said += String(text)
    if (/^ready$/m.test(said)) break
  }
  const startMs = performance.now() - beganMs
  child.stdout!.resume()
  const port = /^address +http:.*:(\d+)$/m.exec(said)?.[1]
  if (port === undefined) throw new Error(`a server ended before it was ready: ${said}`)
  return { child, port: Number(port), startMs, stop: () => end(child) }
}

/** Starts the program as it is shipped on a data folder, without the rate limit. */
export function serveProgram(folder: string, cores: Cores, nodeFlags: readonly string[] = []): Promise<Served> {
  const flags = ['--port=0', '--rate-limit=0', `--data=${folder}`]
  return serve([...nodeFlags, pathOf('../../dist/server.js'), ...flags], cores.server)
}

/** Starts bare `node:http` with answers, for which it makes that file; `journal`: it writes bodies to this new one. */
export function serveFloor(floor: Floor, file: string, cores: Cores, journal?: string): Promise<Served> {
  writeFileSync(file, JSON.stringify(floor))
  return serve(['--import', 'tsx', pathOf('floor.ts'), file, ...journal === undefined ? [] : [journal]], cores.server)
}

/** Times the bare loop over the lines of a file; gives milliseconds. */
export async function parseLoopMs(file: string, cores: Cores): Promise<number> {
  const child = start(['--import', 'tsx', pathOf('parse-loop.ts'), file], cores.server)
  let said = ''
  for await (const text of child.stdout!.setEncoding('utf8')) said += String(text)
  return JSON.parse(said).ms
}

/** The process that makes the load. */
export class Load implements Process {
  readonly child: ChildProcess
  readonly #exited: Promise<never>

  constructor(cores: Cores) {
    this.child = start(['--import', 'tsx', pathOf('load.ts')], cores.load, 'inherit')
    this.#exited = once(this.child, 'exit').then(() => { throw new Error('the load has ended by itself') })
    this.#exited.catch(() => {}) // where nobody waits for it any more
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

/** Fields that `node:http` adds by itself. */
const OWN_FIELDS = ['date', 'connection', 'keep-alive']

/** Asks a server for a few things, one of a method, and gives what a floor needs to answer the same. */
export async function floorOf(port: number, asked: readonly Asked[]): Promise<Floor> {
  const answers: Record<string, FixedAnswer> = {}
  let keepAliveMs = 0
  for (const { method, path, body } of asked) {
    const headers = body === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': body.length }
    const sent = request({ host: '127.0.0.1', port, method, path, headers }).end(body)
    const [response] = await once(sent, 'response')
    const parts: Buffer[] = await response.toArray()
    if (response.statusCode !== 200) throw new Error(`${method} ${path} was answered ${response.statusCode}`)
    const raw = response.rawHeaders as readonly string[]
    const kept = raw.filter((_, i) => !OWN_FIELDS.includes(raw[i - i % 2]!.toLowerCase()))
    answers[method] = { headers: kept, body: Buffer.concat(parts).toString('base64') }
    keepAliveMs = Number(/timeout=(\d+)/.exec(response.headers['keep-alive'])?.[1]) * 1000
  }
  return { keepAliveMs, answers }
}

/** A request. */
export interface Asked {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: Buffer
}

/** The bytes of a request on a connection that is kept. */
export function requestBytes({ method, path, body }: Asked): Buffer {
  const type = body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  const head = `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${type}\r\n`
  return Buffer.concat([Buffer.from(head), body ?? Buffer.of()])
}

/**
 * What the machine has worked so far for others than these processes, in ms; undefined where it does not tell. From
 * Linux's proc_stat(5): user, nice, system, then idle and waiting, irq, softirq, steal, in hundredths of a second.
 */
export function othersMs(...own: readonly Process[]): number | undefined {
  try {
    const all = readFileSync('/proc/stat', 'latin1').split('\n')[0]!.trim().split(/ +/).slice(1).map(Number)
    const worked = [0, 1, 2, 5, 6, 7].reduce((sum, i) => sum + all[i]!, 0) * 10
    return own.reduce((rest, { child }) => rest - cpuMs(child), worked)
  } catch {
    return undefined
  }
}

/** From proc_pid_stat(5): fields 14 and 15, behind a name in brackets. */
function cpuMs({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** The most memory that a process has had so far, in bytes; undefined where the system does not tell. */
export function peakBytes({ child }: Served): number | undefined {
  try {
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)![1]) * 1024
  } catch {
    return undefined
  }
}
