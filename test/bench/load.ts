/**
 * The load, in a process of its own: keep-alive connections that each send the next request as soon as they are
 * answered. Requests are bytes that were made before; of an answer no more is read than its status and its length.
 */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Histogram } from './histogram.ts'

/** What to do: requests are sent in their order, over and over, each by whichever connection is free. */
export interface LoadOrder {
  readonly port: number
  readonly connections: number
  /** How long the load runs before it is measured. */
  readonly warmMs: number
  readonly measuredMs: number
  readonly requests: readonly Uint8Array[]
}

/** What came of it. */
export interface LoadReport {
  /** Answers a second while it was measured. */
  readonly rate: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** The share of its time that this process was busy, 0 to 1: near 1 it is itself what is measured. */
  readonly busy: number
  /** All answers, also those before and after what was measured, and those among them that were not 200. */
  readonly answers: number
  readonly refusals: number
}

/** Sockets that connect at once: more would not fit a server's backlog. */
const CONNECTING = 100
const HEAD_END = Buffer.from('\r\n\r\n')
const LENGTH = Buffer.from('\r\nContent-Length: ')
const STATUS_200 = 0x32_30_30

/** One socket reads at a time, and looks at what it has read before another one does. */
const shared = Buffer.allocUnsafe(256 * 1024)

class Connection {
  readonly #run: Run
  readonly #socket: Socket
  #head: Buffer | undefined
  #missingBytes = 0
  #sentMs = 0

  constructor(run: Run, port: number) {
    this.#run = run
    const callback = (bytes: number): boolean => { this.#take(shared.subarray(0, bytes)); return true }
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true, onread: { buffer: shared, callback } })
    this.#socket.on('close', () => run.fail(new Error('the server closed a connection')))
    this.#socket.on('error', error => run.fail(error))
  }

  async open(): Promise<void> { await once(this.#socket, 'connect') }

  send(): void {
    this.#sentMs = performance.now()
    this.#socket.write(this.#run.next())
  }

  destroy(): void { this.#socket.removeAllListeners('close').destroy() }

  #take(bytes: Buffer): void {
    if (this.#missingBytes > 0) {
      this.#missingBytes -= bytes.length
      if (this.#missingBytes <= 0) this.#answered()
      return
    }
    const all = this.#head === undefined ? bytes : Buffer.concat([this.#head, bytes])
    const headEnd = all.indexOf(HEAD_END)
    if (headEnd < 0) { this.#head = Buffer.from(all); return }
    this.#head = undefined
    const at = all.indexOf(LENGTH)
    if (at < 0 || at > headEnd) { this.#run.fail(new Error('an answer does not say its length')); return }
    let length = 0
    for (let i = at + LENGTH.length; all[i]! >= 0x30; i++) length = length * 10 + all[i]! - 0x30
    if (all.readUIntBE(9, 3) !== STATUS_200) this.#run.refusals++
    this.#missingBytes = headEnd + HEAD_END.length + length - all.length
    if (this.#missingBytes <= 0) this.#answered()
  }

  #answered(): void {
    if (this.#missingBytes < 0) { this.#run.fail(new Error('an answer is longer than it says')); return }
    if (this.#run.answered(this.#sentMs, performance.now())) this.send()
  }
}

class Run {
  refusals = 0
  readonly #histogram = new Histogram()
  readonly #order: LoadOrder
  #beginMs = Infinity
  #endMs = Infinity
  #next = 0
  #answers = 0
  #waiting: number
  #cpuAtBegin: NodeJS.CpuUsage | undefined
  #cpu: NodeJS.CpuUsage | undefined
  readonly ended: Promise<void>
  #end!: () => void
  fail!: (error: Error) => void

  constructor(order: LoadOrder) {
    this.#order = order
    this.#waiting = order.connections
    this.ended = new Promise((resolve, reject) => { this.#end = resolve; this.fail = reject })
  }

  /** The connections stand: its time begins. */
  begin(): void {
    this.#beginMs = performance.now() + this.#order.warmMs
    this.#endMs = this.#beginMs + this.#order.measuredMs
  }

  next(): Uint8Array {
    const { requests } = this.#order
    const request = requests[this.#next]!
    this.#next = (this.#next + 1) % requests.length
    return request
  }

  /** Takes note of an answer; says whether there is more to send. */
  answered(sentMs: number, nowMs: number): boolean {
    this.#answers++
    if (nowMs < this.#beginMs) return true
    this.#cpuAtBegin ??= process.cpuUsage()
    if (nowMs < this.#endMs) { this.#histogram.add(nowMs - sentMs); return true }
    this.#cpu ??= process.cpuUsage(this.#cpuAtBegin)
    if (--this.#waiting === 0) this.#end()
    return false
  }

  report(): LoadReport {
    const { measuredMs } = this.#order
    const { user, system } = this.#cpu!
    return {
      rate: this.#histogram.count / measuredMs * 1000,
      p50Ms: this.#histogram.percentileMs(0.5), p99Ms: this.#histogram.percentileMs(0.99),
      busy: (user + system) / 1000 / measuredMs, answers: this.#answers, refusals: this.refusals
    }
  }
}

async function obey(order: LoadOrder): Promise<LoadReport> {
  const run = new Run(order)
  const connections: Connection[] = []
  const work = async (): Promise<void> => {
    while (connections.length < order.connections) {
      const group = Array.from({ length: Math.min(CONNECTING, order.connections - connections.length) },
        () => new Connection(run, order.port))
      connections.push(...group)
      await Promise.all(group.map(one => one.open()))
    }
    run.begin()
    for (const connection of connections) connection.send()
    await run.ended
  }
  try {
    await Promise.race([work(), run.ended])
    return run.report()
  } finally {
    for (const connection of connections) connection.destroy()
  }
}

process.on('message', order => void obey(order as LoadOrder).then(
  report => process.send?.(report), error => process.send?.({ error: String(error) })))
process.on('disconnect', () => process.exit())
