/**
 * Dialogs, and the one message above them. An open dialog makes all else inert, so the message area
 * moves into the top dialog.
 */
import { breakable, iconButton, isThere, make, setIcon, textButton } from './dom.ts'
import type { Answer, Refusal } from './answers.ts'
import { explained, say } from './language.ts'
import type { TextName } from './texts-es.ts'

interface DialogOptions {
  readonly id: string
  readonly title: string
  readonly mark?: HTMLElement | undefined
  readonly content: readonly HTMLElement[]
  readonly foot?: readonly HTMLElement[]
  /** False keeps it open. */
  mayClose?(): boolean
  onClose?(): void
}

interface Opened {
  readonly dialog: HTMLDialogElement
  readonly options: DialogOptions
  readonly before: Element | null
}

export const area: HTMLElement = make('div', {
  id: 'status',
  className: 'status',
  popover: 'manual'
})
const CLOSED_PX = 90
/** The height of a message and its margins. */
const MESSAGE_PX = 96
const SHEETS = matchMedia('(width < 37.5rem)')

const open: Opened[] = []
const sizes = new ResizeObserver(() => clearFoot())
let focusPage = (): void => {}

/** `focus` is for when nothing has the focus. */
export function startDialogs(focus: () => void): void {
  focusPage = focus
  addEventListener('resize', clearFoot)
  place()
}

export function openDialog(options: DialogOptions): () => void {
  const title = make(
    'h2',
    { id: `${options.id}-title`, dir: 'auto', tabIndex: -1 },
    ...breakable(options.title)
  )
  title.autofocus = true
  const close = iconButton('close', say('close'), () => askToClose())
  const top = make(
    'div',
    { className: 'top' },
    ...(options.mark === undefined ? [] : [options.mark]),
    title,
    close
  )
  const foot = make('div', { className: 'end' }, ...(options.foot ?? []))
  const dialog = make(
    'dialog',
    { id: options.id },
    make('span', { className: 'grip' }),
    top,
    make('div', { className: 'content' }, ...options.content)
  )
  if (options.foot !== undefined) dialog.append(foot)
  dialog.setAttribute('aria-labelledby', title.id)
  dialog.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || event.defaultPrevented) return
    event.preventDefault()
    askToClose()
  })
  dialog.addEventListener('cancel', event => {
    event.preventDefault()
    askToClose()
  })
  // Browsers let the second wish to close pass without asking.
  dialog.addEventListener('close', () => {
    if (open.at(-1)?.dialog !== dialog) return
    dialog.showModal()
    askToClose()
  })
  // The second press of a double click on a row is not for the dialog that the first press opened.
  dialog.addEventListener('mousedown', event => {
    if (event.detail === 1 && isOutside(dialog, event)) askToClose()
  })
  makeSheet(dialog, top)
  const before = document.activeElement
  document.body.append(dialog)
  dialog.showModal()
  open.push({ dialog, options, before })
  place()
  sizes.observe(dialog)
  return () => closeDialog(dialog)
}

/** False if no dialog is open. */
export function askToClose(): boolean {
  const top = open.at(-1)
  if (top === undefined) return false
  if (top.options.mayClose?.() !== false) closeDialog(top.dialog)
  return true
}

export function closeAll(): void {
  while (open.length > 0) closeDialog(open.at(-1)!.dialog)
}

export function isModal(): boolean {
  return open.length > 0
}

/** The id of the dialog on top. */
export function topDialog(): string | undefined {
  return open.at(-1)?.options.id
}

export interface Choice<T> {
  readonly className: string
  readonly label: string
  readonly value: T
}

/** One choice is the safe one: it has the focus, and Esc takes it. */
export function choose<T>(
  id: string,
  title: string,
  content: readonly HTMLElement[],
  choices: readonly Choice<T>[],
  safe: number
): Promise<T> {
  return new Promise(resolve => {
    let chosen = choices[safe]!.value
    const foot = choices.map(({ className, label, value }) => {
      const button = textButton(className, label, () => {
        chosen = value
        close()
      })
      return Object.assign(button, { id: `take-${value}` })
    })
    const close = openDialog({ id, title, content, foot, onClose: () => resolve(chosen) })
    foot[safe]!.focus()
  })
}

