/** The keys that work anywhere on the page, but while a text is being typed or a dialog is open. */
import { recall, remember } from './address.ts'
import { find, part } from './dom.ts'
import type { Entry } from './api.ts'

interface KeyOptions {
  /** Whether there is a list. */
  isReady(): boolean
  /** The entry whose row has the focus. */
  focused(): Entry | undefined
  copy(entry: Entry): void
  copyUser(entry: Entry): void
  create(): void
  help(): void
  /** False where there is nothing to undo. */
  undo(): boolean
}

/** Listens for the keys. */
export function startKeys(options: KeyOptions): void {
  // Keys without Ctrl can be switched off: a person who speaks to the machine would press them by accident.
  const single = find(HTMLInputElement, '#single-keys')
  single.checked = recall('keys') !== 'off'
  single.addEventListener('change', () => remember('keys', single.checked ? 'on' : 'off'))
  addEventListener('keydown', event => {
    if (event.defaultPrevented || event.altKey || document.querySelector('dialog[open]') !== null) return
    const isControl = event.ctrlKey || event.metaKey
    if (isControl ? pressed(options, event.key.toLowerCase()) : single.checked && typed(options,
      event)) event.preventDefault()
  })
}

/** With Ctrl, or with the Command key; true if that was for the page. */
function pressed({ focused, copy, copyUser, undo }: KeyOptions, key: string): boolean {
  if (key === 'z') return !isTyping() && undo()
  const entry = focused()
  if (entry === undefined) return false
  if (key === 'b') copyUser(entry)
  // A selected text is copied as ever.
  else if (key === 'c' && getSelection()?.isCollapsed !== false) copy(entry)
  else return false
  return true
}

function typed({ isReady, create, help }: KeyOptions, { key }: KeyboardEvent): boolean {
  if (isTyping()) return false
  if (key === '?') help()
  else if (!isReady()) return false
  else if (key === '/') find(HTMLInputElement, '#query').select()
  else if (key === 'n' && !part('create').hidden) create()
  else return false
  return true
}

function isTyping(): boolean {
  return document.activeElement instanceof HTMLInputElement || document.activeElement instanceof HTMLSelectElement
}
