/**
 * Secrets: hidden until they are asked for, and again after a minute; copied, and cleared. The clipboard is
 * never read. Browsers let a page write it within a press alone, so a copied password is cleared by the
 * first press after its time, and only if the page kept the focus: otherwise the clipboard may hold
 * something else.
 */
import type { Answer, Code } from './answers.ts'
import { announce, sayCopied, sayWhy, tell } from './dialogs.ts'
import { countDown, iconButton, make, setIcon } from './dom.ts'
import { explained, say, sayCount } from './language.ts'
import { linesIn, numberOf, unseenIn } from './plain.ts'
import { longText, spanOf } from './rows.ts'
import type { TextName } from './texts-es.ts'

const DUE_MS = 30_000

let forgetCopy = (): void => {}
let last = {}

/** Nothing, after a message, if there is no text. */
export async function copySecret(
  text: Promise<string | undefined>,
  button?: HTMLElement
): Promise<void> {
  if (await copy(text, button)) clearLater()
}

export async function copyText(text: string, button?: HTMLElement): Promise<void> {
  await copy(Promise.resolve(text), button)
}

/** Copies within the click, even if the text comes later. */
async function copy(
  text: Promise<string | undefined>,
  button: HTMLElement | undefined
): Promise<boolean> {
  const own = (last = {})
  forgetCopy()
  const wanted = text.then(known => (own === last ? known : undefined))
  const isWritten = await writeLater(wanted)
  const known = await wanted
  if (known === undefined) return false
  const isCopied = isWritten || (await write(known))
  if (!isCopied) tell(say('notCopied'))
  else if (button === undefined) announce(say('copied'))
  else sayCopied(button)
  return isCopied
}

function clearLater(): void {
  const ended = new AbortController()
  const { signal } = ended
  let isAway = !document.hasFocus()
  let untell = (): void => {}
  const on = (target: EventTarget, type: string, act: () => void): void =>
    target.addEventListener(type, act, { signal })
  forgetCopy = () => {
    ended.abort()
    clearTimeout(timer)
    untell()
  }
  const clear = async (): Promise<void> => {
    if (!(await write(''))) return
    forgetCopy()
    announce(say('cleared'))
  }
  const offer = (text: string): void => {
    untell = tell(text, { label: say('clear'), act: () => void clear() }, true)
  }
  const comeBack = (): void => {
    if (!isAway || document.hidden) return
    forgetCopy()
    offer(say('maybeCopied'))
  }
  const timer = setTimeout(() => {
    // A person elsewhere is told on return.
    isAway ||= !document.hasFocus()
    if (isAway) return
    offer(say('clearedSoon'))
    for (const press of ['pointerup', 'keydown']) on(window, press, () => void clear())
  }, DUE_MS)
  on(window, 'blur', () => {
    isAway = true
  })
  on(window, 'focus', comeBack)
  // Phones hide a page that keeps the focus.
  on(document, 'visibilitychange', () => {
    comeBack()
    isAway ||= document.hidden
  })
  // Copied by hand: the clipboard no longer holds the password.
  for (const copied of ['copy', 'cut']) on(document, copied, forgetCopy)
}

/** Safari takes a promise within the click, and nothing after it. */
async function writeLater(text: Promise<string | undefined>): Promise<boolean> {
  try {
    const blob = text.then(known =>
      known === undefined
        ? Promise.reject(new Error('nothing to copy'))
        : new Blob([known], { type: 'text/plain' })
    )
    blob.catch(() => {})
    await navigator.clipboard.write([new ClipboardItem({ 'text/plain': blob })])
    return true
  } catch {
    return false
  }
}

async function write(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return writeOldWay(text)
  }
}

/** Without HTTPS, except on localhost, browsers have no other way. */
function writeOldWay(text: string): boolean {
  const put = (event: ClipboardEvent): void => {
    event.preventDefault()
    event.stopImmediatePropagation()
    event.clipboardData?.setData('text/plain', text)
  }
  addEventListener('copy', put, { once: true, capture: true })
  const isDone = document.execCommand('copy')
  removeEventListener('copy', put, { capture: true })
  return isDone
}

