/** Shows an entry so that nothing is invisible or ambiguous; secrets only if asked. */
import type { Listed } from './answers.ts'
import { icon, iconButton, make, setIcon } from './dom.ts'
import { age, moment, number, say, sayCount } from './language.ts'
import {
  hostIn,
  linesIn,
  numberOf,
  pieces,
  plainText,
  shortened,
  unseenIn,
  webAddress
} from './plain.ts'
import { rights } from './state.ts'
import type { TextName } from './texts.ts'

/** In characters: marking more would block the tab. */
const MAX_MARKED_LENGTH = 2_000
const HUES = 8

const KINDS = {
  digit: /^(?:\p{Nd}\p{M}*)+/u,
  space: /^ /,
  odd: /^\p{Zs}/u,
  break: /^\r?\n/,
  symbol: /^(?:[^\p{L}\p{M}\p{Nd}\p{Zs}\r\n]\p{M}*)+/u
} as const

function userName(text: string): HTMLElement {
  const element = make('bdi', { dir: 'auto' })
  append(element, shortened(text))
  return element
}

/** A web address shows its host, then its path; long names are cut. */
export function nameOf(text: string): HTMLElement {
  const element = make('bdi', { dir: 'auto' })
  const url = webAddress(text)
  const path =
    url === undefined ? '' : decoded(url.pathname + url.search + url.hash).replace(/^\/$/, '')
  append(element, shortened(hostIn(text) ?? text))
  if (path !== '') element.append(make('span', { className: 'path' }))
  if (path !== '') append(element.lastElementChild!, shortened(path))
  return element
}

export function longText(text: string): HTMLElement {
  const element = make('bdi', { dir: 'auto' })
  for (const piece of unseenIn(text, true))
    element.append(piece.isName ? spanOf('unseeable', piece.text) : piece.text)
  return element
}

export function tileOf(sistema: string): HTMLElement {
  const text = hostIn(sistema) ?? sistema
  const tile = make('span', { className: 'tile', ariaHidden: 'true' })
  tile.textContent = /[\p{L}\p{N}]/u.exec(text)?.[0].toUpperCase() ?? '·'
  const sum = [...text.slice(0, 40)].reduce((sum, one) => sum + one.codePointAt(0)!, 0)
  tile.style.setProperty('--hue', String(((sum % HUES) * 360) / HUES))
  return tile
}

/** Undefined if the text is no web address. */
export function linkTo(text: string): HTMLAnchorElement | undefined {
  const url = webAddress(text)
  if (url === undefined) return undefined
  const label = say('visitOf', { name: plainText(text) })
  return make(
    'a',
    {
      className: 'icon',
      href: url.href,
      target: '_blank',
      rel: 'noopener noreferrer',
      referrerPolicy: 'no-referrer',
      ariaLabel: label,
      title: say('visit')
    },
    icon('visit')
  )
}

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

function decoded(path: string): string {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

function spanOf(kind: string, text: string): HTMLElement {
  return make('span', { className: kind }, text)
}

function append(element: Element, text: string): void {
  for (const { text: piece, isName } of pieces(text))
    element.append(isName ? spanOf('unseeable', piece) : piece)
}

const REVEALED_MS = 60_000

/**
 * Sends the element the event `hide` when the time of a secret is over. The timer does not hold the
 * element: what a closed dialog has shown goes with it.
 */
export function hideLater(element: HTMLElement): ReturnType<typeof setTimeout> {
  const own = new WeakRef(element)
  return setTimeout(() => own.deref()?.dispatchEvent(new Event('hide')), REVEALED_MS)
}

const DOTS = '•'.repeat(8)

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
  let hiding: ReturnType<typeof setTimeout> | undefined
  const show = (isShown: boolean): void => {
    clearTimeout(hiding)
    if (isShown) hiding = hideLater(input)
    input.type = isShown ? 'text' : 'password'
    eye.ariaPressed = String(isShown)
    eye.ariaLabel = eye.title = say(isShown ? 'hideThis' : 'revealThis')
    setIcon(eye, isShown ? 'hide' : 'eye')
  }
  input.spellcheck = false
  input.autocapitalize = 'off'
  input.addEventListener('hide', () => show(false))
  show(false)
  return { input, beside: [eye] }
}

export interface Secret {
  readonly text: HTMLElement
  readonly button: HTMLButtonElement
  show(): Promise<void>
}

interface SecretOptions {
  readonly isNotes?: boolean
  /** Undefined, after a message, if it cannot be shown. */
  read(): string | Promise<string | undefined>
}

