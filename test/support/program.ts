/** The program as it is shipped, `node dist/server.js` (which `npm test` builds first), in a child of the test. */
import { spawn, type ChildProcess } from 'node:child_process'
import { cpSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SETTINGS } from '../../src/settings.ts'
import { atEnd, freshFolder, type Scope } from './service.ts'

export const SERVER: string = fileURLToPath(new URL('../../dist/server.js', import.meta.url))
/** Far above what anything waited for here takes, also on a machine with other things to do. */
const WAIT_MS = 25_000

export interface ProgramOptions {
  /**
   * Flags and their values; without others it has a fresh folder, a free port, no rate limit and no page. Undefined is
   * the program's own value.
   */
  readonly flags?: { readonly [flag: string]: string | undefined }
  /** The whole command line, instead of flags. */
  readonly args?: readonly string[]
  /** All variables that the program sees; none without it. */
  readonly env?: { readonly [variable: string]: string }
  readonly cwd?: string
  /** What stands before the arguments, instead of this Node and the program as built. */
  readonly command?: readonly string[]
  readonly input?: string
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A program that was started, and may be ready, still on its way, or over. */
export interface Launched {
  readonly child: ChildProcess
  readonly pid: number
  readonly folder: string
  readonly stdout: string
  readonly stderr: string
  /** Whether it became ready; false: it ended before. */
  readonly ready: Promise<boolean>
  readonly ended: Promise<Ended>
  /** Resolves once what it has written matches; rejects if it ends before. */
  printed(pattern: RegExp): Promise<void>
  /** Sends a signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Ended>
  kill(): Promise<Ended>
}

export interface Program extends Launched {
  /** Where, as it says itself. */
  readonly url: string
}

/** Starts the program and does not wait for anything. */
export function launchProgram(t: Scope, options: ProgramOptions = {}): Launched {
  const { flags = {}, env = {}, cwd } = options
  const folder = flags['data'] ?? (options.args === undefined ? freshFolder(t) : '')
  const page = 'page' in SETTINGS ? { page: 'off' } : {}
  const all = { port: '0', 'rate-limit': '0', ...page, data: folder, ...flags }
  const args = options.args ?? Object.entries(all).filter(([, value]) => value !== undefined)
    .map(([flag, value]) => `--${flag}=${value}`)
  const [file = '', ...before] = options.command ?? [process.execPath, SERVER]
  const child = spawn(file, [...before, ...args], { env, cwd, stdio: 'pipe' })
  child.stdin.on('error', () => {}).end(options.input)
  let stdout = ''
  let stderr = ''
  const watchers = new Set<() => void>()
  const look = (): void => { for (const watcher of watchers) watcher() }
  child.stdout.setEncoding('utf8').on('data', text => { stdout += text; look() })
  child.stderr.setEncoding('utf8').on('data', text => { stderr += text; look() })
  let isOver = false
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      isOver = true
      resolve({ code, signal, stdout, stderr })
      look()
    })
  })
  const seen = (pattern: RegExp): Promise<boolean> => new Promise(resolve => {
    const watcher = (): void => {
      const isSeen = pattern.test(stdout) || pattern.test(stderr) // with an access log only that is on standard output
      if (!isSeen && !isOver) return
      watchers.delete(watcher)
      resolve(isSeen)
    }
    watchers.add(watcher)
    watcher()
  })
  const stop = (signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> => {
    child.kill(signal)
    return soon(ended, () => `the end after ${signal}; ${stdout}${stderr}`)
  }
  // Who is measured (`npm run test:coverage`) tells at its own end what it has run.
  const isMeasured = process.env['NODE_V8_COVERAGE'] !== undefined
  // Before its folder goes, whoever made that: a program that runs makes the socket of its lock again in it.
  atEnd(t, async () => { if (!isOver) await stop(isMeasured ? 'SIGTERM' : 'SIGKILL') })
  return {
    child, pid: child.pid ?? 0, folder, ended, stop,
    get stdout() { return stdout },
    get stderr() { return stderr },
    ready: seen(/^ready$/m),
    printed: async pattern => {
      if (!await soon(seen(pattern), () => `${pattern} in ${stdout}${stderr}`)) {
        throw new Error(`it ended without ${pattern}: ${stdout}${stderr}`)
      }
    },
    kill: () => stop('SIGKILL')
  }
}

/** Starts the program and waits until it is ready. */
export async function startProgram(t: Scope, options: ProgramOptions = {}): Promise<Program> {
  const launched = launchProgram(t, options)
  await launched.printed(/^ready$/m)
  const url = /^address +(\S+)$/m.exec(`${launched.stdout}\n${launched.stderr}`)?.[1]
  if (url === undefined) throw new Error(`it does not say where it listens: ${launched.stdout}`)
  return Object.defineProperty(launched, 'url', { value: url }) as Program
}

/** Starts the program and waits until it has ended by itself. */
export function runProgram(t: Scope, options: ProgramOptions = {}): Promise<Ended> {
  const launched = launchProgram(t, options)
  return soon(launched.ended, () => `an end by itself; ${launched.stdout}${launched.stderr}`)
}

/** The command of a copy of the program whose limits are others: `{ SOCKET_TIMEOUT_MS: 500 }`. */
export function programWithin(t: Scope, limits: { readonly [name: string]: number }): readonly string[] {
  const copy = freshFolder(t)
  cpSync(join(SERVER, '..'), join(copy, 'dist'), { recursive: true, filter: path => !path.endsWith('.d.ts') })
  writeFileSync(join(copy, 'package.json'), '{"type":"module"}')
  const file = join(copy, 'dist', 'limits.js')
  let text = readFileSync(file, 'utf8')
  for (const [name, value] of Object.entries(limits)) {
    const changed = text.replace(new RegExp(`(export const ${name} = )[^;]+;`), `$1${value};`)
    if (changed === text) throw new Error(`there is no limit ${name}`)
    text = changed
  }
  writeFileSync(file, text)
  return [process.execPath, join(copy, 'dist', 'server.js')]
}

export function socketsIn(folder: string): string[] {
  return readdirSync(folder).filter(name => name.endsWith('.sock'))
}

/** A promise's result; rejects, saying what was waited for, when that takes far too long. */
export async function soon<T>(promise: Promise<T>, what: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${WAIT_MS} ms for ${what()}`)), WAIT_MS)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Resolves once it holds, which is looked at every now and then; rejects when that takes far too long. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + WAIT_MS
  while (!await holds()) {
    if (performance.now() > endMs) throw new Error(`waited ${WAIT_MS} ms for ${what}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}
