/** Login, logout, the idle lock, and the end of a session; what was typed outlives that for the same person. */
import { emptyNow } from './clipboard.ts'
import { allClosed, closeModal, keepFocus } from './dialogs.ts'
import { emptyFields, find, part } from './dom.ts'
import type { Entry } from './api.ts'
import type { Draft, Editor } from './editor.ts'
import { Form, type Outcome } from './form.ts'
import type { Grid } from './grid.ts'
import { Idle } from './idle.ts'
import { inEachLanguage, say } from './language.ts'
import { announce, clearMessages, tell } from './messages.ts'
import type { Notice } from './notice.ts'
import { briefName } from './plain.ts'
import type { Removals } from './removal.ts'
import { api, entries, loaded, rights } from './state.ts'
import type { TextName } from './texts.ts'
import { clearSearch, hideList, showRights } from './view.ts'

/** When the end of the idle time is read out, in seconds before it. */
const ANNOUNCED_SECONDS = [60, 20]

interface SessionOptions {
  readonly grid: Grid
  readonly editor: Editor
  readonly removals: Removals
  readonly notice: Notice
  /** Gives whether all of the list is there. */
  load(): Promise<boolean>
  stopLoading(): void
}

/** What the end of a session was in the way of: what was typed, and deletions; and whose it was. */
interface Kept {
  /** The newest first. */
  readonly drafts: readonly Draft[]
  readonly left: readonly Entry[]
  readonly email: string | undefined
}

/** The session of a person with the page. */
export class Session {
  readonly #options: SessionOptions
  readonly #login = part('login')
  readonly #locked = part('locked')
  readonly #form: Form
  readonly #idle: Idle
  #kept: Kept | undefined
  /** Whether a logout waits for deletions. */
  #isLeaving = false