export function createSecret(
  { isNotes = false, read }: SecretOptions,
  button?: HTMLButtonElement
): Secret {
  const labels = isNotes
    ? (['revealNotes', 'hideNotes'] as const)
    : (['revealThis', 'hideThis'] as const)
  const toggle = button ?? iconButton('eye', '')
  const isText = button !== undefined
  const code = make('span', { className: 'code', dir: 'ltr' })
  const lines = make('span', { className: 'hint' })
  const text = make('span', { className: 'secret' }, code, lines)
  let hiding: ReturnType<typeof setTimeout> | undefined
  const set = (secret: string | undefined): void => {
    clearTimeout(hiding)
    const isShown = secret !== undefined
    text.classList.toggle('revealed', isShown)
    code.ariaHidden = isShown ? null : 'true'
    code.textContent = DOTS
    const count = linesIn(secret ?? '')
    lines.textContent = count > 1 ? sayCount(count, 'lines', 'lines') : ''
    if (isShown && isNotes) code.replaceChildren(longText(secret))
    else if (isShown) showSecret(code, secret)
    if (isShown) hiding = hideLater(code)
    if (isText) toggle.textContent = say(isShown ? 'hide' : 'reveal')
    else setIcon(toggle, isShown ? 'hide' : 'eye')
    toggle.ariaLabel = toggle.title = say(labels[isShown ? 1 : 0])
  }
  const show = async (): Promise<void> => {
    toggle.ariaBusy = 'true'
    try {
      const secret = await read()
      if (text.isConnected) set(secret)
    } finally {
      toggle.ariaBusy = null
    }
  }
  code.addEventListener('hide', () => set(undefined))
  toggle.addEventListener('click', () => {
    if (text.classList.contains('revealed')) set(undefined)
    else void show()
  })
  set(undefined)
  return { text, button: toggle, show }
}

export type Act =
  | 'view'
  | 'reveal'
  | 'copy'
  | 'copyNotes'
  | 'copyCode'
  | 'copyUser'
  | 'edit'
  | 'remove'
  | 'restore'
  | 'keepReused'
  | 'keepExposed'

const ICONS = {
  view: 'eye',
  reveal: 'eye',
  copy: 'copy',
  copyCode: 'clock',
  copyUser: 'copy-user',
  edit: 'edit',
  remove: 'delete',
  restore: 'restore'
} as const

export function createRow(entry: Listed, isDeleted: boolean): HTMLElement {
  const {
    sistema,
    usuario,
    url,
    changed,
    reused = 0,
    exposed = 0,
    hasCode,
    deleted,
    deletedBy
  } = entry
  const name = plainText(hostIn(sistema) ?? sistema)
  const cell = (className: string, ...content: readonly (Node | string)[]): HTMLElement =>
    make('div', { className, role: 'gridcell' }, ...content)
  const place = (className: string, ...cells: readonly HTMLElement[]): HTMLElement =>
    make('div', { className, role: 'none' }, ...cells)
  const stop = <T extends HTMLElement>(element: T): T => {
    element.dataset['stop'] = ''
    element.tabIndex = -1
    return element
  }
  const button = (act: keyof typeof ICONS, isOffered: boolean): HTMLElement => {
    const own = iconButton(ICONS[act], say(`${act}Of` satisfies TextName, { name }))
    own.title = say(act)
    own.dataset['act'] = act
    return isOffered ? cell(`act ${act}`, stop(own)) : cell(`act ${act}`)
  }
  const link = isDeleted ? undefined : linkTo(webAddress(sistema) === undefined ? url : sistema)
  const time = isDeleted ? deleted : changed
  const since = make(
    'span',
    { className: 'since', title: time === undefined ? '' : moment(time) },
    age(time, isDeleted),
    ...(deletedBy === undefined ? [] : [` · ${plainText(deletedBy)}`])
  )
  const badge = (
    act: 'keepReused' | 'keepExposed',
    drawing: string,
    text: string,
    count: number
  ): HTMLElement => {
    const made = make(
      'button',
      { type: 'button', className: `badge ${act}`, ariaLabel: text, title: text },
      icon(drawing),
      make('span', { className: 'long' }, text),
      make('span', { className: 'short' }, number(count))
    )
    made.dataset['act'] = act
    return stop(made)
  }
  const badges = isDeleted
    ? []
    : [
        ...(exposed > 0
          ? [badge('keepExposed', 'known', sayCount(exposed, 'exposedOne', 'exposed'), exposed)]
          : []),
        ...(reused > 0
          ? [badge('keepReused', 'same', sayCount(reused, 'reusedOne', 'reused'), reused)]
          : [])
      ]
  const may = (operation: Parameters<typeof rights.may>[0]): boolean =>
    !isDeleted && rights.may(operation)
  const row = make(
    'div',
    { className: 'row', role: 'row' },
    make('div', { className: 'system', role: 'rowheader' }, tileOf(sistema), nameOf(sistema)),
    cell('visit', ...(link === undefined ? [] : [stop(link)])),
    place('user-place', stop(cell('user', userName(usuario))), button('copyUser', !isDeleted)),
    stop(cell('changed', since, ...badges)),
    place(
      'acts',
      button('reveal', may('getPassword')),
      button('edit', may('updatePassword')),
      button('remove', may('deletePassword'))
    ),
    button('copyCode', hasCode && may('oneTimeCode')),
    isDeleted
      ? button('restore', rights.may('restorePassword'))
      : button('copy', may('getPassword'))
  )
  row.dataset['id'] = String(entry.id)
  stop(row.firstElementChild as HTMLElement)
  return row
}

export function stopsOf(row: HTMLElement): readonly HTMLElement[] {
  return [...row.querySelectorAll<HTMLElement>('[data-stop]')].filter(one => one.checkVisibility())
}

export function explainCut({ target }: Event): void {
  const cell = target instanceof Element ? target.closest<HTMLElement>('.system, .user') : null
  const name = cell?.querySelector('bdi')
  if (cell === null || name === null || name === undefined) return
  if (name.scrollWidth > name.clientWidth) cell.title = name.textContent ?? ''
  else cell.removeAttribute('title')
}
