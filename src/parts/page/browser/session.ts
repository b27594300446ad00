/** Login, logout, the idle lock, and the end of a session; what was typed outlives that for the same person. */
import type { Answer, Operation, Refusal } from './api.ts'
import { find, part } from './dom.ts'
import type { Draft, Editor } from './editor.ts'
import { Form, type Outcome } from './form.ts'
import type { Grid } from './grid.ts'
import { Idle } from './idle.ts'
import { inEachLanguage, say } from './language.ts'
import type { Notice } from './notice.ts'
import type { Removals } from './removal.ts'
import { api, denied, entries, loaded } from './state.ts'
import type { TextName } from './texts.ts'
import { clearSearch, hideList, showAbilities } from './view.ts'

interface SessionOptions {
  readonly grid: Grid
  readonly editor: Editor
  readonly removals: Removals
  readonly notice: Notice
  load(): Promise<unknown>
}

/** The session of a person with the page. */
export class Session {
  readonly #options: SessionOptions
  readonly #login = part('login')
  readonly #locked = part('locked')
  readonly #form: Form
  readonly #idle: Idle
  /** What was typed when the session ended, and by whom. */
  #draft: { readonly draft: Draft, readonly email: string | undefined } | undefined

  constructor(options: SessionOptions) {
    this.#options = options
    this.#form = new Form(find(HTMLFormElement, '#login form'), texts => this.#logIn(texts))
    this.#idle = new Idle(left => {
      part('idle').hidden = left === undefined
      part('idle').textContent = left === undefined ? '' : say('idle', { seconds: left })
    }, () => this.#lock())
    inEachLanguage(() => this.#form.clear())
    part('logout').addEventListener('click', () => void this.logOut())
    find(HTMLButtonElement, 'button', this.#locked).addEventListener('click', () => void this.#unlock())
    // Nothing of the session stays in a page that the browser keeps to go back to.
    addEventListener('pagehide', () => this.#abandon())
    addEventListener('pageshow', event => { if (event.persisted) location.reload() })
  }

  /** Whether the list may be shown: there is a session, and it is not locked. */
  get isOpen(): boolean { return this.#login.hidden && this.#locked.hidden }

  /** Starts to watch for input. */
  start(): void { this.#idle.start() }

  /** What an answer means for the whole page; gives a refusal that is left to the caller. */
  settle(operation: Operation, answer: Answer<unknown>): Refusal | undefined {
    if (answer.ok) return undefined
    if (answer.why === 'login') {
      this.end(api.user === undefined ? 'loginNote' : 'ended')
      return undefined
    }
    if (answer.why === 'forbidden') {
      denied.add(operation)
      showAbilities(this.#options.grid)
    }
    return answer
  }

  /** Ends the session and asks for a login; the note says why. */
  end(note: TextName): void {
    this.#keepDraft()
    this.#forget()
    this.#login.hidden = false
    this.#noteAtLogin(note)
    find(HTMLInputElement, '#email').focus()
  }

  async logOut(note: TextName = 'loggedOut'): Promise<void> {
    const { removals } = this.#options
    const pending = removals.flush()
    if (note === 'loggedOut') this.#draft = undefined
    else this.#keepDraft()
    this.#options.editor.close()
    hideList()
    await pending
    const leaving = api.logout()
    this.end(note)
    const answer = await leaving
    if (!answer.ok && answer.why !== 'login') this.#noteAtLogin('notRevoked')
  }

  async #logIn(texts: { readonly [name: string]: string }): Promise<Outcome> {
    const answer = await api.login(texts['email']!, texts['password']!)
    if (!answer.ok) return answer.why === 'login' ? 'badLogin' : answer.why === 'invalid' ? 'badEmail' : answer
    find(HTMLFormElement, '#login form').reset()
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
    await this.#options.load()
    const kept = this.#draft
    this.#draft = undefined
    if (kept !== undefined && kept.email === api.user?.email && this.isOpen) this.#options.editor.resume(kept.draft)
    else find(HTMLInputElement, '#query').focus()
  }

  #lock(): void {
    if (api.user !== undefined) return void this.logOut('idleOut')
    if (!this.isOpen) return
    void this.#options.removals.flush()
    this.#keepDraft()
    this.#forget()
    this.#locked.hidden = false
    find(HTMLButtonElement, 'button', this.#locked).focus()
  }

  #keepDraft(): void {
    const draft = this.#options.editor.draft()
    if (draft !== undefined) this.#draft = { draft, email: api.user?.email }
  }

  #forget(): void {
    const { grid, editor, notice } = this.#options
    this.#idle.stop()
    api.forget()
    for (const dialog of document.querySelectorAll('dialog')) dialog.close()
    editor.close()
    notice.hide()
    entries.load([])
    denied.clear()
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

  /** The page is left: deletions take effect, all else is forgotten. On the way back a link to open it is shown. */
  #abandon(): void {
    void this.#options.removals.flush()
    this.#draft = undefined
    this.#forget()
    const again = document.createElement('a')
    again.href = ''
    again.textContent = say('openAgain')
    document.body.replaceChildren(again)
  }
}
