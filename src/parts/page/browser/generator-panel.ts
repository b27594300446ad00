/** The panel of the generator. Its options are kept in the page's address, and no password is. */
import { iconButton, make, recall, remember, textButton } from './dom.ts'
import { bitsOf, characters, CLASSES, passphrase, type Class, type Random } from './generator.ts'
import { languageNow, say } from './language.ts'
import { api } from './state.ts'

/** What was generated, and how many bits there are to guess in it. */
export interface Generated {
  readonly password: string
  readonly bits: number
}

export interface Generator {
  readonly element: HTMLElement
  /** Takes what is proposed. */
  use(): void
}

const random: Random = into => crypto.getRandomValues(into)
/** What the slider means for each kind: least, most, and where it starts. */
const LENGTHS = { characters: [8, 64, 20], words: [5, 10, 6] } as const
const EXTRAS = ['capital', 'digit'] as const
type Kind = keyof typeof LENGTHS

/** `onUse` gets what was chosen, undefined if nothing was. */
export function createGenerator(onUse: (generated: Generated | undefined) => void): Generator {
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
    // One class is always left.
    if (checkedIn(classes).length === 0) target.checked = true
    await setKind(target.type === 'radio' ? LENGTHS[kindNow()][2] : Number(slider.value))
    remember('generator', [kindNow(), slider.value, ...checkedIn(classes), ...checkedIn(extras)].join('.'))
  })
  // The options of the address, as far as they make sense.
  const [kind = '', count, ...chosen] = (recall('generator') ?? '').split('.')
  const known = Object.keys(CLASSES).filter(name => chosen.includes(name))
  check(kinds, [kind === 'words' ? kind : 'characters'])
  check(classes, known.length > 0 ? known : Object.keys(CLASSES))
  check(extras, chosen)
  void setKind(Number(count) || LENGTHS[kindNow()][2])
  return { element, use }
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
