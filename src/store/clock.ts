/** Counts changes: a later one has a larger number. */
export interface Clock {
  now: number
}
