/**
 * The load, in a process of its own: keep-alive connections that each send the next request as soon as they are
 * answered. Requests are bytes made beforehand; of an answer only status and length are read.
 */
import { Buffer } from 'node:buffer'
import { connect } from 'node:net'

/** Requests are sent in their order, over and over, each by the next free connection; `warmMs` is not measured. */
export interface LoadOrder extends Readonly<Record<'port' | 'connections' | 'warmMs' | 'measuredMs', number>> {
  readonly requests: readonly Uint8Array[]
}

export interface LoadReport {
  readonly rate: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** The share of its time that this process was busy: near 1, it is itself what is measured. */
  readonly busy: number
  /** All answers, also those before and after the measured time, and those among them that were not 200. */
  readonly answers: number
  readonly refusals: number
}

const LENGTH = '\r\nContent-Length: '
const shared = Buffer.allocUnsafe(256 * 1024)

function obey({ port, connections, warmMs, measuredMs, requests }: LoadOrder): Promise<LoadReport> {
  const latencies = new Float64Array(4_000_000) // more than any server answers in a measured time
  let [measured, answers, refusals, next, running] = [0, 0, 0, 0, connections]
  const beginMs = performance.now() + warmMs
  const endMs = beginMs + measuredMs
  let cpuAtBegin: NodeJS.CpuUsage | undefined
  let cpu: NodeJS.CpuUsage | undefined
  const sockets: ReturnType<typeof connect>[] = []

  const report = (): LoadReport => {
    const sorted = latencies.subarray(0, measured).sort()
    const percentile = (share: number): number => sorted[Math.ceil(measured * share) - 1] ?? NaN
    return {
      rate: measured / measuredMs * 1000, p50Ms: percentile(0.5), p99Ms: percentile(0.99),
      busy: (cpu!.user + cpu!.system) / 1000 / measuredMs, answers, refusals
    }
  }
  /** Takes note of an answer; says whether there is more to send. */
  const answered = (sentMs: number, nowMs: number): boolean => {
    answers++
    if (nowMs < beginMs) return true
    cpuAtBegin ??= process.cpuUsage()
    if (nowMs < endMs) { latencies[measured++] = nowMs - sentMs; return true }
    cpu ??= process.cpuUsage(cpuAtBegin)
    running--
    return false
  }
  return new Promise<LoadReport>((resolve, reject) => {
    const open = (): void => {
      // One socket reads at a time, and looks at what it has read before another does: they share the buffer.
      let head = Buffer.alloc(0)
      let [missingBytes, sentMs] = [0, 0]
      const send = (): void => {
        sentMs = performance.now()
        socket.write(requests[next++ % requests.length]!)
      }
      const take = (bytes: Buffer): void => {
        if (missingBytes > 0) missingBytes -= bytes.length
        else {
          const all = head.length === 0 ? bytes : Buffer.concat([head, bytes])
          const headEnd = all.indexOf('\r\n\r\n')
          if (headEnd < 0) { head = Buffer.from(all); return }
          head = Buffer.alloc(0)
          const at = all.indexOf(LENGTH)
          if (at < 0 || at > headEnd) { reject(new Error('an answer does not say its length')); return }
          if (all.toString('latin1', 9, 12) !== '200') refusals++
          missingBytes = headEnd + 4 + parseInt(all.toString('latin1', at + LENGTH.length, headEnd), 10) - all.length
        }
        if (missingBytes > 0) return
        if (missingBytes < 0) reject(new Error('an answer is longer than it says'))
        else if (answered(sentMs, performance.now())) send()
        else if (running === 0) resolve(report())
      }
      const onread = { buffer: shared, callback: (bytes: number) => { take(shared.subarray(0, bytes)); return true } }
      const socket = connect({ host: '127.0.0.1', port, noDelay: true, onread })
      socket.on('connect', send).on('error', reject).on('close', () =>
        reject(new Error('the server closed a connection')))
      sockets.push(socket)
    }
    for (let i = 0; i < connections; i++) open()
  }).finally(() => { for (const socket of sockets) socket.removeAllListeners('close').destroy() })
}

process.on('message', order => void obey(order as LoadOrder).then(
  report => process.send?.(report), error => process.send?.({ error: String(error) })))
process.on('disconnect', () => process.exit())
