/**
 * The fields of the editor that are more than a text. A typed password is a masked text area: browsers do
 * not offer to store it. The generator writes into the field at once; its options stand below.
 */
import { tell } from './dialogs.ts'
import { grow, iconButton, make, recall, remember, textButton } from './dom.ts'
import type { Field } from './form.ts'
import { bitsOf, characters, type Class, CLASSES, passphrase, type Random } from './generator.ts'
import { languageNow, say, sayCount } from './language.ts'
import { linesIn } from './plain.ts'
import { createSecret, eyeOf } from './secrets.ts'
import { api } from './state.ts'
import type { TextName } from './texts-es.ts'

const MIN_LENGTH = 12
/** Usual substitutes for letters, each with its letter. */
const ALIKE = new Map(
  ['@a', '4a', '0o', '1i', '!i', '3e', '$s', '5s', '7t'].map(pair => [pair[0]!, pair[1]!])
)

const BY_FINGER = matchMedia('(pointer: coarse)')

let common: Promise<ReadonlySet<string>> | undefined

/**
 * A stored secret, as a line with "Show" and "Change", so that no stray key replaces it. Without
 * `read` it cannot be shown.
 */
export function storedLine(
  name: 'password' | 'notas',
  read: (() => Promise<string | undefined>) | undefined,
  onChange: () => void
): HTMLElement {
  const change = textButton('link', say('change'), onChange)
  Object.assign(change, {
    id: `change-${name}`,
    ariaLabel: say(name === 'notas' ? 'changeNotes' : 'changeThis')
  })
  const show = textButton('link', say('reveal'))
  const secret = createSecret(name, read ?? (async () => undefined), show)
  Object.assign(secret.button, { id: `show-${name}`, hidden: read === undefined })
  return make(
    'div',
    { className: 'field' },
    make('span', { className: 'label' }, say(name)),
    make('div', { className: 'stored' }, secret.text, secret.button, change)
  )
}

export function optional(): HTMLElement {
  return make('span', {}, say('optional'))
}

export class PasswordField {
  readonly field: Field
  readonly #input = make('textarea', {
    id: 'password',
    className: 'code masked',
    rows: 1,
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: false,
    dir: 'ltr',
    enterKeyHint: 'done'
  })
  readonly #peek = iconButton('eye', '', () => this.#show(this.#peek.ariaPressed !== 'true'))
  readonly #dice = iconButton('dice', say('generate'))
  readonly #note = make('p', { className: 'hint', role: 'status' })
  readonly #place = make('div')
  #generated: Generated | undefined
  #generator: Generator | undefined
  readonly #look = eyeOf(this.#input, this.#peek, ['reveal', 'hide'], () => this.#show(false))

  /** `onBack` puts the line of the stored password back; undefined for a new entry. */
  constructor(onBack: (() => void) | undefined) {
    this.#peek.id = 'peek'
    this.#dice.id = 'generate'
    this.#dice.addEventListener('click', ({ detail }) => {
      this.#generate()
      // After a mouse, Enter saves; after a key, it generates again; on a phone, letters would
      // cover the options.
      if (detail > 0 && !BY_FINGER.matches) this.#input.focus()
    })
    this.#show(false)
    const back = textButton('link', say('keepOld'), () => {
      this.set('')
      this.#show(false)
      onBack?.()
    })
    back.id = 'keep-old'
    this.field = {
      name: 'password',
      label: say('password'),
      input: this.#input,
      isRequired: true,
      beside: [this.#peek, this.#dice],
      ...(onBack !== undefined && { aside: back }),
      below: [this.#note, this.#place]
    }
    this.#input.addEventListener('input', () => this.#typed())
    this.#input.addEventListener('keydown', event => this.#key(event))
  }

  /** Undefined while the stored password is kept. */
  get typed(): string | undefined {
    return this.#input.isConnected ? this.#input.value : undefined
  }

  /** As if it were typed: the form takes back what it has said of the field. */
  set(text: string): void {
    this.#input.value = text
    this.#input.dispatchEvent(new Event('input', { bubbles: true }))
  }

  focus(): void {
    this.#input.focus()
  }

  #show(isShown: boolean): void {
    this.#look(isShown)
    this.#input.classList.toggle('masked', !isShown)
    this.#peek.ariaPressed = String(isShown)
  }

  #generate(): void {
    if (this.#generator !== undefined) return this.#generator.again()
    this.#generator = createGenerator(generated => this.#take(generated))
    this.#place.replaceChildren(this.#generator.element)
    this.#dice.ariaLabel = this.#dice.title = say('again')
  }

  #take(generated: Generated): void {
    if (this.#input.readOnly || this.#generator === undefined) return
    this.#generated = generated
    this.#show(true)
    this.set(generated.password)
    this.#place.scrollIntoView({ block: 'nearest' })
  }

  /** Enter saves, except in a secret of several lines. */
  #key(event: KeyboardEvent): void {
    if (
      event.key !== 'Enter' ||
      event.shiftKey ||
      event.isComposing ||
      linesIn(this.#input.value) > 1
    )
      return
    event.preventDefault()
    this.#input.form?.requestSubmit()
  }

  /** A password that a person types has no options. */
  #typed(): void {
    const text = this.#input.value
    if (text !== this.#generated?.password) {
      this.#generated = this.#generator = undefined
      this.#place.replaceChildren()
      this.#dice.ariaLabel = this.#dice.title = say('generate')
    }
    grow(this.#input)
    void this.#say(text)
  }

  async #say(text: string): Promise<void> {
    const count = linesIn(text)
    const notes = count > 1 ? [sayCount(count, 'lines', 'lines')] : []
    if (this.#generated?.password === text) notes.push(say(strengthOf(this.#generated.bits)))
    else if (text !== '' && text.length < MIN_LENGTH)
      notes.push(say('short', { count: MIN_LENGTH }))
    else if (text !== '' && (await isCommon(text))) notes.push(say('common'))
    if (this.#input.value !== text) return
    this.#note.textContent = notes.join(' · ')
    const bits = this.#generated?.password === text ? this.#generated.bits : undefined
    this.#note.dataset['strength'] = bits === undefined ? '' : strengthOf(bits)
  }
}

