/** What is left once something was closed, and must not be: timers, listeners, descriptors, sockets, halves of files. */
import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { getEventListeners } from 'node:events'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

/** What is being closed may need some turns of the event loop. */
const SETTLED_MS = 5_000

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

/** What may be held beyond this process's own: the sockets and halves of files in a folder, listeners of a signal. */
export interface Held { readonly folder: string, readonly signal?: AbortSignal }

/** Does something, after which nothing may be left that was not there before. */
export async function leavesNothing({ folder, signal }: Held, what: string, act: () => Promise<void>): Promise<void> {
  const [before, events, known] = [descriptors(), listeners(), new Set(timers.keys())]
  await act()
  const isLeft = (): object => ({
    timers: [...timers].filter(([id]) => !known.has(id)).map(([, stack]) => stack.split('\n').find(line => line.includes('/src/'))).filter(one => one !== undefined),
    descriptors: descriptors().filter(one => !before.includes(one)),
    files: readdirSync(folder).filter(name => /\.(sock|part)$/.test(name)),
    signal: signal === undefined ? 0 : getEventListeners(signal, 'abort').length
  })
  const nothing = { timers: [], descriptors: [], files: [], signal: 0 }
  for (const endMs = performance.now() + SETTLED_MS; JSON.stringify(isLeft()) !== JSON.stringify(nothing) && performance.now() < endMs;) await pause(10)
  assert.deepEqual(isLeft(), nothing, what)
  assert.equal(listeners(), events, what)
}
