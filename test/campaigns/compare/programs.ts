/** Two builds of the program, side by side: how each is started, stopped and given the operator's commands. */
import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import { startProgram, type Program } from '../../support/program.ts'
import { type Scope } from '../../support/service.ts'

/** What a program may see: neither its seals nor its answers depend on more. */
const ENV = { PATH: process.env['PATH'] ?? '' }

export class Build {
  readonly dist: string
  constructor(dist: string) { this.dist = resolve(dist) }

  start(t: Scope, data: string, flags: Record<string, string> = {}, env: Record<string,
    string> = {}): Promise<Program> {
    return startProgram(t, { flags: { data, ...flags }, env: { ...ENV, ...env },
      command: [process.execPath, join(this.dist, 'server.js')] })
  }

  /** Runs a command of the operator on a folder; throws with what it says when it fails. */
  admin(data: string, words: readonly string[], input = ''): string {
    const env = { ...ENV, DATA_DIR: data }
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(this.dist, 'admin.js'), ...words],
      { env, input, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${this.dist}: ${words.join(' ')}: ${status} ${stderr}${stdout}`)
    return stdout
  }
}

/** The two builds and the numbers of a command line: `OLD_DIST NEW_DIST [--count N] [--seed S]`. */
export function fromCommandLine(fallbackCount: number): { old: Build, new: Build, count: number, seed: number } {
  const args = process.argv.slice(2)
  const number = (flag: string, fallback: number): number => {
    const at = args.indexOf(flag)
    return at < 0 ? fallback : Number(args.splice(at, 2)[1])
  }
  const [count, seed] = [number('--count', fallbackCount), number('--seed', Math.floor(Math.random() * 2 ** 32))]
  const [old, young, ...others] = args
  if (old === undefined || young === undefined || others.length > 0 || !(count > 0) || !(seed >= 0)) {
    console.error('usage: node --import tsx FILE OLD_DIST NEW_DIST [--count N] [--seed S]')
    process.exit(2)
  }
  return { old: new Build(old), new: new Build(young), count, seed }
}
