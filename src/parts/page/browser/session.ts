/** Login, logout, the idle lock, and the end of a session; what was typed outlives that for the same person. */
import type { Acts } from './acts.ts'
import { announce, clearMessages, closeAll, isModal, showCount, tell } from './dialogs.ts'
import { make } from './dom.ts'
import type { Draft } from './editor.ts'
import { Form, type Outcome } from './form.ts'
import { say } from './language.ts'
import { noUsersHint, type PageView } from './screen.ts'
import { api, deleted, entries, rights, screenNow, show } from './state.ts'
import type { TextName } from './texts.ts'

/** When the end of the idle time is read out, in seconds before it. */
const ANNOUNCED_SECONDS = [60, 20]

interface Kept {
  readonly draft: Draft
  readonly email: string | undefined
}

/** The session of a person with the page. */
export class Session {
  readonly #acts: Acts
  readonly #idle: Idle
  #view!: PageView
  #kept: Kept | undefined

  constructor(acts: Acts) {
    this.#acts = acts
    this.#idle = new Idle(left => {
      const text = left === undefined ? undefined : say('idle', { seconds: left })
      showCount(text)
      // Read out twice, and not each second.
      if (left !== undefined && ANNOUNCED_SECONDS.includes(left)) announce(text ?? '')
    }, () => this.#lock())
    addEventListener('beforeunload', event => {
      if (this.#kept !== undefined || acts.editor.draft() !== undefined) event.preventDefault()
    })
    // Leaving ends the session; hiding the page (another tab or program, a locked phone) does not.
    addEventListener('pagehide', () => this.#abandon())
    addEventListener('pageshow', event => { if (event.persisted) this.begin() })
  }

  connect(view: PageView): void { this.#view = view }

  /** Asks for a login if the service has one, else for the list. */
  begin(): void {
    if (!rights.isOpen) return this.askForLogin()
    this.#idle.start()
    void this.#load()
  }

  /** The service wants a login. */
  askForLogin(): void { this.end(api.user === undefined ? 'loginNote' : 'ended') }

  /** Ends the session and asks for a login; the note says why. */
  end(note: TextName): void {
    this.#keep()
    this.#forget()
    show({ name: 'login', note })
    this.#view.focus()
  }

  async logOut(note: TextName = 'loggedOut'): Promise<void> {
    if (note === 'loggedOut') this.#kept = undefined
    else this.#keep()
    const leaving = api.logout()
    this.end(note)
    const answer = await leaving
    // Without a valid token there was nothing left to revoke.
    const isOut = answer.ok || answer.why === 'login'
    if (!isOut && screenNow().name === 'login') show({ name: 'login', note: 'notRevoked' })
  }

  /** The card that asks for a login. */
  loginCard(note: TextName): HTMLElement {
    const email = make('input', {
      id: 'email', inputMode: 'email', autocapitalize: 'off', spellcheck: false, autocomplete: 'username'
    })
    const secret = make('input', { id: 'secret', type: 'password', autocomplete: 'current-password' })
    const button = make('button', { className: 'main wide' }, say('login'))
    const form = new Form([
      { name: 'email', label: say('email'), input: email, isRequired: true },
      { name: 'password', label: say('password'), input: secret, isRequired: true }
    ], button, () => this.#logIn(email.value, secret.value))
    form.element.append(button)
    const title = make('h2', { id: 'login-title' }, say('loginTitle'))
    const card = make('section', { id: 'login', className: 'login' }, title,
      make('p', { id: 'login-note', className: 'hint' }, say(note)), ...noUsersHint(), form.element,
      this.#view.bar.languages())
    card.setAttribute('aria-labelledby', title.id)
    return card
  }

  /** Shows the list again after the lock. */
  unlock(): void { this.begin() }

  async #logIn(email: string, password: string): Promise<Outcome> {
    const answer = await api.login(email, password)
    if (!answer.ok && answer.why === 'login') return 'badLogin'
    if (!answer.ok) return answer.why === 'invalid' ? 'badEmail' : answer
    rights.begin(answer.value.abilities)
    this.#idle.start()
    await this.#load()
    return undefined
  }

  /** Loads the list, and gives back what was typed before, to the same person only. */
  async #load(): Promise<void> {
    // At the start a person has not done anything yet.
    const wasAsked = screenNow().name !== 'loading'
    show({ name: 'loading' })
    await this.#acts.load()
    if (screenNow().name !== 'list') return
    if (wasAsked) this.#view.focus()
    const kept = this.#kept
    this.#kept = undefined
    if (kept === undefined || isModal()) return
    const email = api.user?.email
    // What was typed without a login goes to whoever logs in.
    if ((kept.email ?? email) === email) this.#acts.editor.open(kept.draft.edited, kept.draft.typed)
    else tell(say('draftDropped'))
  }

  #lock(): void {
    if (api.user !== undefined) return void this.logOut('idleOut')
    if (screenNow().name !== 'list' && screenNow().name !== 'deleted') return
    this.#keep()
    this.#forget()
    show({ name: 'locked' })
    this.#view.focus()
  }

  #keep(): void {
    const draft = this.#acts.editor.draft()
    if (draft === undefined) return
    const { edited, typed } = draft
    // Nobody asks for the stored password any more; it is not needed to save what was typed.
    const { password: _, ...fields } = edited?.fields ?? {}
    this.#kept = { draft: { typed, edited: edited && { ...edited, fields } }, email: api.user?.email }
  }

