/**
 * Login, logout, the idle lock, and the end of a session. Typed text outlives the session, for the
 * same person.
 */
import { loadList, resume, stopActs, viewAddressed } from './acts.ts'
import type { Answer, Refusal, User } from './answers.ts'
import { announce, clearMessages, closeAll, isModal, showCount, tell } from './dialogs.ts'
import { make, textButton } from './dom.ts'
import { draftNow, type Draft } from './editor.ts'
import { Form } from './form.ts'
import { languageLink } from './help.ts'
import { explained, say } from './language.ts'
import { typedSecret } from './secrets.ts'
import { api, deleted, entries, page, rights, screenNow, service, show } from './state.ts'
import type { TextName } from './texts-es.ts'

/** `email` is undefined if there is no login. */
let held: { readonly draft: Draft; readonly email: string | undefined } | undefined

export function startSession(): void {
  for (const input of INPUTS) addEventListener(input, noteInput, { passive: true, capture: true })
  document.addEventListener('visibilitychange', lookAtIdle)
  addEventListener('beforeunload', event => {
    if (held !== undefined || draftNow() !== undefined) event.preventDefault()
  })
  // Hiding the page (another tab, a locked phone) does not end the session.
  addEventListener('pagehide', leave)
  addEventListener('pageshow', event => {
    if (event.persisted) beginSession()
  })
}

export function beginSession(): void {
  if (!rights.isOpen) return askForLogin()
  startIdle()
  void load()
}

/** Once, at the start: somebody whom a proxy in front of the service knows needs no password. */
export async function beginFirst(): Promise<void> {
  if (!rights.hasProxyLogin) return beginSession()
  const answer = await api.proxyLogin()
  if (!answer.ok) return askForLogin()
  await enter(answer.value)
}

export function askForLogin(): void {
  endSession(api.user === undefined ? 'loginNote' : 'ended')
}

export function endSession(note: TextName): void {
  hold()
  showLogin(note)
}

export async function logOut(note: TextName = 'loggedOut'): Promise<void> {
  // Later nobody knows whose text it is.
  if (note === 'loggedOut') held = undefined
  else hold()
  const leaving = api.logout()
  showLogin(note)
  const answer = await leaving
  // Without a valid token there is nothing to revoke.
  const isOut = answer.ok || answer.why === 'login'
  if (!isOut && screenNow().name === 'login') show({ name: 'login', note: 'notRevoked' })
}

function loginForm(className: string): HTMLElement {
  const email = make('input', {
    id: 'email',
    inputMode: 'email',
    autocapitalize: 'off',
    spellcheck: false,
    autocomplete: 'username'
  })
  const secret = typedSecret('secret', 'current-password')
  const code = make('input', {
    id: 'code',
    className: 'code6',
    inputMode: 'numeric',
    autocomplete: 'one-time-code'
  })
  const hint = make('p', { className: 'below' }, say('codeHint'))
  const button = make('button', { className: `${className} wide` }, say('login'))
  const form = new Form(
    [
      { name: 'email', label: say('email'), input: email, isRequired: true },
      { name: 'password', label: say('password'), ...secret, isRequired: true },
      { name: 'code', label: say('oneTimeCode'), input: code, below: [hint] }
    ],
    button,
    async () => {
      const typed = code.value.replace(/\s/g, '')
      const outcome = await logIn(() => api.login(email.value, secret.input.value, typed))
      if (outcome?.why === 'login') {
        showCode()
        // Nobody knows which of the three is wrong.
        queueMicrotask(() => (/^(\d{6})?$/.test(typed) ? code : secret.input).focus())
      }
      return outcome
    }
  )
  const place = code.closest('.field')!
  const link = textButton('link', say('hasFactor'), () => {
    showCode()
    code.focus()
  })
  link.id = 'has-factor'
  const showCode = (): void => link.replaceWith(place)
  place.replaceWith(link)
  form.element.append(button)
  return form.element
}

export function loginCard(note: TextName): HTMLElement {
  const hasCompany = rights.hasProxyLogin
  const title = make('h2', { id: 'login-title' }, say('loginTitle'))
  const command = make('code', {}, 'admin user add EMAIL')
  const noUsers = make('p', { id: 'no-users', className: 'lasting' })
  noUsers.append(say('noUsers'), make('br'), command)
  const isNews = note !== 'loginNote'
  const said = make('p', { id: 'login-note', className: isNews ? 'lasting' : 'note' }, say(note))
  const card = make(
    'section',
    { id: 'login', className: 'login' },
    title,
    ...(isNews ? [said] : []),
    ...(service.hasUsers ? [] : [noUsers]),
    ...(hasCompany ? [...companyLogin(), make('div', { className: 'or' }, say('orPassword'))] : []),
    loginForm(hasCompany ? 'second' : 'main'),
    ...(isNews ? [] : [said]),
    languageLink()
  )
  card.setAttribute('aria-labelledby', title.id)
  return card
}

