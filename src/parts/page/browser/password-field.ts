/**
 * The password of an entry in the editor. One that is stored is a line with "Show" and "Change": no key can replace it,
 * and it is in the document only while it is shown. One that is typed is a masked field that keeps line breaks and
 * grows with them; it is never of the type that browsers offer to keep.
 */
import { iconButton, make, recall, remember, setIcon, textButton } from './dom.ts'
import type { Field } from './form.ts'
import { bitsOf, characters, CLASSES, passphrase, type Class, type Random } from './generator.ts'
import { languageNow, say, sayCount } from './language.ts'
import { linesIn } from './plain.ts'
import { createSecret, REVEALED_MS } from './showing.ts'
import { api } from './state.ts'

/** Shorter ones are warned of. */
const MIN_LENGTH = 12
/** What is written for a letter. */
const ALIKE: { readonly [character: string]: string } =
  { '@': 'a', '4': 'a', '0': 'o', '1': 'i', '!': 'i', '3': 'e', '$': 's', '5': 's', '7': 't' }

let common: Promise<ReadonlySet<string>> | undefined

export class PasswordField {
  readonly field: Field
  /** The line of the stored password, or the field. */
  readonly element: HTMLElement = make('div', { className: 'field-place' })
  readonly #input = make('textarea', {
    id: 'password', className: 'code masked', rows: 1, autocomplete: 'off', autocapitalize: 'off', spellcheck: false,
    dir: 'ltr', enterKeyHint: 'done'
  })
  readonly #peek = iconButton('eye', say('reveal'), () => this.#show(this.#peek.ariaPressed !== 'true'))
  readonly #dice = iconButton('dice', say('generate'), () => this.#toggleGenerator())
  readonly #note = make('p', { className: 'hint', role: 'status' })
  readonly #place = make('div')
  readonly #stored: string | undefined
  #generated: Generated | undefined
  #generator: Generator | undefined
  #hiding: ReturnType<typeof setTimeout> | undefined

  /** `stored` is the password of the entry; undefined for a new one. */
  constructor(stored: string | undefined, onKeep: () => void) {
    this.#stored = stored
    Object.assign(this.#peek, { id: 'peek', ariaPressed: 'false' })
    Object.assign(this.#dice, { id: 'generate', ariaExpanded: 'false' })
    const keep = Object.assign(textButton('link', say('keepOld'), () => {
      this.#clear()
      onKeep()
    }), { id: 'keep-old', hidden: stored === undefined })
    this.field = {
      name: 'password', label: say('password'), input: this.#input, isRequired: true,
      beside: [this.#peek, this.#dice], below: [this.#note, keep, this.#place]
    }
    this.#input.addEventListener('input', () => this.#typed())
    this.#input.addEventListener('keydown', event => this.#key(event))
  }

  /** The line of the stored password; `onChange` is called by its button. */
  line(isReadable: boolean, onChange: () => void): HTMLElement {
    const change = textButton('link', say('change'), onChange)
    Object.assign(change, { id: 'change', ariaLabel: say('changeThis') })
    const { text, button } = createSecret({ read: () => this.#stored ?? '' }, textButton('link', say('reveal')))
    button.id = 'show-stored'
    button.hidden = !isReadable
    return make('div', { className: 'field' }, make('span', { className: 'label' }, say('password')),
      make('div', { className: 'stored' }, text, button, change))
  }

  /** What was typed; undefined as long as the stored password is kept. */
  get typed(): string | undefined { return this.#input.isConnected ? this.#input.value : undefined }

  /** Whether the generator is open, which takes Enter. */
  get isGenerating(): boolean { return this.#generator !== undefined }

  /** Puts back what was typed before. */
  set(text: string): void {
    this.#input.value = text
    this.#typed()
  }

  focus(): void { this.#input.focus() }

  /** Takes what the generator proposes. */
  useGenerated(): void { this.#generator?.use() }

  /** Closes the generator; false if it was not open. */
  closeGenerator(): boolean {
    if (this.#generator === undefined) return false
    this.#toggleGenerator()
    this.#dice.focus()
    return true
  }

  #clear(): void {
    if (this.#generator !== undefined) this.#toggleGenerator()
    this.set('')
    this.#show(false)
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
    const isOpen = this.#generator === undefined
    this.#generator = isOpen ? new Generator(generated => this.#use(generated)) : undefined
    this.#dice.ariaExpanded = String(isOpen)
    this.#place.replaceChildren(...this.#generator === undefined ? [] : [this.#generator.element])
    this.#generator?.element.scrollIntoView({ block: 'nearest' })
  }

  #use(generated: Generated | undefined): void {
    if (this.#generator !== undefined) this.#toggleGenerator()
    if (generated === undefined) return this.#dice.focus()
    if (this.#input.readOnly) return
    this.#generated = generated
    this.set(generated.password)
    this.#show(true)
    this.focus()
  }

  /** Enter saves, but within a secret of several lines, and with Shift. */
  #key(event: KeyboardEvent): void {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || linesIn(this.#input.value) > 1) return
    event.preventDefault()
    this.#input.form?.requestSubmit()
  }

  #typed(): void {
    this.#input.style.blockSize = 'auto'
    const { scrollHeight, offsetHeight, clientHeight } = this.#input
    if (scrollHeight > 0) this.#input.style.blockSize = `${scrollHeight + offsetHeight - clientHeight}px`
    void this.#say(this.#input.value)
  }

  /** How many lines there are; what was generated has its bits; what was typed, a warning. */
  async #say(text: string): Promise<void> {
    const count = linesIn(text)
    const notes = count > 1 ? [sayCount(count, 'lines', 'lines')] : []
    if (this.#generated?.password === text && text !== '') notes.push(say('bits', { bits: this.#generated.bits }))
    else if (text !== '' && text.length < MIN_LENGTH) notes.push(say('short', { count: MIN_LENGTH }))
    else if (text !== '' && await isCommon(text)) notes.push(say('common'))
    if (this.#input.value === text) this.#note.textContent = notes.join(' · ')
  }
}

/** Whether a password is one of the commonest words, with digits and symbols around it or for its letters. */
async function isCommon(text: string): Promise<boolean> {
  common ??= api.words('common').then(words => new Set(words), () => new Set<string>())
  const words = await common
  const plain = text.toLowerCase().normalize('NFD').replace(/\p{M}+/gu, '')
  const bare = plain.replace(/^[^a-z]+|[^a-z]+$/g, '')
  const letters = [...plain].map(one => ALIKE[one] ?? one).join('').replace(/[^a-z]+/g, '')
  return [plain, bare, letters, [...bare].map(one => ALIKE[one] ?? one).join('')].some(one => words.has(one))
}

const random: Random = into => crypto.getRandomValues(into)

/** What the slider means for each kind: least, most, and where it starts. */
const LENGTHS = { characters: [8, 64, 20], words: [4, 10, 6] } as const
const EXTRAS = ['capital', 'digit'] as const

type Kind = keyof typeof LENGTHS

/** What was generated, and how many bits there are to guess in it. */
export interface Generated {
  readonly password: string
  readonly bits: number
}

/** The panel of the generator; `onUse` gets what was chosen, undefined if nothing was. */
class Generator {
  readonly element: HTMLElement
  readonly #onUse: (generated: Generated | undefined) => void
  readonly #slider = make('input', { type: 'range', id: 'length' })
  readonly #proposal = make('output', { id: 'proposal', className: 'code', dir: 'ltr' })
  readonly #bits = make('span', { id: 'bits' })
  readonly #length = make('output')
  readonly #unit = make('span')
  readonly #classes: HTMLElement
  readonly #extras: HTMLElement
  readonly #kinds: HTMLElement
  #words: readonly string[] = []
  #generated: Generated = { password: '', bits: 0 }

  constructor(onUse: (generated: Generated | undefined) => void) {
    this.#onUse = onUse
    this.#kinds = choices('radio', 'kind', [['characters', say('characters')], ['words', say('words')]])
    this.#classes = choices('checkbox', 'classes',
      [['lower', 'a–z'], ['upper', 'A–Z'], ['digits', '2–9'], ['symbols', '#$&…']])
    this.#extras = choices('checkbox', 'extras', [['capital', say('capital')], ['digit', say('digit')]])
    this.#recall()
    this.element = make('fieldset', { id: 'generator', className: 'generator' },
      make('legend', {}, say('generator')),
      make('div', { className: 'proposal' }, this.#proposal,
        Object.assign(iconButton('renew', say('again'), () => this.#propose()), { id: 'again' })),
      make('p', { className: 'hint' }, this.#bits), this.#kinds,
      make('label', { className: 'range' }, this.#unit, this.#slider, this.#length),
      this.#classes, this.#extras,
      make('div', { className: 'use' }, textButton('second', say('back'), () => onUse(undefined)),
        Object.assign(textButton('main', say('use'), () => this.use()), { id: 'use' })))
    this.element.addEventListener('input', ({ target }) => void this.#changed(target))
    void this.#setKind(this.#kind(), Number(this.#slider.value))
  }

  /** Takes what is proposed. */
  use(): void { if (this.#generated.password !== '') this.#onUse(this.#generated) }

  #kind(): Kind { return checkedIn(this.#kinds).includes('words') ? 'words' : 'characters' }

  async #changed(target: EventTarget | null): Promise<void> {
    if (!(target instanceof HTMLInputElement)) return
    // One class is always left.
    if (checkedIn(this.#classes).length === 0) target.checked = true
    const isKind = target.type === 'radio'
    await this.#setKind(this.#kind(), isKind ? LENGTHS[this.#kind()][2] : Number(this.#slider.value))
    const chosen = [...checkedIn(this.#classes), ...checkedIn(this.#extras)]
    remember('generator', [this.#kind(), this.#slider.value, ...chosen].join('.'))
  }

  async #setKind(kind: Kind, length: number): Promise<void> {
    const [least, most] = LENGTHS[kind]
    Object.assign(this.#slider, { min: least, max: most, value: length })
    this.#unit.textContent = say(kind === 'words' ? 'words' : 'length')
    this.#classes.hidden = kind === 'words'
    this.#extras.hidden = kind !== 'words'
    if (kind === 'words') this.#words = await api.words(`words-${languageNow()}`).catch(() => [])
    this.#propose()
  }

  #propose(): void {
    const length = Number(this.#slider.value)
    this.#length.value = String(length)
    this.#generated = this.#kind() === 'words' ? this.#phrase(length) : this.#characters(length)
    const { password, bits } = this.#generated
    this.#proposal.value = password === '' ? say('lostTitle') : password
    this.#bits.textContent = say('bits', { bits })
  }

  #characters(length: number): Generated {
    const classes = checkedIn(this.#classes) as Class[]
    const alphabet = classes.reduce((sum, name) => sum + CLASSES[name].length, 0)
    return { password: characters(length, classes, random), bits: bitsOf(...Array<number>(length).fill(alphabet)) }
  }

  #phrase(length: number): Generated {
    if (this.#words.length === 0) return { password: '', bits: 0 }
    const chosen = checkedIn(this.#extras)
    const extras = { hasCapital: chosen.includes('capital'), hasDigit: chosen.includes('digit') }
    const draws = Array<number>(length).fill(this.#words.length)
    if (extras.hasCapital) draws.push(length)
    if (extras.hasDigit) draws.push(length * 10)
    return { password: passphrase(length, this.#words, extras, random), bits: bitsOf(...draws) }
  }

  /** Takes the options from the address, as far as they make sense. */
  #recall(): void {
    const [kind = '', length, ...chosen] = (recall('generator') ?? '').split('.')
    const isKnown = kind === 'characters' || kind === 'words'
    const known = Object.keys(CLASSES).filter(name => chosen.includes(name))
    check(this.#kinds, [isKnown ? kind : 'characters'])
    check(this.#classes, known.length > 0 ? known : Object.keys(CLASSES))
    check(this.#extras, EXTRAS.filter(name => chosen.includes(name)))
    const [least, most, usual] = LENGTHS[this.#kind()]
    Object.assign(this.#slider, { min: least, max: most, value: Number(length) || usual })
  }
}

/** Boxes or radio buttons that look like buttons. */
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
