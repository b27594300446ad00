/**
 * Everything that opens closes: after an open and a close, and after an open or a close that failed at any step,
 * nothing is left: no timer, listener, descriptor, socket file, half a file, nor the lock.
 */
import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { getEventListeners, once } from 'node:events'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { disk } from '../../src/journal/files.ts'
import { lockFolder } from '../../src/journal/lock.ts'
import { listen } from '../../src/http/listener.ts'
import { openService as embed } from '../../src/index.ts'
import { openService } from '../../src/service.ts'
import { JOURNALS, PARTS, readSettings } from '../../src/settings.ts'
import { openStorage } from '../../src/storage.ts'
import { certificateFiles } from '../support/certificate.ts'
import { freshFolder } from '../support/service.ts'

/** What is being closed may need some turns of the event loop. */
const SETTLED_MS = 5_000

type Close = () => unknown
/** Opens something that is to be closed; with what is in the place it may have been opened before. */
type Open = (place: Place) => Promise<Close>

interface Place { readonly folder: string, readonly signal: AbortSignal, readonly tls: { readonly 'tls-cert': string, readonly 'tls-key': string } }

const log = { info: () => {}, warn: () => {}, access: { write: () => {}, pendingBytes: () => 0 } }

/** A service, which listens, with these flags besides. */
const service = (...flags: readonly string[]): Open => async ({ folder, tls }) => {
  const more = flags.map(flag => flag.replace('CERT', tls['tls-cert']).replace('KEY', tls['tls-key']))
  const opened = await openService(readSettings([`--data=${folder}`, '--port=0', ...more], {}), log)
  try {
    await opened.listen()
  } catch (error) {
    await opened.close()
    throw error
  }
  return opened.close
}

const OPENINGS: { readonly [name: string]: Open } = {
  'the lock of a folder': async ({ folder }) => (await lockFolder(disk, folder)).release,
  'a storage': async ({ folder }) =>
    (await openStorage({ dataDir: folder, keyFile: undefined, journal: 'file' }, JOURNALS, log)).close,
  'a storage in memory': async () =>
    (await openStorage({ dataDir: '', keyFile: undefined, journal: 'memory' }, JOURNALS, log)).close,
  'a listener': async () => {
    const { close } = await listen({ host: '127.0.0.1', port: 0 }, () => {})
    return () => close(0)
  },
  'a service': service(),
  'a protected service with all that is switched on': service('--auth=bearer', '--access-log=on', '--tls-cert=CERT', '--tls-key=KEY', '--extra-routes=on'),
  'an embedded service': async ({ folder, signal }) => {
    const opened = await embed({ dataDir: folder, auth: 'bearer', log, signal })
    return opened.close
  }
}

const timers = new Map<number, string>()
createHook({
  init: (id, type) => { if (type === 'Timeout') timers.set(id, new Error(type).stack ?? '') },
  destroy: id => timers.delete(id)
}).enable()

const descriptors = (): string[] => existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').flatMap(fd => {
  try {
    const path = readlinkSync(`/proc/self/fd/${fd}`)
    return /\/tsx-\d+/.test(path) ? [] : [path] // tsx writes what it has compiled when it likes
  } catch {
    return [] // the one that reads this list
  }
}).sort() : []

const listeners = (): string => process.eventNames().map(name => `${String(name)} ${process.listenerCount(name)}`).join()

/** Does something, after which nothing may be left that was not there before. */
async function leavesNothing(place: Place, what: string, act: () => Promise<void>): Promise<void> {
  const [before, events, known] = [descriptors(), listeners(), new Set(timers.keys())]
  await act()
  const isLeft = (): object => ({
    timers: [...timers].filter(([id]) => !known.has(id)).map(([, stack]) => stack.split('\n').find(line => line.includes('/src/'))).filter(one => one !== undefined),
    descriptors: descriptors().filter(one => !before.includes(one)),
    files: readdirSync(place.folder).filter(name => /\.(sock|part)$/.test(name)),
    signal: getEventListeners(place.signal, 'abort').length
  })
  const nothing = { timers: [], descriptors: [], files: [], signal: 0 }
  for (const endMs = performance.now() + SETTLED_MS; JSON.stringify(isLeft()) !== JSON.stringify(nothing) && performance.now() < endMs;) await pause(10)
  assert.deepEqual(isLeft(), nothing, what)
  assert.equal(listeners(), events, what)
}

/** While it lasts, the call of the disk with that number fails, once; gives how many calls there were. */
async function failing(at: number, act: () => Promise<void>): Promise<number> {
  let calls = 0
  const whole = { ...disk }
  for (const [name, call] of Object.entries<(...given: any[]) => unknown>(whole)) {
    Object.assign(disk, {
      [name]: (...given: readonly unknown[]) => {
        // A close that fails has closed all the same (close(2)), and what cannot be removed stays, whoever tries.
        if (++calls === at && !['close', 'remove'].includes(name)) throw Object.assign(new Error(`EIO: ${name} fails as the test asked`), { code: 'EIO' })
        return call(...given)
      }
    })
  }
  try {
    await act()
  } finally {
    Object.assign(disk, whole)
  }
  return calls
}

function placeOf(t: TestContext): Place {
  return { folder: freshFolder(t), signal: new AbortController().signal, tls: certificateFiles(freshFolder(t)) }
}

for (const [name, open] of Object.entries(OPENINGS)) {
  test(`${name} leaves nothing once it is closed, whichever call of the disk fails while it opens or closes`, async t => {
    const place = placeOf(t)
    await (await open(place))() // what is loaded, and the first files, stay
    await leavesNothing(place, 'opened and closed', async () => { await (await open(place))() })
    for (let at = 1; ; at++) {
      let calls = 0
      await leavesNothing(place, `call ${at} fails as it opens`, async () => {
        let close: Close = () => {}
        calls = await failing(at, async () => { close = await open(place).catch(() => close) })
        await close()
      })
      if (at > calls) break
    }
    for (let at = 1; ; at++) {
      let calls = 0
      await leavesNothing(place, `call ${at} fails as it closes`, async () => {
        const close = await open(place)
        calls = await failing(at, async () => { await Promise.resolve(close()).catch(() => {}) })
      })
      if (at > calls) break
    }
    await (await open(place))()
  })
}

/** A part of a service cannot be opened, or what it listens at is taken: what was opened before is closed. */
for (const part of [...PARTS, undefined]) {
  const what = part === undefined ? 'whose address is taken' : `whose part ${PARTS.indexOf(part) + 1} does not open`
  test(`a service ${what} leaves nothing, and every part that was opened is closed`, async t => {
    const place = placeOf(t)
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const flags = part === undefined ? [`--port=${port}`] : []
    const open = service('--auth=bearer', '--extra-routes=on', ...flags)
    await open(place).then(close => close(), () => {})
    const whole = PARTS.map(one => one.open)
    let opened = 0
    for (const one of PARTS) {
      const original = one.open
      Object.assign(one, {
        open: async (...given: Parameters<NonNullable<typeof original>>) => {
          if (one === part) throw new Error('as the test asked')
          const made = await original?.(...given) ?? {}
          opened++
          return { ...made, close: () => { opened--; made.close?.() } }
        }
      })
    }
    try {
      await leavesNothing(place, what, async () => { await assert.rejects(open(place)) })
      assert.equal(opened, 0)
    } finally {
      PARTS.forEach((one, at) => Object.assign(one, { open: whole[at] }))
      taken.close()
    }
  })
}
