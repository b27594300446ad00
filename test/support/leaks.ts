/**
 * What is left once something was closed, and must not be: timers, listeners, descriptors, sockets, halves of files.
 */
import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { getEventListeners } from 'node:events'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { TIMEOUT_CHECK_MS } from '../../src/limits.ts'

/** What is being closed may need some turns of the event loop; unsent answers are looked at every few seconds. */
const SETTLED_MS = 3 * TIMEOUT_CHECK_MS

/** Where each was set; an error's stack becomes a text when it is read, which costs more than the rest. */
const timers = new Map<number, Error>()
createHook({
  init: (id, type) => { if (type === 'Timeout') timers.set(id, new Error(type)) },
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

const listeners = (): string => process.eventNames().map(name =>
  `${String(name)} ${process.listenerCount(name)}`).join()

/** Where in the sources the timers were set that are not known and not over. */
function timersOf(known: ReadonlySet<number>): string[] {
  return [...timers].filter(([id]) => !known.has(id))
    .flatMap(([, { stack = '' }]) => stack.split('\n').filter(line => line.includes('/src/')).slice(0, 1))
}

async function settled(look: () => object, wanted: object, what: string): Promise<void> {
  const endMs = performance.now() + SETTLED_MS
  while (!isDeepStrictEqual(look(), wanted) && performance.now() < endMs) await pause(10)
  assert.deepEqual(look(), wanted, what)
}

let openServices = 0

/**
 * Takes note of a service that is about to open; gives what asserts, once it is closed, that neither timer nor file is
 * left.
 */
export function opening(folder: string): () => Promise<void> {
  openServices++
  return async () => {
    openServices--
    const files = (): string[] => existsSync(folder) ? readdirSync(folder).filter(isLeftFile) : []
    // The look at unsent answers is the process's own, and ends by itself.
    const left = (): string[] => timersOf(new Set()).filter(line => !line.includes('/http/sending.'))
    const none = { timers: [], files: [] }
    // The timers of others, which may open meanwhile, cannot be told from its own.
    await settled(() => openServices > 0 ? none : { timers: left(), files: files() }, none, 'a service closed')
  }
}

const isLeftFile = (name: string): boolean => /\.(sock|part)$/.test(name)

/** What may be held beyond this process's own: the sockets and halves of files in a folder, listeners of a signal. */
export interface Held { readonly folder: string, readonly signal?: AbortSignal }

/** Does something, after which nothing may be left that was not there before. */
export async function leavesNothing({ folder, signal }: Held, what: string, act: () => Promise<void>): Promise<void> {
  const [before, events, known] = [descriptors(), listeners(), new Set(timers.keys())]
  await act()
  const isLeft = (): object => ({
    timers: timersOf(known),
    descriptors: descriptors().filter(one => !before.includes(one)),
    files: readdirSync(folder).filter(isLeftFile),
    signal: signal === undefined ? 0 : getEventListeners(signal, 'abort').length
  })
  await settled(isLeft, { timers: [], descriptors: [], files: [], signal: 0 }, what)
  assert.equal(listeners(), events, what)
}
