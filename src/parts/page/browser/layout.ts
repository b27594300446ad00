/** Where each row of the list is: rows are alike but for the open ones, and a group has a heading above its first. */

/** The heights of the rows, summed up. */
export class Layout {
  /** The top of each row, and at last the end of the list. */
  #tops = new Float64Array(1)

  /** `heightOf` and `headingOf` give the height of a row, and of the heading above it, by its index. */
  build(count: number, heightOf: (index: number) => number, headingOf: (index: number) => number): void {
    const tops = new Float64Array(count + 1)
    let end = 0
    for (let i = 0; i < count; i++) {
      tops[i] = end + headingOf(i)
      end = tops[i]! + heightOf(i)
    }
    tops[count] = end
    this.#tops = tops
  }

  /** The height of the whole list. */
  get height(): number { return this.#tops.at(-1)! }

  top(index: number): number { return this.#tops[index]! }

  /** The index of the row at a height, or of the one before it where there is a heading; never beyond the last. */
  indexAt(y: number): number {
    let [low, high] = [0, this.#tops.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#tops[middle]! <= y) low = middle + 1
      else high = middle
    }
    return Math.max(0, Math.min(low - 1, this.#tops.length - 2))
  }
}
