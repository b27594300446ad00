/**
 * The real disk behind a counter: the Nth call from now on, of all or of one kind, can be made to fail, once or for
 * good, and an append can be cut short or held back. A call that fails does not reach the disk. It is given to what
 * takes a disk, or put under all services of this process.
 */
import type { Buffer } from 'node:buffer'
import { disk, type Descriptor, type Files } from '../../src/journal/files.ts'
import { atEnd, type Scope } from './service.ts'

export type FileCall = keyof Files

export interface Fault {
  /** The how manieth call from now on; the next without it. */
  readonly at?: number
  /** The kind of calls that count; all without it. */
  readonly of?: FileCall
  readonly code: string
  /**
   * All later calls that count fail as well: to the disk, that is a crash at this point. A synchronous append is left
   * half done. A close really closes, so that a test leaves no descriptor open.
   */
  readonly forGood?: boolean
  /** Kinds that count, and do not fail. */
  readonly spares?: readonly FileCall[]
}

const REAL: Files = { ...disk }

export interface HeldAppend {
  readonly reached: Promise<void>
  release(): void
}

export class FaultyFiles {
  /** Every call so far, in order, failed ones too. */
  readonly calls: FileCall[] = []
  /** Descriptors that were opened and not yet closed. */
  readonly open: Set<Descriptor> = new Set()
  /** Called when an append is about to reach the disk, or about to fail. */
  beforeAppend: () => void = () => {}
  /** Called when an append is on the disk, before its caller knows. */
  afterAppend: () => void = () => {}
  failed: string | undefined
  #faults: { fault: Fault, seen: number }[] = []
  #shortBytes: number | undefined
  #held: { reached(): void, readonly released: Promise<void> } | undefined

  readonly files: Files = Object.fromEntries((Object.keys(REAL) as FileCall[])
    .map(kind => [kind, kind === 'append' ? this.#append.bind(this) : this.#counted(kind)])) as unknown as Files

  count(of?: FileCall): number { return this.calls.filter(kind => of === undefined || kind === of).length }

  /** Has a call fail, besides those that were asked for before. */
  fail(fault: Fault): void { this.#faults.push({ fault, seen: 0 }) }

  heal(): void { this.#faults = [] }

  /** Has the next append write only that many bytes, and say so. */
  shorten(bytes: number): void { this.#shortBytes = bytes }

  hold(): HeldAppend {
    let release = (): void => {}
    const released = new Promise<void>(resolve => { release = resolve })
    const reached = new Promise<void>(resolve => { this.#held = { reached: resolve, released } })
    return { reached, release }
  }

  #counted(kind: FileCall): (...given: unknown[]) => unknown {
    const act = (...given: unknown[]): unknown => Reflect.apply(REAL[kind], REAL, given)
    return (...given) => {
      if (kind === 'close') this.open.delete(given[0] as Descriptor)
      const error = this.#errorOf(kind)
      if (error?.isCrash === true && kind === 'close') act(...given)
      if (error?.isCrash === true && kind === 'appendSync') act(given[0], halfOf(given[1] as Buffer))
      if (error !== undefined) throw error
      const result = act(...given)
      if (/^(open|create)To/.test(kind)) this.open.add(result as Descriptor)
      return result
    }
  }

  #append(descriptor: Descriptor, bytes: Buffer, done: Parameters<Files['append']>[2]): void {
    const error = this.#errorOf('append')
    const [held, shortBytes] = [this.#held, this.#shortBytes]
    this.#held = this.#shortBytes = undefined
    const go = (): void => {
      this.beforeAppend()
      if (error !== undefined) { setImmediate(done, error, 0); return }
      const part = shortBytes === undefined ? bytes : bytes.subarray(0, shortBytes)
      REAL.append(descriptor, part, (...result) => { this.afterAppend(); done(...result) })
    }
    if (held === undefined) { go(); return }
    held.reached()
    void held.released.then(() => setImmediate(go))
  }

  /** `isCrash`: the call is not to leave the disk as it was. */
  #errorOf(kind: FileCall): Error & { readonly isCrash: boolean } | undefined {
    this.calls.push(kind)
    for (const entry of this.#faults) {
      const { at = 1, of, code, forGood } = entry.fault
      if (of !== undefined && of !== kind) continue
      entry.seen++
      if (entry.fault.spares?.includes(kind) === true) continue
      if (entry.seen === at || (forGood === true && entry.seen > at)) {
        const isCrash = forGood === true && (entry.seen === at || kind === 'close')
        this.failed ??= kind
        return Object.assign(new Error(`${code}: ${kind} fails as the test asked`), { code, isCrash })
      }
    }
    return undefined
  }
}

/**
 * Does something again and again: each time another one of its calls fails, the first, the second and so on, until it
 * ends without a failure. Calls count from `begin` on. Gives how many there were.
 */
export async function whicheverCallFails(
  fault: Omit<Fault, 'at'>, act: (faulty: FaultyFiles, begin: () => void) => Promise<void>
): Promise<number> {
  for (let at = 1; ; at++) {
    const faulty = new FaultyFiles()
    try {
      await act(faulty, () => faulty.fail({ ...fault, at }))
    } catch (error) {
      throw new Error(`call ${at}, ${faulty.failed}: ${(error as Error).message}`, { cause: error })
    }
    if (faulty.failed === undefined) return at - 1
  }
}

/** Under all services of this process, until the test ends. */
function underServices(t: Scope): FaultyFiles {
  const faulty = new FaultyFiles()
  Object.assign(disk, faulty.files)
  atEnd(t, () => { Object.assign(disk, REAL) })
  return faulty
}

/**
 * Has calls of the disk fail for all services of this process, until it is healed. A close that fails has closed all
 * the same (close(2)), and what cannot be removed stays, whoever tries: these two are spared.
 */
export function breakDisk(t: Scope, fault: Fault): FaultyFiles {
  const faulty = underServices(t)
  faulty.fail({ spares: ['close', 'remove'], ...fault })
  return faulty
}

/** Has the next append wait until it is let go, as on a disk that stands still. */
export function holdAppend(t: Scope): HeldAppend {
  const held = underServices(t).hold()
  atEnd(t, () => held.release())
  return held
}

function halfOf(bytes: Buffer): Buffer { return bytes.subarray(0, bytes.length >> 1) }