  /** Nothing of the session stays in the page. */
  #forget(): void {
    api.forget()
    rights.begin()
    this.#idle.stop()
    this.#acts.stop()
    closeAll()
    clearMessages()
    entries.load([])
    deleted.load([])
    this.#view.bar.forget()
  }

  /** The page is left. What a browser keeps of it, to go back to, asks for a login. */
  #abandon(): void {
    this.#kept = undefined
    void api.logout()
    this.#forget()
    show(rights.isOpen ? { name: 'loading' } : { name: 'login', note: 'loginNote' })
  }
}

/** How long the page stays open without input, and how much of that is counted down. */
const IDLE_MINUTES = 10
const COUNTED_SECONDS = 60
const INPUTS = ['pointerdown', 'pointermove', 'wheel', 'touchmove', 'keydown', 'input', 'scroll'] as const

/**
 * The wall clock, which goes on while the machine sleeps, and the steady one, which nobody puts back. The one that is
 * further from the last input counts, in whichever direction.
 */
function clocks(): readonly number[] { return [Date.now(), performance.now()] }

/** Watches for input while it runs. */
class Idle {
  readonly #onCount: (secondsLeft: number | undefined) => void
  readonly #onLock: () => void
  /** When the last input came, by each clock. */
  #last: readonly number[] = []
  #timer: ReturnType<typeof setInterval> | undefined

  /** `onCount` gets the seconds that are left within the last minute, and undefined once that is over. */
  constructor(onCount: (secondsLeft: number | undefined) => void, onLock: () => void) {
    this.#onCount = onCount
    this.#onLock = onLock
    for (const input of INPUTS) addEventListener(input, () => this.#input(), { passive: true, capture: true })
    document.addEventListener('visibilitychange', () => this.#look())
  }

  start(): void {
    this.stop()
    this.#last = clocks()
    this.#timer = setInterval(() => this.#look(), 1000)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#onCount(undefined)
  }

  /** Input that comes after the time was over, as when a machine wakes up, does not prolong it. */
  #input(): void {
    this.#look()
    this.#last = clocks()
  }

  #look(): void {
    if (this.#timer === undefined) return
    const idleMs = Math.max(...clocks().map((ms, i) => Math.abs(ms - this.#last[i]!)))
    const left = Math.ceil(IDLE_MINUTES * 60 - idleMs / 1000)
    if (left > 0) return this.#onCount(left <= COUNTED_SECONDS ? left : undefined)
    this.stop()
    this.#onLock()
  }
}
