/** The page: puts its parts together and starts them. */
import { act, create, loadList, LOST_AFTER_MS, toggleDeleted } from './acts.ts'
import type { Served } from './answers.ts'
import { undoRemovals } from './changes.ts'
import { askToClose, isModal, startDialogs, tell } from './dialogs.ts'
import { catchBack } from './dom.ts'
import { openHelp, usesSingleKeys } from './help.ts'
import { say } from './language.ts'
import { bar, grid, startScreen } from './screen.ts'
import { askForLogin, beginSession, startSession } from './session.ts'
import { api, isAtList, page, rights, screenNow, service, show } from './state.ts'

startScreen()
startSession()
startDialogs(() => page.focus())
startPresses()
addEventListener('keydown', event => {
  if (event.defaultPrevented || event.altKey) return
  const isControl = event.ctrlKey || event.metaKey
  const isTaken = isControl ? controlKey(event.key.toLowerCase()) : usesSingleKeys() && singleKey(event.key)
  if (isTaken) event.preventDefault()
})
api.connect({
  onLoginNeeded: askForLogin,
  onForbidden: operation => {
    rights.deny(operation)
    page.renew()
  }
})
catchBack(() => {
  if (askToClose()) return 'caught'
  if (screenNow().name === 'deleted') {
    toggleDeleted()
    return 'caught'
  }
  if (api.user === undefined) return 'leave'
  tell(say('backAgain'))
  return 'warned'
})

let untell = (): void => {}
addEventListener('offline', () => setTimeout(() => {
  if (!navigator.onLine && isAtList()) untell = tell(say('offlineTitle'), undefined, true)
}, LOST_AFTER_MS))
addEventListener('online', () => {
  untell()
  if (isAtList()) void loadList()
})
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && screenNow().name === 'list') void loadList()
})
show({ name: 'loading' })
const served = JSON.parse(document.querySelector<HTMLMetaElement>('[name=served]')!.content) as Served
rights.serve(served.operations)
service.hasUsers = served.hasUsers
beginSession()

function controlKey(key: string): boolean {
  if (key === 'z') return !isTyping() && undoRemovals()
  const entry = grid.focused
  if (isModal() || entry === undefined || screenNow().name !== 'list') return false
  // Ctrl C still copies selected text.
  const isCopy = key === 'c' && getSelection()?.isCollapsed !== false
  if (!isCopy && key !== 'b') return false
  const asked = isCopy ? 'copy' : 'copyUser'
  act(asked, entry, grid.button(entry.id, asked))
  return true
}

function singleKey(key: string): boolean {
  if (isTyping() || document.activeElement instanceof HTMLInputElement || isModal()) return false
  if (key === '?') openHelp()
  else if (!isAtList()) return false
  else if (key === '/') bar.focusSearch()
  else if (key === 'n') create()
  else return false
  return true
}

/** The empty search does not count: it may have the focus at a deletion. */
function isTyping(): boolean {
  const { activeElement } = document
  if (activeElement instanceof HTMLInputElement) return activeElement.id !== 'query' || activeElement.value !== ''
  return activeElement instanceof HTMLTextAreaElement || activeElement instanceof HTMLSelectElement
}

/** Held Enter must not act on what comes next, nor a second click on what moved under it. */
function startPresses(): void {
  const stop = (event: Event): void => {
    event.preventDefault()
    event.stopImmediatePropagation()
  }
  addEventListener('keydown', event => { if (event.repeat && event.key === 'Enter') stop(event) }, true)
  let clicked: string | Element | null = null
  addEventListener('click', event => {
    const target = event.target as Element
    // An entry that leaves and returns has a new row.
    const under = target.closest<HTMLElement>('.row')?.dataset['id'] ?? target.closest('a, button')
    if (event.detail > 1 && under !== clicked) stop(event)
    else if (event.detail > 0) clicked = under // 0 if a key pressed the button
  }, true)
}
