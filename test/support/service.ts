/** A service in this process on a port of its own, with its state checked when it closes. */
import { composeService, type OpenService } from '../../src/service.ts'
import { readSettings, SETTINGS } from '../../src/settings.ts'
import { checkState } from './check.ts'
import './hashes.ts'
import { opening } from './leaks.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** Whatever ends and has something done then: a test, or a script's own. */
export type Scope = Pick<TestContext, 'after'>

/** A scope of a script's own, or of a part of a test; `end` does what was to be done at its end. */
export class Steps implements Scope {
  readonly #steps: (() => unknown)[] = []
  after = (step?: unknown): void => { this.#steps.push(step as () => unknown) }
  async end(): Promise<void> { for (const step of this.#steps.splice(0).reverse()) await step() }
}

export async function within(act: (scope: Scope) => Promise<void>): Promise<void> {
  const scope = new Steps()
  try { await act(scope) } finally { await scope.end() }
}

const steps = new WeakMap<Scope, (() => void | Promise<void>)[]>()

/** Does something when the test ends; what was to be done last is done first (`t.after` has it the other way). */
export function atEnd(t: Scope, step: () => void | Promise<void>): void {
  const known = steps.get(t)
  if (known !== undefined) { known.unshift(step); return }
  const all = [step]
  steps.set(t, all)
  t.after(async () => {
    let fault: { readonly error: unknown } | undefined
    for (const one of all) await Promise.resolve().then(one).catch(error => { fault ??= { error } })
    if (fault !== undefined) throw fault.error
  })
}

export function freshFolder(t: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'pes-'))
  atEnd(t, () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export interface Started {
  readonly service: OpenService
  readonly url: string
  readonly folder: string
  readonly info: readonly string[]
  readonly warnings: readonly string[]
  readonly accessLines: readonly string[]
}

/**
 * Starts a service with flags (`{ 'rate-limit': '0' }`); without `data` it gets a fresh folder. The rate limit is off
 * unless given, and so is the page. After the test its whole state is checked, it is closed, and nothing of it is left.
 */
export async function startService(t: Scope, flags: Record<string, string> = {}): Promise<Started> {
  const folder = flags['data'] ?? freshFolder(t)
  const page: Record<string, string> = 'page' in SETTINGS ? { page: 'off' } : {}
  const all = { port: '0', 'rate-limit': '0', ...page, data: folder, ...flags }
  const info: string[] = []
  const warnings: string[] = []
  const accessLines: string[] = []
  // Without those for the start and the stop.
  const access = { write: (line: string) => { if (!line.includes('"service":')) accessLines.push(line) },
    pendingBytes: () => 0 }
  const log = { info: (line: string) => { info.push(line) }, warn: (line: string) => { warnings.push(line) }, access }
  const settings = readSettings(Object.entries(all).map(([k, v]) => `--${k}=${v}`), {})
  const closed = opening(folder)
  const service = await composeService(settings, log).catch(async error => { await closed(); throw error })
  atEnd(t, async () => {
    checkState(service.store.state)
    await service.close()
    await closed()
  })
  const url = await service.listen()
  return { service, url, folder, info, warnings, accessLines }
}

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: any
}

/** Sends a request by `fetch`; an object as body goes out as JSON. */
export async function send(url: string, method: string, path: string, body?: unknown): Promise<Answered> {
  const response = await fetch(url + path, {
    method, ...(body === undefined ? {} : { body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json' } })
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: text === '' ? undefined : JSON.parse(text) }
}