  constructor(options: SessionOptions) {
    this.#options = options
    this.#form = new Form(find(HTMLFormElement, '#login form'), texts => this.#logIn(texts))
    this.#idle = new Idle(left => {
      const text = left === undefined ? '' : say('idle', { seconds: left })
      part('idle').hidden = left === undefined
      part('idle').textContent = text
      // Read out twice, and not each second.
      if (left === undefined || ANNOUNCED_SECONDS.includes(left)) announce(text)
    }, () => this.#lock())
    inEachLanguage(() => { if (!this.#form.isBusy) this.#form.clear() })
    for (const id of ['logout', 'leave']) part(id).addEventListener('click', () => void this.logOut())
    find(HTMLButtonElement, 'button', this.#locked).addEventListener('click', () => void this.#unlock())
    // Nothing of the session stays in a page that the browser keeps to go back to.
    addEventListener('pagehide', () => this.#abandon())
    addEventListener('pageshow', event => { if (event.persisted) location.reload() })
  }

  /** Whether the list may be shown: there is a session, which is neither locked nor being left. */
  get isOpen(): boolean { return this.#login.hidden && this.#locked.hidden && !this.#isLeaving }

  /** Whether something typed is kept for the next login, or until all dialogs are closed. */
  get isKeeping(): boolean { return (this.#kept?.drafts.length ?? 0) > 0 }

  /** Starts to watch for input. */
  start(): void { this.#idle.start() }

  /** The service wants a login. */
  askForLogin(): void { this.end(api.user === undefined ? 'loginNote' : 'ended') }

  /** Ends the session and asks for a login; the note says why. */
  end(note: TextName): void {
    this.#keep(this.#options.removals.forget())
    this.#isLeaving = false
    this.#forget()
    // It may wait for an answer of this session.
    this.#form.clear()
    this.#login.hidden = false
    this.#noteAtLogin(note)
    find(HTMLInputElement, '#email').focus()
  }

  async logOut(note: TextName = 'loggedOut'): Promise<void> {
    if (!this.isOpen) return
    this.#isLeaving = true
    if (note === 'loggedOut') this.#kept = undefined
    else this.#keep([])
    // What was asked before would show the list again.
    api.leave()
    const { removals } = this.#options
    const pending = removals.flush()
    this.#clear()
    // A silent service may let a person wait.
    part('loading').hidden = false
    find(HTMLElement, 'span', part('loading')).textContent = say('leaving')
    part('help').focus()
    const left = await pending
    if (note !== 'loggedOut') this.#keep(left)
    // Of those that were sent before nothing is known; to keep them for nobody would drop the draft.
    removals.forget()
    const leaving = api.logout(() => this.#noteAtLogin('notYetRevoked'))
    this.end(note)
    if (note === 'loggedOut') tellLeft(left)
    const answer = await leaving
    // Without a valid token there was nothing left to revoke.
    const isOut = answer.ok || answer.why === 'login'
    if (!this.#login.hidden) this.#noteAtLogin(isOut ? note : 'notRevoked')
  }

  async #logIn(texts: { readonly [name: string]: string }): Promise<Outcome> {
    const answer = await api.login(texts['email']!, texts['password']!)
    if (!answer.ok && answer.why === 'login') return 'badLogin'
    if (!answer.ok) return answer.why === 'invalid' ? 'badEmail' : answer
    rights.begin(answer.value.abilities)
    emptyFields(this.#login)
    this.#login.hidden = true
    await this.#begin()
    return undefined
  }

  async #unlock(): Promise<void> {
    this.#locked.hidden = true
    await this.#begin()
  }

  /** Loads the list, and gives back what was typed before, to the same person only. */
  async #begin(): Promise<void> {
    this.#idle.start()
    showRights(this.#options.grid)
    const isWhole = await this.#options.load()
    if (!this.isOpen) return // it has ended meanwhile, and has kept what there was
    const kept = this.#kept
    this.#kept = undefined
    keepFocus()
    const email = api.user?.email
    // What was typed without a login goes to whoever logs in.
    if (kept === undefined || (kept.email ?? email) !== email) return
    // A deletion whose answer came too late may be done.
    tellLeft(kept.left.filter(({ id }) => !isWhole || entries.get(id) !== undefined))
    for (let { drafts } = kept; drafts.length > 0; drafts = drafts.slice(1)) {
      // What is typed by now is not replaced: it comes back when all dialogs are closed, or after the next login.
      const own = this.#kept = { drafts, left: [], email }
      await allClosed()
      if (this.#kept !== own || !this.isOpen) return
      this.#kept = undefined
      this.#options.editor.resume(drafts[0]!)
    }
  }

  #lock(): void {
    if (api.user !== undefined) return void this.logOut('idleOut')
    if (!this.isOpen) return
    void this.#options.removals.flush()
    this.#keep([])
    this.#forget()
    this.#locked.hidden = false
    find(HTMLButtonElement, 'button', this.#locked).focus()
  }

  /** Where there is nothing new, what was kept before stays as it is, and whose it is. */
  #keep(left: readonly Entry[]): void {
    const draft = this.#options.editor.draft()
    if (draft === undefined && left.length === 0) return
    const email = api.user?.email
    const before = this.#kept?.email === email ? this.#kept?.drafts ?? [] : []
    this.#kept = { drafts: draft === undefined ? before : [draft, ...before], left, email }
  }

  #forget(): void {
    api.forget()
    this.#options.removals.forget()
    rights.begin()
    this.#clear()
  }

  /** Nothing of the session stays in the document. */
  #clear(): void {
    const { grid, editor, notice, stopLoading } = this.#options
    this.#idle.stop()
    for (const dialog of document.querySelectorAll('dialog')) closeModal(dialog)
    editor.close()
    clearMessages()
    notice.hide()
    stopLoading()
    emptyNow()
    entries.clear()
    loaded.is = false
    clearSearch()
    grid.hideAll()
    grid.show([], new Map())
    grid.toTop()
    hideList()
  }

  #noteAtLogin(note: TextName): void {
    part('login-note').dataset['text'] = note
    part('login-note').textContent = say(note)
  }

  /**
   * The page is left: deletions take effect, a logout that waits for them does as well, all else is forgotten. On the
   * way back a link to open it is shown.
   */
  #abandon(): void {
    void this.#options.removals.flush()
    this.#kept = undefined
    if (this.#isLeaving) void api.logout(() => {})
    this.#forget()
    const again = document.createElement('a')
    again.href = ''
    again.textContent = say('openAgain')
    document.body.replaceChildren(again)
  }
}

function tellLeft(all: readonly Entry[]): void {
  for (const { sistema } of all) tell(say('notRemoved', { name: briefName(sistema) }))
}
