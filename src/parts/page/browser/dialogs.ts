/**
 * Opens and closes dialogs. While one is open all else is inert, what would be announced as well: so the area for
 * messages moves into the dialog on top, and back. And no focus is left behind, nor what was typed.
 */
import { emptyFields, part } from './dom.ts'

export const area: HTMLElement = part('status')
/** The open ones, the one on top last. */
const open: HTMLDialogElement[] = []
let focusPage = (): void => {}

/** Starts to show messages; `focus` focuses what a person expects where nothing else has the focus. */
export function startDialogs(focus: () => void): void {
  focusPage = focus
  for (const dialog of document.querySelectorAll('dialog')) {
    dialog.addEventListener('close', () => { if (!dialog.open) left(dialog) })
    for (const button of dialog.querySelectorAll('[data-close]')) {
      // The dialog of an entry asks first.
      if (dialog.id !== 'editor') button.addEventListener('click', () => closeModal(dialog))
    }
  }
  place()
}

export function openModal(dialog: HTMLDialogElement): void {
  if (dialog.open) return
  dialog.showModal()
  open.push(dialog)
  place()
}

export function closeModal(dialog: HTMLDialogElement): void {
  if (!dialog.open) return
  dialog.close()
  left(dialog)
}

/** Whether a dialog is open. */
export function isModal(): boolean { return open.some(dialog => dialog.open) }

/** Waits until no dialog is open, nor another one in its place. */
export async function allClosed(): Promise<void> {
  while (isModal()) await new Promise(resolve => open.at(-1)!.addEventListener('close', resolve, { once: true }))
}

/** Focuses something where nothing has the focus, as after what had it was removed. */
export function keepFocus(): void {
  const { activeElement } = document
  if (activeElement !== null && activeElement !== document.body && activeElement.checkVisibility()) return
  const dialog = open.at(-1)
  if (dialog === undefined) return focusPage()
  const stops = [...dialog.querySelectorAll<HTMLElement>('input:not([tabindex="-1"]), button, summary')]
  stops.find(one => one.checkVisibility())?.focus()
}

function left(dialog: HTMLDialogElement): void {
  const at = open.indexOf(dialog)
  if (at < 0) return
  open.splice(at, 1)
  emptyFields(dialog)
  place()
  keepFocus()
}

/** What is shown last is above the rest. */
function place(): void {
  if (area.matches(':popover-open')) area.hidePopover()
  const home = open.at(-1) ?? document.body
  if (area.parentElement !== home) home.append(area)
  area.showPopover()
}
