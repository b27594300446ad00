/** The generator's part of the dialog. It remembers its options, never a password. */
import { recall, remember } from './address.ts'
import { find } from './dom.ts'
import { bitsOf, characters, CLASSES, passphrase, type Class, type Random } from './generator.ts'
import { inEachLanguage, say } from './language.ts'
import { ENGLISH_WORDS, SPANISH_WORDS } from './words.ts'

const random: Random = into => crypto.getRandomValues(into)

/** What the slider means for each kind: least, most, and where it starts; both start at what counts as strong. */
const LENGTHS = { characters: [8, 64, 20], words: [4, 14, 9] } as const
const CLASS_NAMES = Object.keys(CLASSES) as readonly Class[]

type Kind = keyof typeof LENGTHS

/** The panel of the generator. */
export class Generator {
  readonly #panel = find(HTMLFieldSetElement, '#generator')
  readonly #slider = find(HTMLInputElement, '#length')
  readonly #classes = find(HTMLElement, '#classes')
  readonly #proposal = find(HTMLOutputElement, '#proposal')

  constructor() {
    this.#recall()
    find(HTMLButtonElement, '#again').addEventListener('click', () => this.#propose())
    this.#panel.addEventListener('input', ({ target }) => {
      if (!(target instanceof HTMLInputElement)) return
      if (target.type === 'radio') this.#setKind(this.#kind())
      // One class is always left.
      if (this.#chosen().length === 0) target.checked = true
      remember('generator', [this.#kind(), this.#slider.value, ...this.#chosen()].join('.'))
      this.#propose()
    })
    inEachLanguage(() => { if (!this.#panel.hidden) this.show(true) })
  }

  /** The password that it proposes. */
  get password(): string { return this.#proposal.value }

  /** Opens or closes it; a closed one holds no password. */
  show(isShown: boolean): void {
    this.#panel.hidden = !isShown
    this.#proposal.value = ''
    if (!isShown) return
    this.#setKind(this.#kind(), Number(this.#slider.value))
    this.#propose()
    this.#panel.scrollIntoView({ block: 'nearest' })
  }

  #kind(): Kind { return find(HTMLInputElement, 'input[value=words]', this.#panel).checked ? 'words' : 'characters' }

  #chosen(): readonly Class[] {
    return [...this.#classes.querySelectorAll<HTMLInputElement>('input:checked')].map(box => box.value as Class)
  }

  #setKind(kind: Kind, length: number = LENGTHS[kind][2]): void {
    const [least, most] = LENGTHS[kind]
    Object.assign(this.#slider, { min: least, max: most, value: length })
    this.#classes.hidden = kind === 'words'
    find(HTMLElement, '.range span', this.#panel).textContent = say(kind === 'words' ? 'words' : 'length')
  }

  #propose(): void {
    const length = Number(this.#slider.value)
    const isWords = this.#kind() === 'words'
    const words = document.documentElement.lang === 'es' ? SPANISH_WORDS : ENGLISH_WORDS
    this.#proposal.value = isWords ? passphrase(length, words, random) : characters(length, this.#chosen(), random)
    const choices = isWords ? words.length : this.#chosen().reduce((sum, name) => sum + CLASSES[name].length, 0)
    const bits = bitsOf(length, choices)
    find(HTMLMeterElement, '#strength').value = Math.min(bits, 128)
    find(HTMLElement, '#bits').textContent = say('bits', { bits })
    find(HTMLOutputElement, '.range output', this.#panel).value = String(length)
  }

  /** Takes the options from the address, as far as they make sense. */
  #recall(): void {
    const [kind, length, ...classes] = (recall('generator') ?? '').split('.')
    if (kind !== 'characters' && kind !== 'words') return
    find(HTMLInputElement, `input[value=${kind}]`, this.#panel).checked = true
    const known = CLASS_NAMES.filter(name => classes.includes(name))
    for (const box of this.#classes.querySelectorAll('input')) {
      box.checked = known.length === 0 || known.includes(box.value as Class)
    }
    this.#setKind(kind, Number(length) || LENGTHS[kind][2])
  }
}
