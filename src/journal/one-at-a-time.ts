/** Work on a journal's file, of which none begins before the one before it has ended. */
import { Failure } from '../errors.ts'
import { MAX_COMMIT_WAIT_MS } from '../limits.ts'

/** Does one thing after the other, in the order of the calls. */
export class OneAtATime {
  /** Whether something is under way. */
  isBusy = false
  #last: Promise<void> = Promise.resolve()

  async begin<T>(act: () => Promise<T>): Promise<T> {
    const before = this.#last
    let end = (): void => {}
    this.#last = new Promise(resolve => { end = resolve })
    await before
    this.isBusy = true
    try {
      return await act()
    } finally {
      this.isBusy = false
      end()
    }
  }

  /** The same, but not what has waited a few seconds, or what nobody waits for when its turn comes: `journal-busy`. */
  beginOrWithdraw<T>(isGone: () => boolean = () => false, act: () => Promise<T>): Promise<T> {
    const withdrawn = new Failure('journal-busy', `it has waited ${MAX_COMMIT_WAIT_MS} ms, or its client has gone`)
    let isLate = false
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        isLate = true
        reject(withdrawn)
      }, MAX_COMMIT_WAIT_MS)
      this.begin(async () => {
        clearTimeout(timer)
        if (isLate || isGone()) throw withdrawn
        return act()
      }).then(resolve, reject)
    })
  }
}
