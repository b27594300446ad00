/** Where the keys lead in a grid, and where a place is once the grid shows something else. */

export interface Place {
  readonly index: number
  readonly column: number
}

const LAST_COLUMN = Number.MAX_SAFE_INTEGER

/** The place that a key leads to; undefined for one that leads nowhere. The lines of a page are `page`. */
export function destination({ key, ctrlKey }: KeyboardEvent, at: Place, page: number, last: number): Place | undefined {
  const moves: { readonly [key: string]: Place | undefined } = {
    ArrowDown: { ...at, index: at.index + 1 },
    ArrowUp: { ...at, index: at.index - 1 },
    ArrowRight: { ...at, column: at.column + 1 },
    ArrowLeft: { ...at, column: Math.max(0, at.column - 1) },
    PageDown: { ...at, index: at.index + page },
    PageUp: { ...at, index: at.index - page },
    Home: ctrlKey ? { index: 0, column: 0 } : { ...at, column: 0 },
    End: ctrlKey ? { index: last, column: LAST_COLUMN } : { ...at, column: LAST_COLUMN }
  }
  return moves[key]
}

/** A place stays with its entry; where that is gone, the next one takes it. */
export function moved(
  place: Place, before: readonly { readonly id: number }[], after: readonly { readonly id: number }[]
): Place {
  const entry = before[place.index]
  const isThere = entry === undefined || after[place.index] === entry
  const found = isThere ? place.index : after.findIndex(({ id }) => id === entry.id)
  return { ...place, index: Math.min(found < 0 ? place.index : found, Math.max(0, after.length - 1)) }
}