/** In characters: marking more would block the tab. */
const MAX_MARKED_LENGTH = 2_000
const REVEALED_MS = 60_000
/** Fewer are counted at a glance. */
const COUNTED_LINES = 6
const DOTS = '•'.repeat(8)

const KINDS = {
  digit: /^(?:\p{Nd}\p{M}*)+/u,
  space: /^ /,
  odd: /^\p{Zs}/u,
  break: /^\r?\n/,
  symbol: /^(?:[^\p{L}\p{M}\p{Nd}\p{Zs}\r\n]\p{M}*)+/u
} as const

/**
 * Marks digits and symbols (0 and O look alike), spaces, and letters of another script among Latin
 * letters.
 */
function showSecret(element: Element, text: string): void {
  const head = text.slice(0, MAX_MARKED_LENGTH).replace(/[\ud800-\udbff]$/, '')
  element.replaceChildren()
  const isLatin = /\p{Script=Latin}/u.test(head)
  const letters = isLatin
    ? { foreign: /^(?!\p{Script=Latin})\p{L}\p{M}*/u, plain: /^(?:\p{Script=Latin}|\p{M})+/u }
    : { plain: /^[\p{L}\p{M}]+/u }
  const runs = Object.entries({ ...KINDS, ...letters })
  for (const piece of unseenIn(head, true)) {
    if (piece.isName) {
      element.append(spanOf('unseeable', piece.text))
      continue
    }
    for (let left = piece.text; left !== '';) {
      const found = runs
        .map(([kind, run]) => [kind, run.exec(left)?.[0] ?? ''] as const)
        .find(([, run]) => run !== '')
      const [kind, run] = found ?? ['plain', String.fromCodePoint(left.codePointAt(0)!)]
      if (kind === 'plain' || kind === 'break') element.append(run)
      else if (kind === 'odd') element.append(spanOf('unseeable', numberOf(run)))
      else element.append(spanOf(kind, run))
      left = left.slice(run.length)
    }
  }
  element.append(text.slice(head.length))
}

/** A function of its own, so that the timer holds nothing: what a closed dialog shows goes with it. */
function hideLater(own: WeakRef<HTMLElement>): ReturnType<typeof setTimeout> {
  return setTimeout(() => own.deref()?.dispatchEvent(new Event('hide')), REVEALED_MS)
}

type Labels = readonly [whileHidden: TextName, whileShown: TextName]

/** Draws the button of a secret, and hides a shown one when its time is over. */
export function eyeOf(
  element: HTMLElement,
  button: HTMLElement,
  labels: Labels,
  hide: () => void
): (isShown: boolean) => void {
  const own = new WeakRef(element)
  let hiding: ReturnType<typeof setTimeout> | undefined
  element.addEventListener('hide', hide)
  return isShown => {
    if (!isShown) clearTimeout(hiding)
    if (!isShown || hiding === undefined) hiding = isShown ? hideLater(own) : undefined
    button.ariaLabel = button.title = say(labels[isShown ? 1 : 0])
    setIcon(button, isShown ? 'hide' : 'eye')
  }
}

/** A password that a person types to the service itself, with an eye. */
export function typedSecret(
  id: string,
  autocomplete: 'current-password' | 'new-password'
): {
  readonly input: HTMLInputElement
  readonly beside: readonly [HTMLButtonElement]
} {
  const input = make('input', { id, type: 'password', autocomplete })
  const eye = iconButton('eye', '', () => show(input.type === 'password'))
  const draw = eyeOf(input, eye, ['revealThis', 'hideThis'], () => show(false))
  const show = (isShown: boolean): void => {
    draw(isShown)
    input.type = isShown ? 'text' : 'password'
    eye.ariaPressed = String(isShown)
  }
  input.spellcheck = false
  input.autocapitalize = 'off'
  show(false)
  return { input, beside: [eye] }
}

export type SecretName = 'password' | 'notas'

export function isSecret(name: string): name is SecretName {
  return name === 'password' || name === 'notas'
}

export interface Secret {
  readonly text: HTMLElement
  readonly button: HTMLButtonElement
  show(): Promise<void>
}

