/**
 * The real disk behind a counter: the Nth call from now on, of all or of one kind, can be made to fail, once or for
 * good, and an append can be cut short or held back. A call that fails does not reach the disk.
 */
import type { Buffer } from 'node:buffer'
import { disk, type Descriptor, type Files } from '../../src/disk/files.ts'

/** The name of a call of the file layer. */
export type FileCall = keyof Files

/** Which call is to fail, and how. */
export interface Fault {
  /** The how manieth call from now on; 1 is the next. */
  readonly at: number
  /** The kind of calls that count; all without it. */
  readonly of?: FileCall
  /** The system's code of the error. */
  readonly code: string
  /**
   * All later calls that count fail as well: to the disk, that is a crash at this point. A synchronous append is left
   * half done. A close really closes, so that a test leaves no descriptor open.
   */
  readonly forGood?: boolean
}

/** An append that waits. */
export interface HeldAppend {
  /** Settles once the append was called. */
  readonly reached: Promise<void>
  /** Lets it go on. */
  release(): void
}

/** The disk with faults. */
export class FaultyFiles {
  /** Every call so far, in order, failed ones too. */
  readonly calls: FileCall[] = []
  /** Descriptors that were opened and not yet closed. */
  readonly open: Set<Descriptor> = new Set()
  /** Called when an append is about to reach the disk, or about to fail. */
  beforeAppend: () => void = () => {}
  /** Called when an append is on the disk, before its caller knows. */
  afterAppend: () => void = () => {}
  #faults: { fault: Fault, seen: number }[] = []
  #shortBytes: number | undefined
  #held: { reached(): void, readonly released: Promise<void> } | undefined

  readonly files: Files = new Proxy(disk, {
    get: (_, name) => {
      const kind = name as FileCall
      if (kind === 'append') return this.#append
      return (...given: unknown[]): unknown => {
        if (kind === 'close') this.open.delete(given[0] as Descriptor)
        const error = this.#errorOf(kind)
        const act = (...given: unknown[]): unknown => Reflect.apply(disk[kind], disk, given)
        if (error?.isCrash === true && kind === 'close') act(...given)
        if (error?.isCrash === true && kind === 'appendSync') act(given[0], halfOf(given[1] as Buffer))
        if (error !== undefined) throw error
        const result = act(...given)
        if (/^(open|create)To/.test(kind)) this.open.add(result as Descriptor)
        return result
      }
    }
  })

  /** How many calls there were, of all or of one kind. */
  count(of?: FileCall): number { return this.calls.filter(kind => of === undefined || kind === of).length }

  /** Has a call fail, besides those that were asked for before. */
  fail(fault: Fault): void { this.#faults.push({ fault, seen: 0 }) }

  /** Has no call fail any more. */
  heal(): void { this.#faults = [] }

  /** Has the next append write only that many bytes, and say so. */
  shorten(bytes: number): void { this.#shortBytes = bytes }

  /** Holds the next append back. */
  hold(): HeldAppend {
    let release = (): void => {}
    const released = new Promise<void>(resolve => { release = resolve })
    const reached = new Promise<void>(resolve => { this.#held = { reached: resolve, released } })
    return { reached, release }
  }

  readonly #append: Files['append'] = (descriptor: Descriptor, bytes: Buffer, done) => {
    const error = this.#errorOf('append')
    const [held, shortBytes] = [this.#held, this.#shortBytes]
    this.#held = this.#shortBytes = undefined
    const go = (): void => {
      this.beforeAppend()
      if (error !== undefined) { setImmediate(done, error, 0); return }
      const part = shortBytes === undefined ? bytes : bytes.subarray(0, shortBytes)
      disk.append(descriptor, part, (...result) => { this.afterAppend(); done(...result) })
    }
    if (held === undefined) { go(); return }
    held.reached()
    void held.released.then(() => setImmediate(go))
  }

  /** `isCrash`: the call is not to leave the disk as it was. */
  #errorOf(kind: FileCall): Error & { readonly isCrash: boolean } | undefined {
    this.calls.push(kind)
    for (const entry of this.#faults) {
      const { at, of, code, forGood } = entry.fault
      if (of !== undefined && of !== kind) continue
      entry.seen++
      if (entry.seen === at || (forGood === true && entry.seen > at)) {
        const isCrash = forGood === true && (entry.seen === at || kind === 'close')
        return Object.assign(new Error(`${code}: ${kind} fails as the test asked`), { code, isCrash })
      }
    }
    return undefined
  }
}

function halfOf(bytes: Buffer): Buffer { return bytes.subarray(0, bytes.length >> 1) }
