/** The help, the switch of the language, the account, and the change of one's own password. */
import { openDialog } from './dialogs.ts'
import { make, recall, remember, textButton } from './dom.ts'
import { Form } from './form.ts'
import { languageNow, say, setLanguage, type Language } from './language.ts'
import { plainText } from './plain.ts'
import { api, page, rights } from './state.ts'
import type { TextName } from './texts.ts'

const NAMED = [
  'listEntries', 'getPassword', 'createPassword', 'updatePassword', 'deletePassword', 'restorePassword'
] as const
const KEYS: readonly (readonly [keys: string, text: TextName])[] = [
  ['/ · Ctrl K', 'keySearch'], ['n', 'create'], ['↑ ↓', 'keyRows'], ['← →', 'keyColumns'],
  ['Enter', 'keyOpen'],
  ['Ctrl B', 'keyCopyUser'], ['Ctrl C', 'keyCopy'], ['e', 'keyEdit'], ['Delete', 'keyRemove'], ['Ctrl Z', 'keyUndo'],
  ['Esc', 'keyBack'], ['?', 'keyHelp']
]
const KEY_NAMES: { readonly [key: string]: TextName } = { Enter: 'keyEnter', Delete: 'keyDelete' }

/** Speech input would press single keys by accident. */
export function usesSingleKeys(): boolean { return recall('keys') !== 'off' }

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
  return make('div', { className: 'languages', role: 'group', ariaLabel: say('language') }, spanish, english)
}

export function openHelp(): void {
  const texts: TextName[] = ['helpOpen', 'helpHidden', 'helpClipboard', 'helpRemoved', 'helpIdle']
  if (!rights.isOpen) texts.push('helpSession')
  const box = make('input', { type: 'checkbox', id: 'single-keys', checked: usesSingleKeys() })
  box.addEventListener('change', () => remember('keys', box.checked ? 'on' : 'off'))
  const keys = KEYS.flatMap(([keys, text]) =>
    [make('dt', {}, KEY_NAMES[keys] === undefined ? keys : say(KEY_NAMES[keys])), make('dd', {}, say(text))])
  openDialog({
    id: 'more', title: say('help'), content: [
      ...rights.isOpen ? [make('p', { className: 'lasting' }, say('open'))] : [],
      make('ul', { className: 'help' }, ...texts.map(text => make('li', {}, say(text)))),
      make('section', { className: 'by-keyboard' }, make('h3', {}, say('keysTitle')),
        make('dl', { className: 'keys' }, ...keys),
        make('label', { className: 'check' }, box, make('span', {}, say('singleKeys'))))
    ]
  })
}

/** `onPasswordChanged` is called when the change has ended the session. */
export function openAccount(onPasswordChanged: () => void): void {
  const { name = '', email = '' } = api.user ?? {}
  const allowed = NAMED.filter(operation => rights.may(operation))
  const what = (allowed.length > 0 ? allowed : NAMED).map(operation => say(`ability_${operation}`)).join(', ')
  const change = Object.assign(textButton('second', say('changeOwn'), () => {
    close()
    openOwnPassword(onPasswordChanged)
  }), { id: 'show-own' })
  const close = openDialog({
    id: 'account', title: say('account'), content: [
      make('p', {}, say('loggedInAs', { name: plainText(name), email })),
      make('p', { id: 'account-may', className: 'hint' }, say(allowed.length > 0 ? 'accountMay' : 'limits', { what }))
    ],
    ...rights.may('changeOwnPassword') && { foot: [change] }
  })
}

function openOwnPassword(onChanged: () => void): void {
  const current = make('input', { id: 'current', type: 'password', autocomplete: 'current-password' })
  const fresh = make('input', { id: 'fresh', type: 'password', autocomplete: 'new-password' })
  const button = make('button', { className: 'main' }, say('changeOwn'))
  const form = new Form([
    { name: 'password', label: say('currentPassword'), input: current, isRequired: true },
    { name: 'newPassword', label: say('newPassword'), input: fresh, isRequired: true }
  ], button, async () => {
    const answer = await api.changePassword(current.value, fresh.value)
    if (!answer.ok) return answer.errors['password'] === undefined ? answer : 'badCurrent'
    close()
    onChanged()
    return undefined
  })
  // Password managers learn the account from it.
  form.element.prepend(make('input', {
    className: 'unseen', autocomplete: 'username', tabIndex: -1, ariaHidden: 'true', readOnly: true,
    value: api.user?.email
  }))
  const cancel = textButton('second', say('cancel'), () => close())
  const close = openDialog({
    id: 'own', title: say('changeOwn'), mayClose: () => !form.isBusy,
    content: [make('p', { className: 'hint' }, say('changeOwnText')), form.element], foot: [cancel, button]
  })
  current.focus()
}