async function isCommon(text: string): Promise<boolean> {
  common ??= api.words('common').then(
    words => new Set(words),
    () => new Set<string>()
  )
  const words = await common
  const plain = text
    .toLowerCase()
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
  const bare = plain.replace(/^[^a-z]+|[^a-z]+$/g, '')
  const lettersOf = (word: string): string => [...word].map(one => ALIKE.get(one) ?? one).join('')
  return [plain, bare, lettersOf(plain).replace(/[^a-z]+/g, ''), lettersOf(bare)].some(one =>
    words.has(one)
  )
}

interface Generated {
  readonly password: string
  readonly bits: number
}

/** By the entropy of what was drawn. */
const STRENGTHS: readonly (readonly [bits: number, text: TextName])[] = [
  [80, 'veryStrong'],
  [64, 'strong'],
  [48, 'fair'],
  [0, 'weak']
]

function strengthOf(bits: number): TextName {
  return STRENGTHS.find(([least]) => bits >= least)![1]
}

interface Generator {
  readonly element: HTMLElement
  again(): void
}

const random: Random = into => crypto.getRandomValues(into)
/** Least, most, start. */
const LENGTHS = { characters: [8, 64, 20], words: [5, 10, 6] } as const
const EXTRAS = ['capital', 'digit'] as const
type Kind = keyof typeof LENGTHS

/** Generates at once, and for each change of the options, which are kept in the address. */
function createGenerator(onGenerated: (generated: Generated) => void): Generator {
  const slider = make('input', { type: 'range', id: 'length' })
  const [length, unit] = [make('output'), make('span')]
  const kinds = choices('radio', 'kind', [
    ['characters', say('characters')],
    ['words', say('words')]
  ])
  const classes = choices('checkbox', 'classes', [
    ['lower', 'a–z'],
    ['upper', 'A–Z'],
    ['digits', '2–9'],
    ['symbols', '#$&…']
  ])
  const extras = choices('checkbox', 'extras', [
    ['capital', say('capital')],
    ['digit', say('digit')]
  ])
  let words: readonly string[] = []
  const kindNow = (): Kind => (checkedIn(kinds).includes('words') ? 'words' : 'characters')

  const generate = (count: number): Generated => {
    if (kindNow() === 'characters') {
      const chosen = checkedIn(classes) as Class[]
      const alphabet = chosen.reduce((sum, name) => sum + CLASSES[name].length, 0)
      return {
        password: characters(count, chosen, random),
        bits: bitsOf(...Array<number>(count).fill(alphabet))
      }
    }
    const [hasCapital, hasDigit] = EXTRAS.map(name => checkedIn(extras).includes(name)) as [
      boolean,
      boolean
    ]
    const draws = Array<number>(count).fill(words.length)
    if (hasCapital) draws.push(count)
    if (hasDigit) draws.push(count * 10)
    return {
      password: passphrase(count, words, { hasCapital, hasDigit }, random),
      bits: bitsOf(...draws)
    }
  }
  const again = (): void => {
    length.value = slider.value
    if (kindNow() === 'words' && words.length === 0) return void tell(say('lostTitle'))
    onGenerated(generate(Number(slider.value)))
  }
  const setKind = async (count: number): Promise<void> => {
    const kind = kindNow()
    const [min, max] = LENGTHS[kind]
    Object.assign(slider, { min, max, value: count })
    unit.textContent = say(kind === 'words' ? 'words' : 'length')
    classes.hidden = kind === 'words'
    extras.hidden = kind !== 'words'
    if (kind === 'words') words = await api.words(`words-${languageNow()}`).catch(() => [])
    again()
  }

  const element = make(
    'fieldset',
    { id: 'generator', className: 'generator' },
    make('legend', { className: 'unseen' }, say('generator')),
    kinds,
    make('label', { className: 'range' }, unit, slider, length),
    classes,
    extras
  )
  element.addEventListener('input', async ({ target }) => {
    if (!(target instanceof HTMLInputElement)) return
    if (checkedIn(classes).length === 0) target.checked = true
    await setKind(target.type === 'radio' ? LENGTHS[kindNow()][2] : Number(slider.value))
    remember(
      'generator',
      [kindNow(), slider.value, ...checkedIn(classes), ...checkedIn(extras)].join('.')
    )
  })
  // The address may hold nonsense.
  const [kind = '', count, ...chosen] = (recall('generator') ?? '').split('.')
  const known = Object.keys(CLASSES).filter(name => chosen.includes(name))
  check(kinds, [kind === 'words' ? kind : 'characters'])
  check(classes, known.length > 0 ? known : Object.keys(CLASSES))
  check(extras, chosen)
  // After the field knows its generator.
  queueMicrotask(() => void setKind(Number(count) || LENGTHS[kindNow()][2]))
  return { element, again }
}

