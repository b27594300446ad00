/** Choices that a reload finds again: they are in the page's address, and nothing is stored. */

/** A choice; undefined if there is none. */
export function recall(name: string): string | undefined {
  return new URLSearchParams(location.search).get(name) ?? undefined
}

/** Keeps a choice; never anything secret. */
export function remember(name: string, value: string): void {
  const all = new URLSearchParams(location.search)
  all.set(name, value)
  history.replaceState(null, '', `?${all}`)
}
