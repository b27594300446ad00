/** What is done to the program from outside: file systems, system calls that fail, and a look at its memory. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { requestLocal } from '../../src/parts/operator/socket/local-client.ts'
import { soon, socketsIn, type Program } from './program.ts'
import { atEnd, freshFolder, type Scope } from './service.ts'

/** Runs a command of the system; throws with its words when it fails. */
export function system(command: string, ...args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`)
}

/** Why this machine cannot mount; false if it can. */
export function mountMissing(): string | false {
  const folder = mkdtempSync(join(tmpdir(), 'pes-'))
  try {
    system('mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder)
    system('umount', folder)
    return false
  } catch (error) {
    return `a file system can be mounted by root only: ${(error as Error).message.trim()}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export function straceMissing(): string | false {
  const { status, error } = spawnSync('strace', ['-f', '-o', '/dev/null', 'true'])
  return status === 0 ? false : `strace is not there, or may not trace: ${error?.message ?? `exit code ${status}`}`
}

/** A fresh folder on a file system of its own, in memory, of that size; gone when the test ends. */
export function smallDisk(t: Scope, size: string): string {
  const folder = join(freshFolder(t), 'data')
  mkdirSync(folder)
  system('mount', '-t', 'tmpfs', '-o', `size=${size},mode=700`, 'tmpfs', folder)
  // Once for each file system that a test has put above the other.
  atEnd(t, () => { while (spawnSync('umount', ['-l', folder]).status === 0); })
  return folder
}

const IMAGES = {
  ext4: { mib: 16, make: ['mkfs.ext4', '-q', '-N', '64', '-m', '0'] },
  xfs: { mib: 300, make: ['mkfs.xfs', '-q', '-f'] }
} as const

export function imageMissing(kind: keyof typeof IMAGES): string | false {
  const { status, stderr, error } = spawnSync('sh', ['-c', `${IMAGES[kind].make[0]} -V && losetup --find`])
  if (status !== 0) return `loop devices or ${IMAGES[kind].make[0]} are missing: ${error?.message ??
    String(stderr).trim()}`
  return mountMissing()
}

/** A fresh file system in a file, mounted until the test ends. */
export function imageDisk(t: TestContext, kind: keyof typeof IMAGES): string {
  const [image, folder] = [join(freshFolder(t), 'image'), join(freshFolder(t), 'mounted')]
  const { mib, make: [command, ...args] } = IMAGES[kind]
  system('truncate', '-s', `${mib}M`, image)
  system(command, ...args, image)
  mkdirSync(folder)
  system('mount', '-o', 'loop', image, folder)
  atEnd(t, () => { spawnSync('umount', ['-l', folder]) })
  return folder
}

export interface Traced {
  /** What strace has seen so far, a line a call; all of it once it has ended. */
  calls(): string[]
  end(): Promise<void>
}

/**
 * Meddles with the calls on a file (`write:error=EIO:when=1`) from now on. strace counts them for each thread: a
 * program for which that matters has `UV_THREADPOOL_SIZE=1` in its environment.
 */
export function meddle(t: TestContext, pid: number, path: string, ...how: readonly string[]): Promise<Traced> {
  const inject = how.flatMap(one => ['-e', `inject=${one}`])
  const names = how.map(one => one.slice(0, one.indexOf(':'))).join(',')
  return trace(t, pid, '-P', path, '-e', `trace=${names}`, ...inject)
}

/** The processor time that a process has used so far, in milliseconds, in steps of ten. */
export function workedMs(pid: number): number {
  // The name of the program, in parentheses, may have blanks. Behind it, fields 14 and 15 are ticks of user and system.
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ')
  return 10 * (Number(fields[11]) + Number(fields[12]))
}

/** Traces a program from now on, all its threads, with further arguments for strace. */
export async function trace(t: TestContext, pid: number, ...args: readonly string[]): Promise<Traced> {
  const log = join(freshFolder(t), 'calls')
  const child = spawn('strace', ['-f', '-p', String(pid), '-o', log, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise<void>(resolve => child.on('close', () => resolve()))
  const end = async (): Promise<void> => { child.kill('SIGINT'); await soon(ended, () => 'the end of strace') }
  atEnd(t, end)
  let said = ''
  await soon(new Promise<void>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => reject(new Error(`strace ended: ${said}`)))
    child.stderr.setEncoding('utf8').on('data', text => { if (/ attached/.test(said += text)) resolve() })
  }), () => `strace to attach; ${said}`)
  return { calls: () => readFileSync(log, 'utf8').split('\n').filter(line => /^\d+ +\w+\(/.test(line)), end }
}

export async function statusOf({ folder }: Program, moved: string = folder): Promise<any> {
  const { status, body } = await requestLocal(join(moved, socketsIn(moved)[0]!), 'status', {})
  if (status !== 200) throw new Error(`the operator was answered ${status}`)
  return body
}

export function memoryMiB(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}