function companyLogin(): readonly HTMLElement[] {
  const alert = make('p', { id: 'proxy-alert', className: 'alert', role: 'alert', hidden: true })
  const button = textButton('main wide', say('proxyLogin'), async () => {
    button.ariaBusy = 'true'
    const outcome = await logIn(() => api.proxyLogin()).finally(() => {
      button.ariaBusy = null
    })
    alert.hidden = outcome === undefined
    alert.textContent = outcome === undefined ? '' : explained(outcome)
  })
  return [alert, Object.assign(button, { id: 'proxy-login' })]
}

async function logIn(ask: () => Promise<Answer<User>>): Promise<Refusal | undefined> {
  const answer = await ask()
  if (!answer.ok) return answer
  await enter(answer.value)
  return undefined
}

async function enter({ abilities }: User): Promise<void> {
  rights.begin(abilities)
  startIdle()
  await load()
}

async function load(): Promise<void> {
  // At the start the focus stays.
  const wasAsked = screenNow().name !== 'loading'
  show({ name: 'loading' })
  await loadList()
  if (screenNow().name !== 'list') return
  if (wasAsked) page.focus()
  const { draft, email } = held ?? {}
  held = undefined
  if (draft === undefined || isModal()) return viewAddressed()
  // Text typed without a login goes to the next person who logs in.
  if ((email ?? api.user?.email) === api.user?.email) resume(draft)
  else tell(say('draftDropped'))
}

function hold(): void {
  const draft = draftNow()
  if (draft === undefined) return
  held = { draft, email: api.user?.email }
}

function showLogin(note: TextName): void {
  forget()
  show({ name: 'login', note })
  page.focus()
}

function forget(): void {
  api.forget()
  rights.begin()
  stopIdle()
  stopActs()
  closeAll()
  clearMessages()
  entries.load()
  deleted.load()
  page.clearSearch(true)
}

/** If the browser goes back to the kept page, it asks for a login. */
function leave(): void {
  held = undefined
  void api.logout()
  forget()
  show(rights.isOpen ? { name: 'loading' } : { name: 'login', note: 'loginNote' })
}

const IDLE_MINUTES = 10
const COUNTED_SECONDS = 60
/** Seconds left when the count is read out: each second would be too much. */
const ANNOUNCED_SECONDS = [60, 20]
const INPUTS = [
  'pointerdown',
  'pointermove',
  'wheel',
  'touchmove',
  'keydown',
  'input',
  'scroll'
] as const

/** The wall clock runs while the machine sleeps; nobody can set the steady clock back. */
const clocks = (): readonly number[] => [Date.now(), performance.now()]
let lastInput: readonly number[] = []
let idleTimer: ReturnType<typeof setInterval> | undefined

function startIdle(): void {
  stopIdle()
  lastInput = clocks()
  idleTimer = setInterval(lookAtIdle, 1000)
}

function stopIdle(): void {
  clearInterval(idleTimer)
  idleTimer = undefined
  showCount(undefined)
}

/** Input after the time is over, as when a machine wakes up, must not prolong it. */
function noteInput(): void {
  lookAtIdle()
  lastInput = clocks()
}

function lookAtIdle(): void {
  if (idleTimer === undefined) return
  const idleMs = Math.max(...clocks().map((ms, i) => Math.abs(ms - lastInput[i]!)))
  const seconds = Math.ceil(IDLE_MINUTES * 60 - idleMs / 1000)
  if (seconds <= 0) return lock()
  const text = seconds <= COUNTED_SECONDS ? say('idle', { seconds }) : undefined
  showCount(text)
  if (ANNOUNCED_SECONDS.includes(seconds)) announce(text ?? '')
}

function lock(): void {
  stopIdle()
  if (api.user !== undefined) return void logOut('idleOut')
  if (screenNow().name !== 'list' && screenNow().name !== 'deleted') return
  hold()
  forget()
  show({ name: 'locked' })
  page.focus()
}
