/** What is told in passing. Each message has its own time, which waits while a person is about to use one of them. */
import { area, keepFocus } from './dialogs.ts'
import { find, part } from './dom.ts'
import { say } from './language.ts'

const SHOWN_MS = 6_000

/** Something that can be done about a message, until its time is over. */
export interface Offer {
  readonly label: string
  act(): void
  /** Called when the time is over. */
  onOver(): void
}

interface Shown {
  readonly element: HTMLElement
  readonly text: string
  readonly onOver: () => void
  timer: ReturnType<typeof setTimeout> | undefined
}

const list = part('messages')
const shown = new Set<Shown>()
/** A finger that has touched something counts as being there until it touches something else. */
const byFinger = matchMedia('(pointer: coarse)')

let saidPx = 0
// What is below messages keeps clear of them; in a dialog, which gets lower by that, the focus stays in sight.
new ResizeObserver(() => {
  const isMore = area.offsetHeight > saidPx
  saidPx = area.offsetHeight
  document.documentElement.style.setProperty('--said', `${saidPx}px`)
  if (isMore) document.activeElement?.closest('dialog :not(#status *)')?.scrollIntoView({ block: 'nearest' })
}).observe(area)

/** Tells something; gives the function that takes it back before its time is over. */
export function tell(text: string, offer?: Offer): () => void {
  for (const one of shown) if (one.text === text && offer === undefined) remove(one)
  const element = (find(HTMLTemplateElement, '#message').content.cloneNode(true) as DocumentFragment).firstElementChild!
  const message: Shown = { element: element as HTMLElement, text, onOver: () => offer?.onOver(), timer: undefined }
  find(HTMLElement, 'span', element).textContent = text
  const button = find(HTMLButtonElement, '.offer', element)
  button.hidden = offer === undefined
  button.textContent = offer?.label ?? ''
  button.addEventListener('click', () => {
    remove(message)
    offer?.act()
    keepFocus()
  })
  const dismiss = find(HTMLButtonElement, '.dismiss', element)
  dismiss.ariaLabel = say('close')
  dismiss.addEventListener('click', () => {
    remove(message)
    message.onOver()
    keepFocus()
  })
  shown.add(message)
  list.append(element)
  area.scrollTop = area.scrollHeight
  begin(message)
  return () => remove(message)
}

/** Takes all messages back. */
export function clearMessages(): void { for (const one of shown) remove(one) }

/** Says something to those who listen, and shows nothing. */
export function announce(text: string): void { part('spoken').textContent = text }

/** Its time begins again while the pointer or the focus is on any of them. */
function begin(message: Shown): void {
  message.timer = setTimeout(() => {
    const isInUse = list.contains(document.activeElement) || (!byFinger.matches && list.matches(':hover'))
    if (isInUse) return begin(message)
    remove(message)
    message.onOver()
  }, SHOWN_MS)
}

function remove(message: Shown): void {
  clearTimeout(message.timer)
  shown.delete(message)
  message.element.remove()
}
