/**
 * A house whose places are all taken: kinds of attackers that fill it and come again whenever they are closed, and
 * kinds of honest clients that want to be served meanwhile. Each honest kind counts how often it asked, and how often
 * it was served; a client that was let go while it did nothing comes again once, as every client does.
 */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { certificateFiles } from './certificate.ts'
import { programWithin, startProgram } from './program.ts'
import { message } from './raw.ts'
import { freshFolder, type Scope } from './service.ts'

const ROUND_TRIP_MS = 300
/** On a busy machine an answer may take its time; who has to give way is closed at once. */
const ANSWER_MS = 25_000
/** What node:net reads at once; a list has more than the system's buffers hold. */
const READ_BYTES = 64 * 1024
const LIST_ENTRIES = 48
const SLOW_BYTES_PER_SECOND = 20 * 1024

const BODY = JSON.stringify({ password: 'p', sistema: 's', usuario: 'u' })
const GET = message('GET', '/api/getPassword/1')
const LIST = message('GET', '/api/listPassword')
const begun = (path: string): Buffer => message('POST', path, 'x'.repeat(1_000)).subarray(0, -1_000)

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/** Asks again and again. */
function asks(socket: Socket, eachMs: number): void {
  socket.on('data', () => {}).write(GET)
  const timer = setInterval(() => socket.write(GET), eachMs)
  socket.on('close', () => clearInterval(timer))
}

/** Reads a piece, then waits until its time has passed. */
function reads(socket: Socket, bytesPerSecond: number): void {
  socket.on('data', ({ length }: Buffer) => {
    socket.pause()
    setTimeout(() => socket.resume(), length / bytesPerSecond * 1_000)
  })
}

const upTo = (bytes: number) => (socket: Socket): void => { socket.write(LIST); reads(socket, bytes) }

/** What an attacker does on each of its connections. */
const ACTS: { readonly [kind: string]: (socket: Socket) => void } = {
  'silence': () => {},
  'half a head': socket => { socket.write('GET / HTTP/1.1\r\nHost: a\r\n') },
  'asked once and idle': socket => { socket.resume().write(GET) },
  'asks each second': socket => asks(socket, 1_000),
  'a body owed behind the answer': socket => { socket.resume().write(begun('/nope')) },
  'a body owed before the answer': socket => { socket.resume().write(begun('/api/createPassword')) },
  'a trickled body': socket => {
    socket.resume().write(begun('/api/createPassword'))
    const timer = setInterval(() => socket.write('x'), 500)
    socket.on('close', () => clearInterval(timer))
  },
  'lists not read': socket => { socket.pause().write(LIST) },
  'slow readers': upTo(4 * 1024),
  'greedy readers': upTo(READ_BYTES),
  'lingering': socket => { socket.resume().write('GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n') }
}

export const ATTACKS: readonly string[] = [...Object.keys(ACTS), 'all mixed', 'handshakes']

export interface Served { readonly asked: number, readonly served: number, readonly again: number }

export interface House {
  readonly url: string
  readonly places: number
  readonly isTls: boolean
}

/** A program with so many places, and a long list. */
export async function openHouse(
  t: Scope, places: number, isTls: boolean, command: readonly string[] = programWithin(t, { MAX_CONNECTIONS: places })
): Promise<House> {
  const flags = { journal: 'memory', 'max-body-bytes': '1000000', ...isTls ? certificateFiles(freshFolder(t)) : {} }
  const { url } = await startProgram(t, { command, flags })
  const house = { url, places, isTls }
  const entry = JSON.stringify({ password: 'x'.repeat(150_000), sistema: 's', usuario: 'u' })
  const socket = await opened(house, 1)
  for (const one of [BODY, ...Array<string>(LIST_ENTRIES).fill(entry)]) {
    socket.write(message('POST', '/api/createPassword', one))
    await heard(socket, / 200 /)
  }
  socket.destroy()
  return house
}

/** A connection from 127.0.0.n; over TLS, before its handshake. */
function reach({ url }: House, client: number): Socket {
  const place = { port: Number(new URL(url).port), host: '127.0.0.1', localAddress: `127.0.0.${client}` }
  return connectTcp(place).setNoDelay().on('error', () => {})
}

function secured(socket: Socket): TLSSocket {
  return connectTls({ socket, rejectUnauthorized: false }).on('error', () => {})
}

/** Rejects if the connection is closed before. */
async function opened(house: House, client: number, roundTripMs = 0): Promise<Socket> {
  const socket = reach(house, client)
  await first(socket, 'connect')
  await pause(roundTripMs)
  if (!house.isTls) return socket
  const secure = secured(socket)
  await first(secure, 'secureConnect')
  await pause(roundTripMs)
  return secure
}

/** Rejects if the connection is closed before, or after so long. */
async function first(socket: Socket, event: string): Promise<void> {
  if (socket.destroyed) throw new Error('closed')
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(), ANSWER_MS)
  const { signal } = over
  try {
    const isClosed = await Promise.race([once(socket, event, { signal }).then(() => false),
      once(socket, 'close', { signal }).then(() => true)])
    if (isClosed) throw new Error('closed')
  } finally {
    clearTimeout(timer)
    over.abort()
  }
}

async function heard(socket: Socket, pattern: RegExp): Promise<void> {
  await first(socket, 'readable')
  const text = String(socket.read())
  if (!pattern.test(text)) throw new Error(text.slice(0, 200))
}

