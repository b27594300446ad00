/**
 * Clusters of real etcd on this machine: members in children of the test, on free ports, data in a folder that goes.
 */
import { Buffer } from 'node:buffer'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createHttpServer, request as requestHttp } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { atEnd, freshFolder, type Scope } from './service.ts'

/** Why there is no etcd here, or false. */
export function etcdMissing(program: string = 'etcd'): string | false {
  return versionOf(program) === undefined ? `${program} is not installed` : false
}

/** The release of a program, such as 3.4.23; undefined where there is none. */
export function versionOf(program: string): string | undefined {
  return /^etcd Version: (\S+)$/m.exec(String(spawnSync(program, ['--version']).stdout))?.[1]
}

/** Programs of newer releases than the installed one; `.ci/run` takes them from Debian's newer releases. */
export const NEWER_ETCDS: readonly string[] = (process.env['ETCD_NEWER'] ?? '').split(':').filter(path => path !== '')

export interface ClusterOptions {
  readonly members?: number
  readonly args?: readonly string[]
  /** With `https`, `args` must name the certificate. */
  readonly scheme?: 'http' | 'https'
  /** The program to run; undefined: the one on the path. */
  readonly program?: string
}

export interface Member {
  readonly url: string
  readonly folder: string
  start(): void
  stop(signal?: 'SIGKILL' | 'SIGTERM'): Promise<void>
  /** Stops it where it stands; its sockets stay open. */
  pause(): void
  resume(): void
}

export interface Cluster {
  readonly members: readonly Member[]
  /** As the setting has it. */
  readonly endpoints: string
  ready(): Promise<void>
}

/** Starts a cluster of one member, unless told otherwise, and waits for it; it is killed after the test. */
export async function startCluster(t: Scope, options: ClusterOptions = {}): Promise<Cluster> {
  const { members: count = 1, args = [], scheme = 'http', program = 'etcd' } = options
  const folder = freshFolder(t)
  const ports = await freePorts(2 * count)
  const names = Array.from({ length: count }, (_, i) => `m${i}`)
  const clientUrl = (i: number): string => `${scheme}://127.0.0.1:${ports[2 * i]}`
  const peerUrl = (i: number): string => `http://127.0.0.1:${ports[2 * i + 1]}`
  const members = names.map((name, i): Member => {
    let child: ChildProcess | undefined
    const own = [
      '--name', name, '--data-dir', join(folder, name), '--log-level', 'error',
      '--listen-client-urls', clientUrl(i), '--advertise-client-urls', clientUrl(i),
      '--listen-peer-urls', peerUrl(i), '--initial-advertise-peer-urls', peerUrl(i),
      '--initial-cluster', names.map((other, at) => `${other}=${peerUrl(at)}`).join(',')
    ]
    return {
      url: clientUrl(i), folder: join(folder, name),
      start: () => { child = spawn(program, [...own, ...args], { stdio: 'ignore' }) },
      stop: async (signal = 'SIGKILL') => {
        if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
        const ended = once(child, 'exit')
        child.kill('SIGCONT')
        child.kill(signal)
        await ended
      },
      pause: () => { child!.kill('SIGSTOP') },
      resume: () => { child!.kill('SIGCONT') }
    }
  })
  for (const member of members) {
    member.start()
    atEnd(t, () => member.stop())
  }
  const cluster: Cluster = {
    members, endpoints: members.map(({ url }) => url).join(','),
    ready: async () => {
      const endMs = performance.now() + 120_000
      const key = Buffer.from('ready').toString('base64')
      // Who asks for a user says so only once it could answer.
      const isAsked = (error: unknown): boolean => /user name is empty/.test(String(error))
      while (!await callEtcd(members[0]!.url, '/v3/kv/range', { key }).then(() => true, isAsked)) {
        if (performance.now() > endMs) throw new Error('the cluster is not ready')
        await pause(50)
      }
    }
  }
  if (scheme === 'http') await cluster.ready()
  return cluster
}

/** Asks a member over plain HTTP and gives its answer; rejects with what it says otherwise. */
export async function callEtcd(url: string, path: string, body: object, token = ''): Promise<any> {
  const headers = token === '' ? {} : { Authorization: token }
  const response = await fetch(url + path, {
    method: 'POST', body: JSON.stringify(body), headers, signal: AbortSignal.timeout(5_000)
  })
  if (response.status !== 200) throw new Error(await response.text())
  return response.json()
}

export function base64(text: string): string { return Buffer.from(text).toString('base64') }

const JUNK = base64('junk')

