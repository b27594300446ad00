/** The page: puts its parts together and starts them. */
import { startAccount } from './account.ts'
import { act, create, loadList, loadQuietly, LOST_AFTER_MS, toggleDeleted } from './acts.ts'
import type { Listed, Served } from './answers.ts'
import { ENDED } from './api.ts'
import { askToClose, isModal, startDialogs, tell, topDialog, undoNow } from './dialogs.ts'
import { catchBack } from './dom.ts'
import { openHelp, usesSingleKeys } from './help.ts'
import { say, startLanguage } from './language.ts'
import { bar, grid, startScreen } from './screen.ts'
import { askForLogin, beginFirst, endSession, startSession } from './session.ts'
import type { Act } from './rows.ts'
import { api, isAtList, page, rights, screenNow, service, show } from './state.ts'
import { entryInView } from './viewer.ts'

/** What others have changed comes by itself; the tag makes that cheap. */
const REFRESH_MS = 60_000

await startLanguage()
startScreen()
startSession()
startDialogs(() => page.focus())
startAccount(() => endSession('ownChanged'))
startPresses()
addEventListener('keydown', event => {
  if (event.defaultPrevented || event.altKey) return
  const isControl = event.ctrlKey || event.metaKey
  const isTaken = isControl ? controlKey(event.key.toLowerCase()) : plainKey(event.key)
  if (isTaken) event.preventDefault()
})
addEventListener('unhandledrejection', event => {
  if (event.reason === ENDED) event.preventDefault()
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
addEventListener('offline', () =>
  setTimeout(() => {
    if (navigator.onLine || !isAtList()) return
    page.setLine(false)
    untell = tell(say('offlineTitle'), undefined, true)
  }, LOST_AFTER_MS)
)
addEventListener('online', () => {
  untell()
  if (isAtList()) void loadList()
})
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && screenNow().name === 'list') void loadList()
})
setInterval(() => {
  if (!document.hidden && screenNow().name === 'list') void loadQuietly()
}, REFRESH_MS)
show({ name: 'loading' })
const served = JSON.parse(
  document.querySelector<HTMLMetaElement>('[name=served]')!.content
) as Served
rights.serve(served.operations)
service.hasUsers = served.hasUsers
void beginFirst()

function controlKey(key: string): boolean {
  if (key === 'z') return !isTyping() && undoNow()
  if (key === 'k' && !isModal() && isAtList()) {
    bar.focusSearch()
    return true
  }
  const entry = entryInHand()
  if (entry === undefined) return false
  // Ctrl C still copies selected text.
  const isCopy = key === 'c' && getSelection()?.isCollapsed !== false
  if (!isCopy && key !== 'b') return false
  const asked = isCopy ? 'copy' : 'copyUser'
  act(asked, entry, buttonInHand(entry.id, asked))
  return true
}

function plainKey(key: string): boolean {
  return key === 'Delete' ? deleteKey() : usesSingleKeys() && singleKey(key)
}

function deleteKey(): boolean {
  const entry = isTyping() ? undefined : entryInHand()
  if (entry === undefined || !rights.may('deletePassword')) return false
  act('remove', entry)
  return true
}

/** In the viewer, or in the row with the focus. */
function entryInHand(): Listed | undefined {
  if (isModal()) return topDialog() === 'viewer' ? entryInView() : undefined
  return screenNow().name === 'list' ? grid.focused : undefined
}

function buttonInHand(id: number, asked: Act): HTMLElement | undefined {
  return (
    document.querySelector<HTMLElement>(`#viewer [data-act=${asked}]`) ?? grid.button(id, asked)
  )
}

/** In the viewer, or in the row with the focus. */
const OF_ENTRY: { readonly [key: string]: Act } = {
  e: 'edit',
  v: 'reveal',
  c: 'copyCode',
  o: 'visit'
}

function singleKey(key: string): boolean {
  if (isTyping() || document.activeElement instanceof HTMLInputElement) return false
  const entry = entryInHand()
  const asked = OF_ENTRY[key]
  if (entry !== undefined && asked !== undefined) {
    // Only what is offered.
    const button = buttonInHand(entry.id, asked)
    button?.click()
    return button !== undefined
  }
  if (isModal()) return false
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
  if (activeElement instanceof HTMLInputElement)
    return activeElement.id !== 'query' || activeElement.value !== ''
  return activeElement instanceof HTMLTextAreaElement || activeElement instanceof HTMLSelectElement
}

/** Held Enter must not act on what comes next, nor a second click on what moved under it. */
function startPresses(): void {
  const stop = (event: Event): void => {
    event.preventDefault()
    event.stopImmediatePropagation()
  }
  addEventListener(
    'keydown',
    event => {
      if (event.repeat && event.key === 'Enter') stop(event)
    },
    true
  )
  // Weak: the button of a closed dialog leads to what the dialog has shown.
  let clicked: string | WeakRef<Element> | null = null
  addEventListener(
    'click',
    event => {
      const target = event.target as Element
      // An entry that leaves and returns has a new row.
      const under =
        target.closest<HTMLElement>('.row')?.dataset['id'] ?? target.closest('a, button')
      const before = clicked instanceof WeakRef ? clicked.deref() : clicked
      if (event.detail > 1 && under !== before) stop(event)
      // 0 if a key pressed it
      else if (event.detail > 0) clicked = under instanceof Element ? new WeakRef(under) : under
    },
    true
  )
}