/** Keeps more connections open than there are places, and opens so many a second of those that were closed. */
function attack(house: House, kind: string, perSecond: number): () => void {
  const sockets = new Set<Socket>()
  const most = Math.ceil(house.places * 1.25)
  const kinds = kind === 'all mixed' ? Object.keys(ACTS) : [kind]
  let opens = 0
  const open = (): void => {
    const below = reach(house, 2 + opens % 7)
    sockets.add(below)
    below.on('close', () => sockets.delete(below))
    const act = ACTS[kinds[opens++ % kinds.length]!]
    const isSecured = house.isTls && act !== undefined
    const socket = isSecured ? secured(below) : below
    if (act !== undefined) socket.once(isSecured ? 'secureConnect' : 'connect', () => act(socket))
  }
  let lastMs = performance.now()
  let due = 0
  const timer = setInterval(() => {
    const nowMs = performance.now()
    due = Math.min(due + (nowMs - lastMs) / 1_000 * perSecond, perSecond / 4)
    lastMs = nowMs
    for (; due >= 1 && sockets.size < most; due--) open()
  }, 10)
  return () => {
    clearInterval(timer)
    for (const socket of sockets) socket.destroy()
  }
}

/** One try of an honest client; rejects if it was not served. What it keeps open it is given again. */
type Try = (house: House, kept: Socket | undefined, endMs: number) => Promise<Socket | undefined>

const asksOnce = (roundTripMs: number): Try => async house => {
  const socket = await opened(house, 9, roundTripMs)
  try {
    await pause(roundTripMs)
    socket.write(GET)
    await heard(socket, /^HTTP\/1.1 200 /)
    return undefined
  } finally {
    socket.destroy()
  }
}

const asksEach = (ms: number): Try => async (house, kept, endMs) => {
  if (kept !== undefined) await pause(Math.max(0, Math.min(ms, endMs - performance.now())))
  const socket = kept ?? await opened(house, 9)
  try {
    socket.write(GET)
    await heard(socket, /^HTTP\/1.1 200 /)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

interface Honest { readonly act: Try, readonly comesAgain?: true, readonly count?: number }

const HONEST: { readonly [kind: string]: Honest } = {
  'new': { act: asksOnce(0) },
  'far': { act: asksOnce(ROUND_TRIP_MS), count: 3 },
  '100 Continue': {
    count: 3,
    act: async house => {
      const socket = await opened(house, 9)
      try {
        socket.write(message('POST', '/api/updatePassword/1', BODY, ['Expect: 100-continue']).subarray(0, -BODY.length))
        await heard(socket, /^HTTP\/1.1 100 /)
        await pause(ROUND_TRIP_MS)
        socket.write(BODY)
        await heard(socket, /^HTTP\/1.1 200 /)
        return undefined
      } finally {
        socket.destroy()
      }
    }
  },
  'keep-alive each second': { act: asksEach(1_000), comesAgain: true, count: 2 },
  // Or once at the end, if that is sooner.
  'keep-alive each twenty': { act: asksEach(20_000), comesAgain: true, count: 4 },
  'reader at 20 KiB/s': {
    comesAgain: true,
    act: async house => {
      const socket = await opened(house, 9)
      try {
        socket.write(LIST)
        reads(socket, SLOW_BYTES_PER_SECOND)
        const isCut = await Promise.race([once(socket, 'close').then(() => true), pause(8_000).then(() => false)])
        if (isCut) throw new Error('cut')
        return undefined
      } finally {
        socket.destroy()
      }
    }
  },
  'uploader at 20 KiB/s': {
    comesAgain: true,
    act: async house => {
      const socket = await opened(house, 9)
      try {
        const body = JSON.stringify({ notas: 'n'.repeat(60_000) })
        const request = message('POST', '/api/updatePassword/1', body)
        for (let at = 0; at < request.length && !socket.destroyed; at += 4 * 1024) {
          socket.write(request.subarray(at, at + 4 * 1024))
          await pause(4 * 1024 / SLOW_BYTES_PER_SECOND * 1_000)
        }
        await heard(socket, /^HTTP\/1.1 200 /)
        return undefined
      } finally {
        socket.destroy()
      }
    }
  }
}

export const HONEST_KINDS: readonly string[] = Object.keys(HONEST)

/** Fills the house, then lets honest clients ask for so long. */
export async function besiege(
  house: House, kind: string, seconds: number, perSecond: number = house.places, honest = HONEST_KINDS
): Promise<{ readonly [honest: string]: Served }> {
  const end = attack(house, kind, perSecond)
  await pause(1_500 + house.places / perSecond * 1_250)
  const endMs = performance.now() + seconds * 1_000
  const results: { [honest: string]: Served } = {}
  await Promise.all(honest.map(async name => {
    const { act, comesAgain, count = 1 } = HONEST[name]!
    const tally = { asked: 0, served: 0, again: 0 }
    results[name] = tally
    await Promise.all(Array.from({ length: count }, async () => {
      let kept: Socket | undefined
      while (performance.now() < endMs) {
        tally.asked++
        try {
          kept = await act(house, kept, endMs).catch(error => {
            if (comesAgain !== true) throw error
            tally.again++
            return act(house, undefined, endMs)
          })
          tally.served++
        } catch {
          kept = undefined
        }
        await pause(100)
      }
      kept?.destroy()
    }))
  }))
  end()
  await pause(300)
  return results
}
