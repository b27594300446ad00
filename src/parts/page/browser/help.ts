/** The help, and the switch of the language. */
import { openDialog } from './dialogs.ts'
import { icon, make, recall, remember } from './dom.ts'
import type { Language } from './first.ts'
import { languageNow, say, setLanguage } from './language.ts'
import { page, rights } from './state.ts'
import type { TextName } from './texts-es.ts'

const KEYS: readonly (readonly [keys: string, text: TextName])[] = [
  ['/ · Ctrl K', 'searchShort'],
  ['n', 'create'],
  ['↑ ↓', 'keyRows'],
  ['← →', 'keyColumns'],
  ['Enter', 'keyOpen'],
  ['Ctrl B', 'copyUser'],
  ['Ctrl C', 'copyThis'],
  ['v', 'revealThis'],
  ['c', 'copyCode'],
  ['o', 'keySite'],
  ['e', 'keyEdit'],
  ['Delete', 'keyRemove'],
  ['Ctrl Z', 'undo'],
  ['Esc', 'keyBack'],
  ['?', 'keyHelp']
]
const KEY_NAMES: { readonly [key: string]: TextName } = { Enter: 'keyEnter', Delete: 'keyDelete' }

const IS_MAC = /Mac|iP(hone|ad)/.test(navigator.userAgent)
const keyed = (keys: string): string => keys.replace('Ctrl', IS_MAC ? '⌘' : 'Ctrl')

/** Speech input would press single keys by accident. */
export function usesSingleKeys(): boolean {
  return recall('keys') !== 'off'
}

const LANGUAGES: { readonly [language in Language]: string } = { es: 'Español', en: 'English' }

function languageButton(language: Language, className: string = ''): HTMLElement {
  const text = LANGUAGES[language]
  const button = make('button', { type: 'button', className, lang: language }, text)
  button.dataset['language'] = language
  button.addEventListener('click', async () => {
    await setLanguage(language)
    page.renew()
    page.focus()
  })
  return button
}

export function languageSwitch(): HTMLElement {
  const both = (['es', 'en'] as const).map(language =>
    Object.assign(languageButton(language), { ariaPressed: String(languageNow() === language) })
  )
  return make('div', { className: 'languages', role: 'group', ariaLabel: say('language') }, ...both)
}

/** The other language, as a quiet link. */
export function languageLink(): HTMLElement {
  return languageButton(languageNow() === 'es' ? 'en' : 'es', 'link language')
}

function part(className: string, title: TextName, ...content: readonly HTMLElement[]): HTMLElement {
  return make('section', { className }, make('h3', {}, say(title)), ...content)
}

function lines(...texts: readonly TextName[]): HTMLElement {
  return make('ul', { className: 'help' }, ...texts.map(text => make('li', {}, say(text))))
}

const mark = (className: string, drawing: string, count: string): HTMLElement =>
  make('span', { className }, icon(drawing), count)

/** As the list shows them. */
function marks(): HTMLElement {
  return make(
    'dl',
    { className: 'keys' },
    make('dt', {}, mark('badge exposed', 'known', '2')),
    make('dd', {}, say('helpExposed')),
    make('dt', {}, mark('badge reused', 'same', '3')),
    make('dd', {}, say('helpReused')),
    make('dt', {}, mark('copyCode', 'code', '')),
    make('dd', {}, say('helpCodes'))
  )
}

export function openHelp(): void {
  const safety: TextName[] = ['helpHidden', 'helpClipboard', 'helpIdle']
  if (!rights.isOpen) safety.push('helpSession')
  const box = make('input', { type: 'checkbox', id: 'single-keys', checked: usesSingleKeys() })
  box.addEventListener('change', () => remember('keys', box.checked ? 'on' : 'off'))
  const keys = KEYS.flatMap(([keys, text]) => [
    make('dt', {}, KEY_NAMES[keys] === undefined ? keyed(keys) : say(KEY_NAMES[keys])),
    make('dd', {}, say(text))
  ])
  openDialog({
    id: 'more',
    title: say('help'),
    content: [
      ...(rights.isOpen ? [make('p', { className: 'lasting' }, say('open'))] : []),
      lines('helpOpen', 'helpGroups', 'helpRemoved'),
      part('part-of-help', 'marks', marks()),
      part('part-of-help', 'safety', lines(...safety)),
      part(
        'by-keyboard',
        'keysTitle',
        make('dl', { className: 'keys' }, ...keys),
        make('label', { className: 'check' }, box, make('span', {}, say('singleKeys')))
      )
    ]
  })
}
