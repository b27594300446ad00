/**
 * The password of an entry in the editor. One that is stored is a line with "Show" and "Change": no key can replace it,
 * and it is in the document only while it is shown. One that is typed is a masked field that keeps line breaks and
 * grows with them; it is never of the type that browsers offer to keep.
 */
import { iconButton, make, setIcon, textButton } from './dom.ts'
import type { Field } from './form.ts'
import { createGenerator, type Generated, type Generator } from './generator-panel.ts'
import { say, sayCount } from './language.ts'
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

  /** `stored` is the password of the entry; undefined for a new one. */
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

  /** The line of the stored password; `onChange` is called by its button. */
  line(isReadable: boolean, onChange: () => void): HTMLElement {
    const change = textButton('link', say('change'), onChange)
    Object.assign(change, { id: 'change', ariaLabel: say('changeThis') })
    const { text, button } = createSecret({ read: () => this.#stored ?? '' }, textButton('link', say('reveal')))
    Object.assign(button, { id: 'show-stored', hidden: !isReadable })
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
  const lettersOf = (word: string): string => [...word].map(one => ALIKE[one] ?? one).join('')
  return [plain, bare, lettersOf(plain).replace(/[^a-z]+/g, ''), lettersOf(bare)].some(one => words.has(one))
}