/** Puts junk until a member refuses it for want of room; its quota should be small. */
export async function fillUp(url: string): Promise<void> {
  const value = Buffer.alloc(1024 * 1024).toString('base64')
  for (let puts = 0; puts < 9; puts++) {
    const refusal = await callEtcd(url, '/v3/kv/put', { key: JUNK, value }).then(() => '', String)
    if (/space exceeded/.test(refusal)) return
  }
  throw new Error('there is still room')
}

/** Removes that, and ends the alarm. */
export async function makeRoom(url: string): Promise<void> {
  const { header: { revision } } = await callEtcd(url, '/v3/kv/deleterange', { key: JUNK })
  await callEtcd(url, '/v3/kv/compaction', { revision, physical: true })
  await callEtcd(url, '/v3/maintenance/defragment', {})
  const { alarms } = await callEtcd(url, '/v3/maintenance/alarm', {})
  for (const alarm of alarms) await callEtcd(url, '/v3/maintenance/alarm', { action: 'DEACTIVATE', ...alarm })
}

export function pause(ms: number): Promise<void> { return new Promise(resolve => setTimeout(resolve, ms)) }

/**
 * Ports on which nobody listens. Not those that the system gives away: until a program has taken its own, or while it
 * is started again, another test may get one of these for any connection.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, async () => {
    for (;;) {
      const server = createServer().listen(10_000 + randomInt(10_000), '127.0.0.1')
      if (await once(server, 'listening').then(() => true, () => false)) return server
    }
  }))
  const ports = servers.map(server => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}

/** What becomes of the appends that come through a proxy; `held`: the request goes on when it is released. */
export type Treatment = 'passed' | 'request lost' | 'answer lost' | 'held'

/** Keeps a request; gives what sends it on. */
export type Hold = () => () => Promise<void>

/** A way to a member on which appends get lost. */
export interface LossyProxy {
  readonly url: string
  /**
   * Says what becomes of the next append; those after it pass. `hold` gives what releases one that is held, and
   * resolves once etcd has answered it.
   */
  treat: (append: number, hold: Hold) => Treatment | Promise<Treatment>
  /** Awaited before a request of any kind goes on; gets its body. */
  before: (body: Buffer) => Promise<void> | void
  /** Whether watches get no answer. */
  hidesChanges: boolean
  isCut: boolean
  /** How many appends have come, and how many requests of all kinds. */
  readonly appends: number
  readonly requests: number
}

export async function startProxy(t: TestContext, target: string): Promise<LossyProxy> {
  const sockets = new Set<{ destroy(): void }>()
  const forward = (
    request: IncomingMessage, body: Buffer, response: ServerResponse | undefined, done = (): void => {}
  ): void => {
    const { method, headers, url } = request
    const onward = requestHttp(target + url, { method, headers }, answer => {
      if (response === undefined) { answer.resume().on('end', done); return }
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
      response.on('close', () => onward.destroy())
    })
    onward.on('error', () => response?.destroy())
    onward.end(body)
  }
  const treat: LossyProxy['treat'] = () => 'passed'
  const proxy = { url: '', appends: 0, requests: 0, hidesChanges: false, isCut: false, treat,
    before: (_body: Buffer): Promise<void> | void => {} }
  const server = createHttpServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    proxy.requests++
    await proxy.before(body)
    if (proxy.isCut) { response.destroy(); return }
    if (request.url === '/v3/watch' && proxy.hidesChanges) return
    const isAppend = body.includes('request_put') && body.includes('range_end')
    const hold = (): () => Promise<void> => {
      let released: Promise<void> | undefined
      return () => released ??= new Promise(resolve => forward(request, body, undefined, resolve))
    }
    const treatment = isAppend ? await proxy.treat(++proxy.appends, hold) : 'passed'
    if (treatment === 'passed') { forward(request, body, response); return }
    if (treatment === 'answer lost') await new Promise<void>(resolve => forward(request, body, undefined, resolve))
    setTimeout(() => response.destroy(), 50)
  })
  server.on('connection', socket => { sockets.add(socket) })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return proxy
}

/** Starts a way to a member on which everything takes a time, in each direction; gives its address. */
export async function startDelay(t: TestContext, target: string, ms: number): Promise<string> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const forward = (from: Socket, to: Socket): void => {
    sockets.add(from)
    from.setNoDelay(true)
    from.on('data', data => setTimeout(() => to.writable && to.write(data), ms))
    from.on('close', () => setTimeout(() => to.destroy(), ms))
    from.on('error', () => {})
  }
  const server = createServer(near => {
    const far = connect(Number(port), hostname)
    forward(near, far)
    forward(far, near)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
