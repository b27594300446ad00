/**
 * Honest logins beside a flood: `node --import tsx test/campaigns/login-flood.ts`, with ADDRESSES (300) that each try a
 * login every two seconds, for SECONDS (40), and HONEST (10) users each who have and who have not shown a token from
 * their address before. SERVER names another build. Prints how many honest logins got through within five seconds,
 * and how long they took. Its figures want a machine that is otherwise quiet.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { fileStore } from '../support/stores.ts'
import { freshFolder, Steps } from '../support/service.ts'

const ADDRESSES = Number(process.env['ADDRESSES'] ?? 300)
const SECONDS = Number(process.env['SECONDS'] ?? 40)
const SERVER = process.env['SERVER'] ?? fileURLToPath(new URL('../../dist/server.js', import.meta.url))
const PASSWORD = 'velvet tractor harmonica 81'
const HONEST = Number(process.env['HONEST'] ?? 10)
const EVERY_MS = 12_000

const scope = new Steps()
const folder = freshFolder(scope)
const store = await fileStore(folder)
const users = ['known', 'new'].flatMap(kind => Array.from({ length: HONEST }, (_, n) => `${kind}${n}@example.org`))
for (const email of users) await store.accounts.addUser(email, undefined, ['*'], PASSWORD)
await store.close()
const program = spawn(process.execPath, [
  SERVER, '--port=0', `--data=${folder}`, '--auth=bearer', '--trust-proxy=127.0.0.1', '--login-limit=30', '--page=off'
], { stdio: ['ignore', 'pipe', 'inherit'] })
const ended = once(program, 'exit')
let printed = ''
program.stdout.setEncoding('utf8').on('data', text => { printed += text })
while (!/address +http:\S+/.test(printed)) await once(program.stdout, 'data')
const url = /address +(http:\S+)/.exec(printed)![1]!
const agent = new Agent({ keepAlive: true, maxSockets: Infinity })

interface Answered { readonly status: number, readonly ms: number, readonly text: string }

function ask(method: string, path: string, client: string, body?: object, token?: string): Promise<Answered> {
  const beganMs = performance.now()
  return new Promise((resolve, reject) => {
    const headers = {
      'X-Forwarded-For': client, 'Content-Type': 'application/json', ...token && { Authorization: `Bearer ${token}` }
    }
    const sent = request(url + path, { method, agent, headers }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', piece => { text += piece })
      response.on('end', () => resolve({ status: response.statusCode!, ms: performance.now() - beganMs, text }))
    })
    sent.on('error', reject)
    sent.end(body && JSON.stringify(body))
  })
}

const login = (email: string, client: string): Promise<Answered> =>
  ask('POST', '/api/login', client, { email, password: PASSWORD })
const addressOf = (n: number): string => `10.0.${n >> 8}.${n & 255}`
const pause = (ms: number): Promise<unknown> => new Promise(resolve => setTimeout(resolve, ms))

for (const [n, email] of users.entries()) {
  if (!email.startsWith('known')) continue
  const { token } = JSON.parse((await login(email, `192.0.2.${n}`)).text)
  await ask('GET', '/api/getPassword/1', `192.0.2.${n}`, undefined, token)
}
await pause(1_000)
const endMs = performance.now() + SECONDS * 1_000
const flood = { 401: 0, 503: 0, 429: 0 } as Record<number, number>
const honest: { readonly kind: string, readonly status: number, readonly ms: number }[] = []
const attackers = Array.from({ length: ADDRESSES }, async (_, n) => {
  await pause(n / ADDRESSES * 2_000)
  for (let k = 0; performance.now() < endMs; k++) {
    void login(`${n}.${k}@flood.example`, addressOf(n))
      .then(({ status }) => { flood[status] = (flood[status] ?? 0) + 1 }, () => {}) // some wait at the end
    await pause(2_000)
  }
})
const people = users.map(async (email, n) => {
  await pause(3_000 + n / users.length * EVERY_MS)
  const waits: Promise<unknown>[] = []
  while (performance.now() < endMs) {
    waits.push(login(email, `192.0.2.${n}`).then(({ status, ms }) =>
      honest.push({ kind: email.startsWith('known') ? 'known' : 'new', status, ms })))
    await pause(EVERY_MS)
  }
  await Promise.all(waits)
})
await Promise.all([...attackers, ...people])
console.log(`flood of ${ADDRESSES} addresses, ${SECONDS} s: ${JSON.stringify(flood)}`)
for (const kind of ['known', 'new']) {
  const all = honest.filter(one => one.kind === kind)
  const good = all.filter(({ status }) => status === 200).map(({ ms }) => ms).sort((a, b) => a - b)
  const quick = good.filter(ms => ms <= 5_000).length
  const at = (share: number): string =>
    good.length === 0 ? '-' : `${Math.round(good[Math.floor(share * (good.length - 1))]!)} ms`
  console.log(`${kind.padEnd(5)} ${quick} of ${all.length} within 5 s; p50 ${at(0.5)}, longest ${at(1)}; ` +
    `refused ${all.length - good.length}`)
}
agent.destroy()
program.kill()
await ended
await scope.end()