export function confirm(
  title: string,
  text: string,
  yes: TextName,
  no: TextName = 'cancel',
  className: string = 'danger'
): Promise<boolean> {
  return choose(
    'confirm',
    title,
    [make('p', {}, text)],
    [
      { className: 'second', label: say(no), value: false },
      { className, label: say(yes), value: true }
    ],
    0
  )
}

/**
 * A list that is asked for each time that it is opened, and forgotten when it is closed. `itemsOf`
 * may say how many they are.
 */
export function openable<T>(
  id: string,
  title: TextName,
  ask: () => Promise<Answer<T>>,
  itemsOf: (value: T, count: HTMLElement) => readonly HTMLElement[]
): HTMLDetailsElement {
  const items = make('div')
  const count = make('span', { className: 'count' })
  const element = make('details', { id }, make('summary', {}, say(title), count), items)
  element.addEventListener('toggle', () => {
    count.textContent = ''
    items.replaceChildren()
    const isWanted = (): boolean => element.open && element.isConnected
    if (element.open) void fillWith(items, ask, value => itemsOf(value, count), isWanted)
  })
  return element
}

/** Shows what is asked for once it has come; what is there stays until then. */
export async function fillWith<T>(
  place: HTMLElement,
  ask: () => Promise<Answer<T>>,
  itemsOf: (value: T) => readonly HTMLElement[],
  isWanted = (): boolean => place.isConnected
): Promise<void> {
  if (place.firstChild === null) place.append(make('p', { className: 'note' }, say('loading')))
  const answer = await ask()
  if (!isWanted()) return
  place.replaceChildren(...(answer.ok ? itemsOf(answer.value) : [make('p', {}, explained(answer))]))
  settleFocus()
}

/** For after the focused element was removed. */
export function settleFocus(): void {
  const { activeElement } = document
  if (
    activeElement instanceof HTMLElement &&
    activeElement !== document.body &&
    isThere(activeElement)
  )
    return
  const dialog = open.at(-1)?.dialog
  if (dialog === undefined) return focusPage()
  const stops = [...dialog.querySelectorAll<HTMLElement>('input, textarea, button, summary')]
  stops.find(one => isThere(one) && one.tabIndex >= 0)?.focus()
}

function closeDialog(dialog: HTMLDialogElement): void {
  const at = open.findIndex(one => one.dialog === dialog)
  const closed = open[at]
  if (closed === undefined) return
  open.splice(at, 1)
  dialog.close()
  sizes.unobserve(dialog)
  place()
  dialog.remove()
  closed.options.onClose?.()
  if (closed.before instanceof HTMLElement && isThere(closed.before))
    closed.before.focus({ preventScroll: true })
  settleFocus()
}

function place(): void {
  if (area.matches(':popover-open')) area.hidePopover()
  const home = open.at(-1)?.dialog ?? document.body
  if (area.parentElement !== home) home.append(area)
  area.showPopover()
  clearFoot()
}

/** Raises the message above the buttons of a dialog that it would cover. */
function clearFoot(): void {
  const { top, bottom } = open.at(-1)?.dialog.querySelector('.end')?.getBoundingClientRect() ?? {
    top: 0,
    bottom: 0
  }
  const isBelow = bottom > innerHeight - MESSAGE_PX
  area.style.setProperty('--foot', isBelow ? `${innerHeight - top}px` : '0px')
}

function isOutside(dialog: HTMLElement, { target, clientX, clientY }: MouseEvent): boolean {
  const { left, right, top, bottom } = dialog.getBoundingClientRect()
  return (
    target === dialog && (clientX < left || clientX > right || clientY < top || clientY > bottom)
  )
}

