/** The help, and the switch of the language. */
import { openDialog } from './dialogs.ts'
import { make, recall, remember } from './dom.ts'
import { languageNow, say, setLanguage, type Language } from './language.ts'
import { page, rights } from './state.ts'
import type { TextName } from './texts.ts'

const KEYS: readonly (readonly [keys: string, text: TextName])[] = [
  ['/ · Ctrl K', 'keySearch'],
  ['n', 'create'],
  ['↑ ↓', 'keyRows'],
  ['← →', 'keyColumns'],
  ['Enter', 'keyOpen'],
  ['Ctrl B', 'keyCopyUser'],
  ['Ctrl C', 'keyCopy'],
  ['e', 'keyEdit'],
  ['Delete', 'keyRemove'],
  ['Ctrl Z', 'keyUndo'],
  ['Esc', 'keyBack'],
  ['?', 'keyHelp']
]
const KEY_NAMES: { readonly [key: string]: TextName } = { Enter: 'keyEnter', Delete: 'keyDelete' }

/** Speech input would press single keys by accident. */
export function usesSingleKeys(): boolean {
  return recall('keys') !== 'off'
}

export function languageSwitch(): HTMLElement {
  const button = (language: Language, name: string): HTMLElement => {
    const ariaPressed = String(languageNow() === language)
    const made = make('button', { type: 'button', lang: language, ariaPressed }, name)
    made.dataset['language'] = language
    made.addEventListener('click', () => {
      setLanguage(language)
      page.renew()
      page.focus()
    })
    return made
  }
  const [spanish, english] = [button('es', 'Español'), button('en', 'English')]
  return make(
    'div',
    { className: 'languages', role: 'group', ariaLabel: say('language') },
    spanish,
    english
  )
}

/** The other language, as a quiet link. */
export function languageLink(): HTMLElement {
  const [other, name] =
    languageNow() === 'es' ? (['en', 'English'] as const) : (['es', 'Español'] as const)
  const link = make('button', { type: 'button', className: 'link language', lang: other }, name)
  link.dataset['language'] = other
  link.addEventListener('click', () => {
    setLanguage(other)
    page.renew()
    page.focus()
  })
  return link
}

export function openHelp(): void {
  const texts: TextName[] = ['helpOpen', 'helpHidden', 'helpClipboard', 'helpRemoved', 'helpIdle']
  if (!rights.isOpen) texts.push('helpSession')
  const box = make('input', { type: 'checkbox', id: 'single-keys', checked: usesSingleKeys() })
  box.addEventListener('change', () => remember('keys', box.checked ? 'on' : 'off'))
  const keys = KEYS.flatMap(([keys, text]) => [
    make('dt', {}, KEY_NAMES[keys] === undefined ? keys : say(KEY_NAMES[keys])),
    make('dd', {}, say(text))
  ])
  openDialog({
    id: 'more',
    title: say('help'),
    content: [
      ...(rights.isOpen ? [make('p', { className: 'lasting' }, say('open'))] : []),
      make('ul', { className: 'help' }, ...texts.map(text => make('li', {}, say(text)))),
      make(
        'section',
        { className: 'by-keyboard' },
        make('h3', {}, say('keysTitle')),
        make('dl', { className: 'keys' }, ...keys),
        make('label', { className: 'check' }, box, make('span', {}, say('singleKeys')))
      )
    ]
  })
}
