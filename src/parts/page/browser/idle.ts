/** Locks the page after a while without input, with a countdown before. */

/** How long the page stays open without input, and how much of that is counted down. */
const IDLE_MINUTES = 10
const COUNTED_SECONDS = 60
const INPUTS = ['pointerdown', 'pointermove', 'wheel', 'touchmove', 'keydown', 'input', 'scroll'] as const

/**
 * The wall clock, which goes on while the machine sleeps, and the steady one, which nobody puts back. The one that is
 * further from the last input counts, in whichever direction.
 */
function clocks(): readonly number[] { return [Date.now(), performance.now()] }

/** Watches for input while it runs. */
export class Idle {
  readonly #onCount: (secondsLeft: number | undefined) => void
  readonly #onLock: () => void
  /** When the last input came, by each clock. */
  #last: readonly number[] = []
  #timer: ReturnType<typeof setInterval> | undefined
  #isCounting = false

  /** `onCount` gets the seconds that are left within the last minute, and undefined once that is over. */
  constructor(onCount: (secondsLeft: number | undefined) => void, onLock: () => void) {
    this.#onCount = onCount
    this.#onLock = onLock
    for (const input of INPUTS) addEventListener(input, () => this.#input(), { passive: true, capture: true })
    document.addEventListener('visibilitychange', () => this.#look())
  }

  start(): void {
    this.stop()
    this.#last = clocks()
    this.#timer = setInterval(() => this.#look(), 1000)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#count(undefined)
  }

  /** Input that comes after the time was over, as when a machine wakes up, does not prolong it. */
  #input(): void {
    this.#look()
    this.#last = clocks()
    if (this.#isCounting) this.#count(undefined)
  }

  #look(): void {
    if (this.#timer === undefined) return
    const idleMs = Math.max(...clocks().map((ms, i) => Math.abs(ms - this.#last[i]!)))
    const left = Math.ceil(IDLE_MINUTES * 60 - idleMs / 1000)
    if (left > 0) return this.#count(left <= COUNTED_SECONDS ? left : undefined)
    this.stop()
    this.#onLock()
  }

  #count(left: number | undefined): void {
    if (left === undefined && !this.#isCounting) return
    this.#isCounting = left !== undefined
    this.#onCount(left)
  }
}
