/** Finding what `page.html` holds. */

/** The element of a selector, which must be there and of the class; within another one where that is given. */
export function find<T extends Element>(kind: new () => T, selector: string, within: ParentNode = document): T {
  const found = within.querySelector(selector)
  if (!(found instanceof kind)) throw new Error(`the page has no ${selector}`)
  return found
}

/** The form's texts by the names of their fields. */
export function values(form: HTMLFormElement): { readonly [name: string]: string } {
  return Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]))
}

/** The element of an id. */
export function part(id: string): HTMLElement { return find(HTMLElement, `#${id}`) }
