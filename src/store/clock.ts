/** Counts changes of whatever shares it: a later change has a larger number. */
export interface Clock {
  now: number
}