/** `draw` shows a value, or with undefined none. `read` gives undefined, after a message, if there is none. */
function keepHidden<T>(
  code: HTMLElement,
  beside: HTMLElement,
  button: HTMLButtonElement,
  labels: Labels,
  read: () => Promise<T | undefined>,
  draw: (value: T | undefined, set: (value: T | undefined) => void) => void
): Secret {
  const text = make('span', { className: 'secret' }, code, beside)
  const look = eyeOf(code, button, labels, () => set(undefined))
  const set = (value: T | undefined): void => {
    look(value !== undefined)
    text.classList.toggle('revealed', value !== undefined)
    code.ariaHidden = value === undefined ? 'true' : null
    draw(value, set)
  }
  const show = async (): Promise<void> => {
    button.ariaBusy = 'true'
    try {
      const value = await read()
      if (text.isConnected) set(value)
    } finally {
      button.ariaBusy = null
    }
  }
  button.addEventListener('click', () => {
    if (text.classList.contains('revealed')) set(undefined)
    else void show()
  })
  set(undefined)
  return { text, button, show }
}

/** `button` shows words instead of an eye. */
export function createSecret(
  name: SecretName,
  read: () => Promise<string | undefined>,
  button?: HTMLButtonElement
): Secret {
  const isNotes = name === 'notas'
  const code = make('span', { className: 'code', dir: 'ltr' })
  const lines = make('span', { className: 'hint' })
  const toggle = button ?? iconButton('eye', '')
  const labels = isNotes
    ? (['revealNotes', 'hideNotes'] as const)
    : (['revealThis', 'hideThis'] as const)
  return keepHidden(code, lines, toggle, labels, read, secret => {
    code.textContent = DOTS
    const count = linesIn(secret ?? '')
    lines.textContent = count >= COUNTED_LINES ? sayCount(count, 'lines', 'lines') : ''
    if (secret !== undefined && isNotes) code.replaceChildren(longText(secret))
    else if (secret !== undefined) showSecret(code, secret)
    if (button !== undefined) button.textContent = say(secret === undefined ? 'reveal' : 'hide')
  })
}

/** Of most codes, in seconds; a longer one is known once a code has begun. */
const PERIOD = 30
const LAST_SECONDS = 5
const AGAIN_MS = 2_000

/** With a ring of its seconds. At its end the next code comes; until then none is shown. */
export function createCode(read: () => Promise<Answer<Code>>): Secret {
  const digits = make('span', { className: 'code' })
  const ring = make('span', { className: 'ring', role: 'timer' })
  const left = make('span', { className: 'left', ariaHidden: 'true' })
  let period = PERIOD
  let stop = (): void => {}
  const first = async (): Promise<Code | undefined> => {
    const answer = await read()
    return answer.ok ? answer.value : sayWhy(answer)
  }
  const next = async (set: (code: Code | undefined) => void): Promise<void> => {
    const own = (stop = () => {})
    digits.textContent = '••• •••'
    ring.hidden = left.hidden = true
    const answer = await read()
    if (stop !== own || !digits.isConnected) return
    if (answer.ok) return set(answer.value)
    if (answer.why === 'unknown') {
      tell(explained(answer))
      return set(undefined)
    }
    const again = (): void => {
      stop()
      void next(set)
    }
    const timer = setTimeout(again, AGAIN_MS)
    addEventListener('online', again)
    stop = () => {
      clearTimeout(timer)
      removeEventListener('online', again)
    }
  }
  const beside = make('span', { className: 'seconds' }, ring, left)
  const button = iconButton('eye', '')
  return keepHidden(digits, beside, button, ['revealCode', 'hideCode'], first, (code, set) => {
    stop()
    stop = () => {}
    ring.hidden = left.hidden = true
    digits.textContent = '•'.repeat(6)
    if (code === undefined) return
    digits.textContent = code.code.replace(/^(\d{3,4})(\d{3,4})$/, '$1 $2')
    period = Math.max(period, code.seconds)
    stop = countDown(code.seconds, seconds => {
      if (!digits.isConnected) return stop()
      ring.hidden = false
      left.hidden = seconds > LAST_SECONDS
      left.textContent = String(seconds)
      ring.title = ring.ariaLabel = say('secondsLeft', { seconds })
      ring.style.setProperty('--part', String(seconds / period))
      ring.classList.toggle('ending', seconds <= LAST_SECONDS)
      if (seconds === 0) void next(set)
    })
  })
}
