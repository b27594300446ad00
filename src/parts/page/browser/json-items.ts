/** Reads a JSON array of objects while its text is still coming, so that a long list shows before it is all there. */

const OUTSIDE = /["}\]]/g
/** What a list may be led by: what a proxy says in its place has brackets as well. */
const BEFORE = /^\s*(\{"passwords":\s*)?$/
const INSIDE = /["\\]/g

/** The objects of one array, the first in the text; their values are texts and numbers, no objects. */
export class JsonItems<T> {
  /** What comes after the last whole object, and how far of it was looked at. */
  #rest = ''
  #at = 0
  #hasBegun = false
  #isInText = false
  /** Whether the end of the array was read; what follows belongs to the object around it. */
  #hasEnded = false

  /** Takes the next piece of the text; gives the objects that are whole with it. Throws where it is no list. */
  add(piece: string): readonly T[] {
    if (this.#hasEnded) return []
    this.#rest += piece
    if (!this.#hasBegun) {
      const start = this.#rest.indexOf('[')
      if (start < 0) return []
      if (!BEFORE.test(this.#rest.slice(0, start))) throw new Error('this is no list')
      this.#rest = this.#rest.slice(start + 1)
      this.#hasBegun = true
    }
    const end = this.#endOfLast()
    if (end === 0) return []
    const whole = this.#rest.slice(0, end).replace(/^[\s,]+/, '')
    this.#rest = this.#rest.slice(end)
    this.#at -= end
    return JSON.parse(`[${whole}]`) as T[]
  }

  /** Whether all of the array has come. */
  get isWhole(): boolean { return this.#hasEnded }

  /** Where the last object that is whole ends; 0 if there is none. */
  #endOfLast(): number {
    let end = 0
    for (;;) {
      const mark = this.#isInText ? INSIDE : OUTSIDE
      mark.lastIndex = this.#at
      const found = mark.exec(this.#rest)
      if (found === null) {
        this.#at = Math.max(this.#at, this.#rest.length)
        return end
      }
      // What is escaped may be in the piece to come.
      this.#at = found.index + (found[0] === '\\' ? 2 : 1)
      if (found[0] === ']') {
        this.#hasEnded = true
        return end
      }
      if (found[0] === '"') this.#isInText = !this.#isInText
      if (found[0] === '}') end = this.#at
    }
  }
}