function choices(
  type: 'radio' | 'checkbox',
  name: 'kind' | 'classes' | 'extras',
  all: readonly (readonly [string, string])[]
): HTMLElement {
  const labels = all.map(([value, text]) =>
    make(
      'label',
      {},
      make('input', { type, value, name: `generator-${name}` }),
      make('span', {}, text)
    )
  )
  const role = type === 'radio' ? 'radiogroup' : 'group'
  return make('div', { className: 'choice', role, ariaLabel: say(name) }, ...labels)
}

function inputsIn(group: HTMLElement): readonly HTMLInputElement[] {
  return [...group.querySelectorAll('input')]
}

function checkedIn(group: HTMLElement): readonly string[] {
  return inputsIn(group)
    .filter(input => input.checked)
    .map(({ value }) => value)
}

function check(group: HTMLElement, values: readonly string[]): void {
  for (const input of inputsIn(group)) input.checked = values.includes(input.value)
}

/** The key is set, replaced or removed, and never shown again. */
export class CodeField {
  readonly field: Field
  readonly #input = make('input', {
    id: 'otp',
    className: 'code masked',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: false,
    dir: 'ltr',
    placeholder: 'otpauth://totp/…'
  })
  readonly #line = make('div', { className: 'field' })
  #state: 'kept' | 'typed' | 'removed' = 'typed'
  #place: Element | null = null

  constructor(isSet: boolean) {
    const aside = isSet ? this.#button('keep-typed', 'keepCode', () => this.putAway()) : optional()
    this.field = { name: 'otp', label: say('oneTimeKey'), input: this.#input, aside }
  }

  /** Undefined without a change; empty if it is removed. */
  get typed(): string | undefined {
    if (this.#state === 'removed') return ''
    return this.#state === 'typed' && this.#input.value !== '' ? this.#input.value : undefined
  }

  set(text: string): void {
    this.#input.value = text
  }

  /** A line in place of the field. */
  putAway(): void {
    this.#input.value = ''
    const replace = this.#button('replace-code', 'replace', () => this.#replace())
    this.#show('kept', say('codeIsSet'), [
      replace,
      this.#button('remove-code', 'removeCode', () => this.#remove())
    ])
  }

  #remove(): void {
    this.#show('removed', say('codeRemoved'), [
      this.#button('keep-code', 'keepCode', () => this.putAway())
    ])
  }

  #replace(): void {
    this.#state = 'typed'
    if (this.#place !== null) this.#line.replaceWith(this.#place)
    this.#input.focus()
  }

  #button(
    id: string,
    text: 'replace' | 'removeCode' | 'keepCode',
    onclick: () => void
  ): HTMLElement {
    return Object.assign(textButton('link', say(text), onclick), { id })
  }

  #show(state: 'kept' | 'removed', text: string, buttons: readonly HTMLElement[]): void {
    this.#state = state
    this.#place ??= this.#input.closest('.field')
    const hadFocus =
      this.#line.contains(document.activeElement) || this.#place?.contains(document.activeElement)
    this.#line.replaceChildren(
      make('span', { className: 'label' }, say('oneTimeCode')),
      make('div', { className: 'stored' }, make('span', { className: 'secret' }, text), ...buttons)
    )
    this.#place?.replaceWith(this.#line)
    if (hadFocus === true) buttons[0]?.focus()
  }
}
