/** The keys that work anywhere on the page, but while a text is being typed or a dialog is open; and the help. */
import { recall, remember } from './address.ts'
import { isModal, openModal } from './dialogs.ts'
import { find, part } from './dom.ts'
import type { Entry } from './api.ts'
import { inEachLanguage, say } from './language.ts'
import type { TextName } from './texts.ts'

const KEYS: readonly (readonly [keys: string, text: TextName])[] = [
  ['/', 'keySearch'], ['n', 'keyNew'], ['↑ ↓', 'keyRows'], ['← →', 'keyColumns'], ['Intro', 'keyOpen'],
  ['Ctrl B', 'keyCopyUser'], ['Ctrl C', 'keyCopy'], ['Ctrl Z', 'keyUndo'], ['Esc', 'keyBack'], ['?', 'keyHelp']
]

interface KeyOptions {
  /** Whether there is a list. */
  isReady(): boolean
  /** The entry whose row has the focus. */
  focused(): Entry | undefined
  copy(entry: Entry): void
  copyUser(entry: Entry): void
  create(): void
  /** False where there is nothing to undo. */
  undo(): boolean
}

/** Listens for the keys, and sees that what is pressed once acts once. */
export function startKeys(options: KeyOptions): void {
  startPresses()
  // Keys without Ctrl can be switched off: a person who speaks to the machine would press them by accident.
  const single = find(HTMLInputElement, '#single-keys')
  single.checked = recall('keys') !== 'off'
  single.addEventListener('change', () => remember('keys', single.checked ? 'on' : 'off'))
  addEventListener('keydown', event => {
    if (event.defaultPrevented || event.altKey) return
    const isControl = event.ctrlKey || event.metaKey
    const isTaken = isControl ? pressed(options, event.key.toLowerCase()) : single.checked && typed(options, event)
    if (isTaken) event.preventDefault()
  })
  part('help').addEventListener('click', () => openModal(find(HTMLDialogElement, '#more')))
  inEachLanguage(() => part('keys').replaceChildren(...KEYS.flatMap(([keys, text]) => {
    const [term, meaning] = [document.createElement('dt'), document.createElement('dd')]
    term.textContent = keys === 'Intro' ? say('keyEnter') : keys
    meaning.textContent = say(text)
    return [term, meaning]
  })))
}

/** Neither Enter that is held down acts on what comes next, nor the second click of two on what has come under it. */
function startPresses(): void {
  const stop = (event: Event): void => {
    event.preventDefault()
    event.stopImmediatePropagation()
  }
  addEventListener('keydown', event => { if (event.repeat && event.key === 'Enter') stop(event) }, true)
  // An entry that goes and comes back has another row.
  let clicked: string | Element | null = null
  addEventListener('click', event => {
    const target = event.target as Element
    const under = target.closest<HTMLElement>('.row')?.dataset['id'] ?? target.closest('a, button')
    if (event.detail > 1 && under !== clicked) stop(event)
    else if (event.detail > 0) clicked = under // it is 0 where a key pressed the button
  }, true)
}

/** With Ctrl, or with the Command key; true if that was for the page. */
function pressed({ focused, copy, copyUser, undo }: KeyOptions, key: string): boolean {
  if (key === 'z') return !hasText() && undo()
  if (isModal()) return false
  const entry = focused()
  if (entry === undefined) return false
  if (key === 'b') copyUser(entry)
  // A selected text is copied as ever.
  else if (key === 'c' && getSelection()?.isCollapsed !== false) copy(entry)
  else return false
  return true
}

function typed({ isReady, create }: KeyOptions, { key }: KeyboardEvent): boolean {
  if (isTyping() || isModal()) return false
  if (key === '?') openModal(find(HTMLDialogElement, '#more'))
  else if (!isReady()) return false
  else if (key === '/') find(HTMLInputElement, '#query').select()
  else if (key === 'n' && !part('create').hidden) create()
  else return false
  return true
}

function isTyping(): boolean {
  return document.activeElement instanceof HTMLInputElement || document.activeElement instanceof HTMLSelectElement
}

/** Whether the key takes back what was typed: not in the empty search, which has the focus when the last entry goes. */
function hasText(): boolean {
  const { activeElement } = document
  return activeElement instanceof HTMLInputElement && (activeElement.id !== 'query' || activeElement.value !== '')
}
