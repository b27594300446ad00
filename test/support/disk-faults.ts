/** The disk of this process under a service: from some call on it fails, once or until it is healed. */
import { disk, type Files } from '../../src/journal/files.ts'
import { atEnd, type Scope } from './service.ts'

export interface DiskFault {
  /** The how manieth call from now on; the first without it. */
  readonly at?: number
  /** The kind of calls that count; all without it. */
  readonly of?: keyof Files
  readonly code: string
  /** Later calls that count fail as well, until it is healed. */
  readonly forGood?: boolean
}

/** Has the next append wait until it is let go, as on a disk that stands still. `reached` resolves when it waits. */
export function holdAppend(t: Scope): { readonly reached: Promise<void>, release(): void } {
  const { append } = disk
  let letGo = (): void => { Object.assign(disk, { append }) }
  const reached = new Promise<void>(resolve => {
    Object.assign(disk, {
      append: (...given: Parameters<Files['append']>) => {
        letGo()
        letGo = () => { letGo = () => {}; append(...given) }
        resolve()
      }
    })
  })
  const release = (): void => letGo()
  atEnd(t, release)
  return { reached, release }
}

export interface FaultyDisk {
  /** The kind of each call so far that counts. */
  readonly calls: readonly (keyof Files)[]
  /** The kind of the call that failed, if one did. */
  readonly failed: keyof Files | undefined
  heal(): void
}

/** A close that fails has closed all the same (close(2)), and what cannot be removed stays, whoever tries. */
const NEVER_FAIL: readonly (keyof Files)[] = ['close', 'remove']

/** Has calls of the disk fail, for all services of this process, until it is healed or the test ends. */
export function breakDisk(t: Scope, { at = 1, of, code, forGood = false }: DiskFault): FaultyDisk {
  const whole = { ...disk }
  const calls: (keyof Files)[] = []
  let failed: keyof Files | undefined
  for (const [kind, call] of Object.entries(whole) as [keyof Files, (...given: any[]) => unknown][]) {
    Object.assign(disk, {
      [kind]: (...given: any[]) => {
        if (of !== undefined && kind !== of) return call(...given)
        calls.push(kind)
        if (NEVER_FAIL.includes(kind) || (forGood ? calls.length < at : calls.length !== at)) return call(...given)
        failed ??= kind
        const error = Object.assign(new Error(`${code}: ${kind} fails as the test asked`), { code })
        const done = given.at(-1)
        if (typeof done !== 'function') throw error
        return setImmediate(done, error, 0)
      }
    })
  }
  const heal = (): void => { Object.assign(disk, whole) }
  atEnd(t, heal)
  return { calls, get failed() { return failed }, heal }
}
