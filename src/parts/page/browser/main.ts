/** The page: puts its parts together and starts them. */
import { Acts, LOST_AFTER_MS } from './acts.ts'
import { LOST } from './answers.ts'
import { askToClose, isModal, startDialogs, tell } from './dialogs.ts'
import { catchBack } from './dom.ts'
import { openAccount, openHelp, usesSingleKeys } from './help.ts'
import { say } from './language.ts'
import { PageView } from './screen.ts'
import { Session } from './session.ts'
import { api, isAtList, rights, screenNow, service, show } from './state.ts'

const acts = new Acts()
const session = new Session(acts)
const view = new PageView({
  onAct: (act, entry, button) => acts.do(act, entry, button),
  create: () => acts.create(),
  refresh: () => void acts.load(true),
  showDeleted: () => acts.showDeleted(),
  help: openHelp,
  account: () => openAccount(() => session.end('ownChanged')),
  logout: () => void session.logOut(),
  unlock: () => session.unlock(),
  loginCard: note => session.loginCard(note)
})
acts.connect(view)
session.connect(view)
startDialogs(() => view.focus())
startKeys(acts, view)
api.connect({
  onLoginNeeded: () => session.askForLogin(),
  onForbidden: operation => {
    rights.deny(operation)
    view.renew()
  }
})
catchBack(() => {
  if (askToClose()) return 'caught'
  if (screenNow().name === 'deleted') {
    acts.showDeleted()
    return 'caught'
  }
  if (api.user === undefined) return 'leave'
  tell(say('backAgain'))
  return 'warned'
})

/** A line that drops for a moment is not told. */
let untell = (): void => {}
addEventListener('offline', () => setTimeout(() => {
  if (!navigator.onLine && isAtList()) untell = tell(say('offlineTitle'), undefined, true)
}, LOST_AFTER_MS))
addEventListener('online', () => {
  untell()
  if (isAtList()) void acts.load()
})
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && screenNow().name === 'list') void acts.load()
})
void start()

/** Asks for a login if the service has one, which it says itself; else for the list. */
async function start(): Promise<void> {
  show({ name: 'loading' })
  const served = await api.served()
  if (served === undefined) return show({ name: 'failed', refusal: LOST, retry: () => void start() })
  rights.serve(served.operations)
  service.hasUsers = served.hasUsers
  session.begin()
}

/** Listens for the keys, and sees that what is pressed once acts once. */
function startKeys(acts: Acts, view: PageView): void {
  startPresses()
  const pressed = (key: string): boolean => {
    if (key === 'z') return !isTyping(view) && acts.removals.undo()
    const entry = view.grid.focused
    if (isModal() || entry === undefined || screenNow().name !== 'list') return false
    // A selected text is copied as ever.
    const copied = key === 'c' && getSelection()?.isCollapsed !== false ? 'copy' : undefined
    const act = key === 'b' ? 'copyUser' : copied
    if (act !== undefined) acts.do(act, entry, view.grid.button(entry.id, act))
    return act !== undefined
  }
  const typed = (key: string): boolean => {
    if (isTyping(view) || document.activeElement instanceof HTMLInputElement || isModal()) return false
    if (key === '?') openHelp()
    else if (!isAtList()) return false
    else if (key === '/') view.bar.focusSearch()
    else if (key === 'n') acts.create()
    else return false
    return true
  }
  addEventListener('keydown', event => {
    if (event.defaultPrevented || event.altKey) return
    const isControl = event.ctrlKey || event.metaKey
    const isTaken = isControl ? pressed(event.key.toLowerCase()) : usesSingleKeys() && typed(event.key)
    if (isTaken) event.preventDefault()
  })
}

/** Neither Enter that is held down acts on what comes next, nor the second click of two on what has come under it. */
function startPresses(): void {
  const stop = (event: Event): void => {
    event.preventDefault()
    event.stopImmediatePropagation()
  }
  addEventListener('keydown', event => { if (event.repeat && event.key === 'Enter') stop(event) }, true)
  let clicked: string | Element | null = null
  addEventListener('click', event => {
    const target = event.target as Element
    // An entry that goes and comes back has another row.
    const under = target.closest<HTMLElement>('.row')?.dataset['id'] ?? target.closest('a, button')
    if (event.detail > 1 && under !== clicked) stop(event)
    else if (event.detail > 0) clicked = under // it is 0 if a key pressed the button
  }, true)
}

/** Whether a key would take back what was typed: not in the empty search, which may have the focus at a deletion. */
function isTyping(view: PageView): boolean {
  const { activeElement } = document
  if (activeElement instanceof HTMLTextAreaElement || activeElement instanceof HTMLSelectElement) return true
  return activeElement instanceof HTMLInputElement && (activeElement.id !== 'query' || view.bar.isSearching)
}
