/** The generator's part of the dialog. */
import { find } from './dom.ts'
import { bitsOf, characters, CLASSES, passphrase, type Class, type Random } from './generator.ts'
import { inEachLanguage, say } from './language.ts'
import { ENGLISH_WORDS, SPANISH_WORDS } from './words.ts'

const random: Random = into => crypto.getRandomValues(into)

/** What the slider means for each kind: least, most, and where it starts. */
const LENGTHS = { characters: [8, 64, 20], words: [4, 12, 7] } as const

/** Starts it; `use` gets the password that the person has chosen. Gives the function that closes it. */
export function startGenerator(use: (password: string) => void): () => void {
  const button = find(HTMLButtonElement, '#generate')
  const panel = find(HTMLFieldSetElement, '#generator')
  const slider = find(HTMLInputElement, '#length')
  const classes = find(HTMLElement, '#classes')
  const proposal = find(HTMLOutputElement, '#proposal')

  const kind = (): keyof typeof LENGTHS =>
    find(HTMLInputElement, 'input[value=words]', panel).checked ? 'words' : 'characters'
  const chosen = (): readonly Class[] =>
    [...classes.querySelectorAll<HTMLInputElement>('input:checked')].map(box => box.value as Class)
  const words = (): readonly string[] => document.documentElement.lang === 'es' ? SPANISH_WORDS : ENGLISH_WORDS

  const propose = (): void => {
    const length = Number(slider.value)
    const isWords = kind() === 'words'
    proposal.value = isWords ? passphrase(length, words(), random) : characters(length, chosen(), random)
    const choices = isWords ? words().length : chosen().reduce((sum, name) => sum + CLASSES[name].length, 0)
    const bits = bitsOf(length, choices)
    find(HTMLMeterElement, '#strength').value = Math.min(bits, 128)
    find(HTMLElement, '#bits').textContent = say('bits', { bits })
    find(HTMLOutputElement, '.range output', panel).value = String(length)
  }
  const setKind = (): void => {
    const [least, most, start] = LENGTHS[kind()]
    Object.assign(slider, { min: least, max: most, value: start })
    classes.hidden = kind() === 'words'
    find(HTMLElement, '.range span', panel).textContent = say(kind() === 'words' ? 'wordCount' : 'length')
  }
  const open = (isOpen: boolean): void => {
    panel.hidden = !isOpen
    button.ariaExpanded = String(isOpen)
    proposal.value = ''
    if (!isOpen) return
    setKind()
    propose()
  }

  button.addEventListener('click', () => open(panel.hidden))
  find(HTMLButtonElement, '#again').addEventListener('click', propose)
  find(HTMLButtonElement, '#use').addEventListener('click', () => {
    const password = proposal.value
    open(false)
    use(password)
  })
  panel.addEventListener('input', ({ target }) => {
    if (!(target instanceof HTMLInputElement)) return
    if (target.type === 'radio') setKind()
    // One class is always left.
    if (chosen().length === 0) target.checked = true
    propose()
  })
  inEachLanguage(() => { if (!panel.hidden) propose() })
  return () => open(false)
}
