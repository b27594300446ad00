/**
 * The password in the editor. A stored password is a line with "Show" and "Change": no key can replace it. A typed
 * password is a masked text area: browsers do not offer to store it.
 */
import { grow, iconButton, make, recall, remember, setIcon, textButton } from './dom.ts'
import type { Field } from './form.ts'
import { bitsOf, characters, CLASSES, passphrase, type Class, type Random } from './generator.ts'
import { languageNow, say, sayCount } from './language.ts'
import { linesIn } from './plain.ts'
import { createSecret, REVEALED_MS } from './showing.ts'
import { api } from './state.ts'

const MIN_LENGTH = 12
/** Usual substitutes for letters. */
const ALIKE: { readonly [character: string]: string } =
  { '@': 'a', '4': 'a', '0': 'o', '1': 'i', '!': 'i', '3': 'e', '$': 's', '5': 's', '7': 't' }

let common: Promise<ReadonlySet<string>> | undefined

export class PasswordField {
  readonly field: Field
  readonly #input = make('textarea', {
    id: 'password', className: 'code masked', rows: 1, autocomplete: 'off', autocapitalize: 'off', spellcheck: false,
    dir: 'ltr', enterKeyHint: 'done'
  })
  readonly #peek = iconButton('eye', '', () => this.#show(this.#peek.ariaPressed !== 'true'))
  readonly #dice = iconButton('dice', say('generate'), () => this.#toggleGenerator())
  readonly #note = make('p', { className: 'hint', role: 'status' })
  readonly #place = make('div')
  readonly #stored: string | undefined
  #generated: Generated | undefined
  #generator: Generator | undefined
  #hiding: ReturnType<typeof setTimeout> | undefined

  /** `stored` is undefined for a new entry. */
  constructor(stored: string | undefined, onKeep: () => void) {
    this.#stored = stored
    this.#peek.id = 'peek'
    Object.assign(this.#dice, { id: 'generate', ariaExpanded: 'false' })
    this.#show(false)
    const keep = textButton('link', say('keepOld'), () => {
      if (this.isGenerating) this.#toggleGenerator()
      this.set('')
      this.#show(false)
      onKeep()
    })
    Object.assign(keep, { id: 'keep-old', hidden: stored === undefined })
    this.field = {
      name: 'password', label: say('password'), input: this.#input, isRequired: true,
      beside: [this.#peek, this.#dice], below: [this.#note, keep, this.#place]
    }
    this.#input.addEventListener('input', () => this.#typed())
    this.#input.addEventListener('keydown', event => this.#key(event))
  }

  line(isReadable: boolean, onChange: () => void): HTMLElement {
    const change = textButton('link', say('change'), onChange)
    Object.assign(change, { id: 'change', ariaLabel: say('changeThis') })
    const { text, button } = createSecret({ read: () => this.#stored ?? '' }, textButton('link', say('reveal')))
    Object.assign(button, { id: 'show-stored', hidden: !isReadable })
    return make('div', { className: 'field' }, make('span', { className: 'label' }, say('password')),
      make('div', { className: 'stored' }, text, button, change))
  }

  /** Undefined while the stored password is kept. */
  get typed(): string | undefined { return this.#input.isConnected ? this.#input.value : undefined }

  get isGenerating(): boolean { return this.#generator !== undefined }

  set(text: string): void {
    this.#input.value = text
    this.#typed()
  }

  focus(): void { this.#input.focus() }

  useGenerated(): void { this.#generator?.use() }

  /** False if it was not open. */
  closeGenerator(): boolean {
    if (!this.isGenerating) return false
    this.#toggleGenerator()
    this.#dice.focus()
    return true
  }

  #show(isShown: boolean): void {
    clearTimeout(this.#hiding)
    if (isShown) this.#hiding = setTimeout(() => this.#show(false), REVEALED_MS)
    this.#input.classList.toggle('masked', !isShown)
    this.#peek.ariaPressed = String(isShown)
    this.#peek.ariaLabel = this.#peek.title = say(isShown ? 'hide' : 'reveal')
    setIcon(this.#peek, isShown ? 'hide' : 'eye')
  }

  #toggleGenerator(): void {
    this.#generator = this.isGenerating ? undefined : createGenerator(generated => this.#use(generated))
    this.#dice.ariaExpanded = String(this.isGenerating)
    this.#place.replaceChildren(...this.#generator === undefined ? [] : [this.#generator.element])
    this.#generator?.element.scrollIntoView({ block: 'nearest' })
  }

  #use(generated: Generated | undefined): void {
    this.closeGenerator()
    if (generated === undefined || this.#input.readOnly) return
    this.#generated = generated
    this.set(generated.password)
    this.#show(true)
    this.focus()
  }

  /** Enter saves, except in a secret of several lines. */
  #key(event: KeyboardEvent): void {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || linesIn(this.#input.value) > 1) return
    event.preventDefault()
    this.#input.form?.requestSubmit()
  }

  #typed(): void {
    grow(this.#input)
    void this.#say(this.#input.value)
  }

  async #say(text: string): Promise<void> {
    const count = linesIn(text)
    const notes = count > 1 ? [sayCount(count, 'lines', 'lines')] : []
    if (this.#generated?.password === text && text !== '') notes.push(say('bits', { bits: this.#generated.bits }))
    else if (text !== '' && text.length < MIN_LENGTH) notes.push(say('short', { count: MIN_LENGTH }))
    else if (text !== '' && await isCommon(text)) notes.push(say('common'))
    if (this.#input.value === text) this.#note.textContent = notes.join(' · ')
  }
}

async function isCommon(text: string): Promise<boolean> {
  common ??= api.words('common').then(words => new Set(words), () => new Set<string>())
  const words = await common
  const plain = text.toLowerCase().normalize('NFD').replace(/\p{M}+/gu, '')
  const bare = plain.replace(/^[^a-z]+|[^a-z]+$/g, '')
  const lettersOf = (word: string): string => [...word].map(one => ALIKE[one] ?? one).join('')
  return [plain, bare, lettersOf(plain).replace(/[^a-z]+/g, ''), lettersOf(bare)].some(one => words.has(one))
}

interface Generated {
  readonly password: string
  readonly bits: number
}

interface Generator {
  readonly element: HTMLElement
  use(): void
}

const random: Random = into => crypto.getRandomValues(into)
/** Least, most, start. */
const LENGTHS = { characters: [8, 64, 20], words: [5, 10, 6] } as const
const EXTRAS = ['capital', 'digit'] as const
type Kind = keyof typeof LENGTHS

/** Its options are kept in the address. */
function createGenerator(onUse: (generated: Generated | undefined) => void): Generator {
  const slider = make('input', { type: 'range', id: 'length' })
  const proposal = make('output', { id: 'proposal', className: 'code', dir: 'ltr' })
  const bits = make('p', { id: 'bits', className: 'hint' })
  const [length, unit] = [make('output'), make('span')]
  const kinds = choices('radio', 'kind', [['characters', say('characters')], ['words', say('words')]])
  const classes = choices('checkbox', 'classes',
    [['lower', 'a–z'], ['upper', 'A–Z'], ['digits', '2–9'], ['symbols', '#$&…']])
  const extras = choices('checkbox', 'extras', [['capital', say('capital')], ['digit', say('digit')]])
  let words: readonly string[] = []
  let generated: Generated = { password: '', bits: 0 }
  const kindNow = (): Kind => checkedIn(kinds).includes('words') ? 'words' : 'characters'

  const generate = (count: number): Generated => {
    if (kindNow() === 'characters') {
      const chosen = checkedIn(classes) as Class[]
      const alphabet = chosen.reduce((sum, name) => sum + CLASSES[name].length, 0)
      return { password: characters(count, chosen, random), bits: bitsOf(...Array<number>(count).fill(alphabet)) }
    }
    if (words.length === 0) return { password: '', bits: 0 }
    const [hasCapital, hasDigit] = EXTRAS.map(name => checkedIn(extras).includes(name)) as [boolean, boolean]
    const draws = Array<number>(count).fill(words.length)
    if (hasCapital) draws.push(count)
    if (hasDigit) draws.push(count * 10)
    return { password: passphrase(count, words, { hasCapital, hasDigit }, random), bits: bitsOf(...draws) }
  }
  const propose = (): void => {
    length.value = slider.value
    generated = generate(Number(slider.value))
    proposal.value = generated.password === '' ? say('lostTitle') : generated.password
    bits.textContent = say('bits', { bits: generated.bits })
  }
  const setKind = async (count: number): Promise<void> => {
    const kind = kindNow()
    const [min, max] = LENGTHS[kind]
    Object.assign(slider, { min, max, value: count })
    unit.textContent = say(kind === 'words' ? 'words' : 'length')
    classes.hidden = kind === 'words'
    extras.hidden = kind !== 'words'
    if (kind === 'words') words = await api.words(`words-${languageNow()}`).catch(() => [])
    propose()
  }
  const use = (): void => { if (generated.password !== '') onUse(generated) }

  const again = Object.assign(iconButton('renew', say('again'), propose), { id: 'again' })
  const element = make('fieldset', { id: 'generator', className: 'generator' }, make('legend', {}, say('generator')),
    make('div', { className: 'proposal' }, proposal, again), bits, kinds,
    make('label', { className: 'range' }, unit, slider, length), classes, extras,
    make('div', { className: 'use' }, textButton('second', say('back'), () => onUse(undefined)),
      Object.assign(textButton('main', say('use'), use), { id: 'use' })))
  element.addEventListener('input', async ({ target }) => {
    if (!(target instanceof HTMLInputElement)) return
    if (checkedIn(classes).length === 0) target.checked = true
    await setKind(target.type === 'radio' ? LENGTHS[kindNow()][2] : Number(slider.value))
    remember('generator', [kindNow(), slider.value, ...checkedIn(classes), ...checkedIn(extras)].join('.'))
  })
  // The address may hold nonsense.
  const [kind = '', count, ...chosen] = (recall('generator') ?? '').split('.')
  const known = Object.keys(CLASSES).filter(name => chosen.includes(name))
  check(kinds, [kind === 'words' ? kind : 'characters'])
  check(classes, known.length > 0 ? known : Object.keys(CLASSES))
  check(extras, chosen)
  void setKind(Number(count) || LENGTHS[kindNow()][2])
  return { element, use }
}

function choices(
  type: 'radio' | 'checkbox', name: 'kind' | 'classes' | 'extras', all: readonly (readonly [string, string])[]
): HTMLElement {
  const labels = all.map(([value, text]) =>
    make('label', {}, make('input', { type, value, name: `generator-${name}` }), make('span', {}, text)))
  const role = type === 'radio' ? 'radiogroup' : 'group'
  return make('div', { className: 'choice', role, ariaLabel: say(name) }, ...labels)
}

function inputsIn(group: HTMLElement): readonly HTMLInputElement[] { return [...group.querySelectorAll('input')] }

function checkedIn(group: HTMLElement): readonly string[] {
  return inputsIn(group).filter(input => input.checked).map(({ value }) => value)
}

function check(group: HTMLElement, values: readonly string[]): void {
  for (const input of inputsIn(group)) input.checked = values.includes(input.value)
}
