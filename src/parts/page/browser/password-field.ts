/**
 * The password in the editor. A typed password is a masked text area: browsers do not offer to
 * store it. The generator writes into the field at once; its options stand below.
 */
import { tell } from './dialogs.ts'
import { grow, iconButton, make, recall, remember, setIcon, textButton } from './dom.ts'
import type { Field } from './form.ts'
import { bitsOf, characters, CLASSES, passphrase, type Class, type Random } from './generator.ts'
import { languageNow, say, sayCount } from './language.ts'
import { linesIn } from './plain.ts'
import { createSecret, hideLater } from './showing.ts'
import { api } from './state.ts'
import type { TextName } from './texts.ts'

const MIN_LENGTH = 12
/** Usual substitutes for letters. */
const ALIKE: { readonly [character: string]: string } = {
  '@': 'a',
  '4': 'a',
  '0': 'o',
  '1': 'i',
  '!': 'i',
  '3': 'e',
  '$': 's',
  '5': 's',
  '7': 't'
}

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
  const secret = createSecret(
    { isNotes: name === 'notas', read: read ?? (async () => undefined) },
    textButton('link', say('reveal'))
  )
  Object.assign(secret.button, { id: `show-${name}`, hidden: read === undefined })
  return make(
    'div',
    { className: 'field' },
    make('span', { className: 'label' }, say(name)),
    make('div', { className: 'stored' }, secret.text, secret.button, change)
  )
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
  #hiding: ReturnType<typeof setTimeout> | undefined

  /** `onKeep` puts the line of the stored password back; undefined for a new entry. */
  constructor(onKeep: (() => void) | undefined) {
    this.#peek.id = 'peek'
    this.#dice.id = 'generate'
    this.#dice.addEventListener('click', ({ detail }) => {
      this.#generate()
      // After a mouse, Enter saves; after a key, it generates again; on a phone, letters would
      // cover the options.
      if (detail > 0 && !BY_FINGER.matches) this.#input.focus()
    })
    this.#show(false)
    const keep = textButton('link', say('keepOld'), () => {
      this.set('')
      this.#show(false)
      onKeep?.()
    })
    Object.assign(keep, { id: 'keep-old', hidden: onKeep === undefined })
    this.field = {
      name: 'password',
      label: say('password'),
      input: this.#input,
      isRequired: true,
      beside: [this.#peek, this.#dice],
      below: [this.#note, this.#place, keep]
    }
    this.#input.addEventListener('input', () => this.#typed())
    this.#input.addEventListener('keydown', event => this.#key(event))
    this.#input.addEventListener('hide', () => this.#show(false))
  }

  /** Undefined while the stored password is kept. */
  get typed(): string | undefined {
    return this.#input.isConnected ? this.#input.value : undefined
  }

  set(text: string): void {
    this.#input.value = text
    this.#typed()
  }

  focus(): void {
    this.#input.focus()
  }

  #show(isShown: boolean): void {
    clearTimeout(this.#hiding)
    if (isShown) this.#hiding = hideLater(this.#input)
    this.#input.classList.toggle('masked', !isShown)
    this.#peek.ariaPressed = String(isShown)
    this.#peek.ariaLabel = this.#peek.title = say(isShown ? 'hide' : 'reveal')
    setIcon(this.#peek, isShown ? 'hide' : 'eye')
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
    if (this.#input.value === text) this.#note.textContent = notes.join(' · ')
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
  const lettersOf = (word: string): string => [...word].map(one => ALIKE[one] ?? one).join('')
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
