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

/**
 * Empties the text fields of an element, each with a new editor: in Chromium the keys that undo and redo bring back
 * what was typed where a value was only set or reset, whoever presses them.
 */
export function emptyFields(within: ParentNode): void {
  for (const field of within.querySelectorAll('input')) {
    if (field.selectionStart === null) continue
    const { type } = field
    field.value = ''
    field.type = 'tel'
    field.type = type
  }
}

/** The element of an id. */
export function part(id: string): HTMLElement { return find(HTMLElement, `#${id}`) }