function makeSheet(dialog: HTMLElement, top: HTMLElement): void {
  let from: number | undefined
  const drag = ({ clientY }: PointerEvent): number => Math.max(0, clientY - (from ?? clientY))
  top.addEventListener('pointerdown', event => {
    if (
      !SHEETS.matches ||
      !(event.target instanceof Element) ||
      event.target.closest('button') !== null
    )
      return
    from = event.clientY
    top.setPointerCapture(event.pointerId)
  })
  top.addEventListener('pointermove', event => {
    if (from !== undefined) dialog.style.translate = `0 ${drag(event)}px`
  })
  for (const end of ['pointerup', 'pointercancel'] as const) {
    top.addEventListener(end, event => {
      if (from === undefined) return
      const isClosed = end === 'pointerup' && drag(event) > CLOSED_PX
      from = undefined
      dialog.style.translate = ''
      if (isClosed) askToClose()
    })
  }
}

const SHOWN_MS = 10_000
const COPIED_MS = 2_000

export interface Offer {
  readonly label: string
  /** The key for it works too, and it stands beside the text. */
  readonly isUndo?: boolean
  act(): void
  onOver?(): void
}

const list = make('div', { className: 'messages', role: 'log' })
const spoken = make('div', { id: 'spoken', className: 'unseen', role: 'status' })
const counted = make('p', { id: 'idle', className: 'idle', hidden: true })
area.append(counted, list, spoken)
/** A finger leaves `:hover` on the last element touched. */
const byFinger = matchMedia('(pointer: coarse)')
let untell = (): void => {}
let undo: (() => void) | undefined

/** False if nothing can be undone. */
export function undoNow(): boolean {
  if (undo === undefined) return false
  undo()
  return true
}

/** Replaces the former message; gives the function that takes the new message back. */
export function tell(text: string, offer?: Offer, isLasting: boolean = false): () => void {
  untell()
  let timer: ReturnType<typeof setTimeout> | undefined
  const end = (isOver: boolean): void => {
    if (!message.isConnected) return
    clearTimeout(timer)
    message.remove()
    undo = undefined
    if (isOver) offer?.onOver?.()
    settleFocus()
  }
  const act = (): void => {
    end(false)
    offer?.act()
  }
  const className = offer?.isUndo === true ? 'message brief' : 'message'
  const message = make(
    'div',
    { className },
    make('span', {}, text),
    ...(offer === undefined ? [] : [textButton('offer', offer.label, act)]),
    iconButton('close', say('close'), () => end(true))
  )
  const begin = (): void => {
    timer = setTimeout(() => {
      const isInUse =
        list.contains(document.activeElement) || (!byFinger.matches && list.matches(':hover'))
      if (isInUse) begin()
      else end(true)
    }, SHOWN_MS)
  }
  list.append(message)
  if (offer?.isUndo === true) undo = act
  if (!isLasting) begin()
  untell = () => end(true)
  return () => end(false)
}

/** Why something was not done. */
export function sayWhy(refusal: Refusal): undefined {
  tell(explained(refusal))
  return undefined
}

export function clearMessages(): void {
  untell()
  announce('')
}

/** For screen readers only. */
export function announce(text: string): void {
  spoken.textContent = text
}

/** Undefined ends the count. */
export function showCount(text: string | undefined): void {
  counted.hidden = text === undefined
  counted.textContent = text ?? ''
}

export function sayCopied(button: HTMLElement): void {
  announce(say('copied'))
  const drawn = button.querySelector('use')?.getAttribute('href')?.slice(3)
  if (drawn === undefined || drawn === 'check') return
  const said = make('span', { className: 'said', ariaHidden: 'true' }, say('copied'))
  setIcon(button, 'check')
  button.classList.add('done')
  button.append(said)
  setTimeout(() => {
    setIcon(button, drawn)
    button.classList.remove('done')
    said.remove()
  }, COPIED_MS)
}
