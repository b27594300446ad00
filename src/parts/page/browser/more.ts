/**
 * The dialog of help: who is logged in, the keys, what the operator's program is for, and the routes of
 * `EXTRA_ROUTES`.
 */
import { explain, toast } from './notice.ts'
import type { Api, Entry } from './api.ts'
import { find, part } from './dom.ts'
import { Form } from './form.ts'
import { inEachLanguage, say } from './language.ts'
import { plainText, showName, showSecret } from './plain.ts'
import type { TextName } from './texts.ts'

/** How many deleted entries are listed. */
const MAX_LISTED = 500

const KEYS: readonly (readonly [keys: string, text: TextName])[] = [
  ['/', 'keySearch'], ['n', 'keyNew'], ['↑ ↓', 'keyRows'], ['← →', 'keyColumns'], ['Intro', 'keyOpen'],
  ['Ctrl B', 'keyCopyUser'], ['Ctrl C', 'keyCopy'], ['Ctrl Z', 'keyUndo'], ['Esc', 'keyBack'], ['?', 'keyHelp']
]

interface MoreOptions {
  readonly api: Api
  /** Called when a deleted entry was restored. */
  onRestored(entry: Entry): void
  /** Called when the password of the user was changed, which ends the session. */
  onPasswordChanged(): void
}

/** The dialogs of help, of deleted entries, and of one's own password. */
export class More {
  readonly #options: MoreOptions
  readonly #dialog = find(HTMLDialogElement, '#more')
  readonly #trash = find(HTMLDialogElement, '#trash')
  readonly #own = find(HTMLDialogElement, '#own')
  readonly #ownForm: Form
  #operations: ReadonlySet<string> = new Set()

  constructor(options: MoreOptions) {
    this.#options = options
    this.#ownForm = new Form(find(HTMLFormElement, '#own form'), async texts => {
      const answer = await options.api.changePassword(texts['password']!, texts['newPassword']!)
      if (!answer.ok) return answer.errors['password'] === undefined ? answer : 'badCurrent'
      this.#own.close()
      options.onPasswordChanged()
      return undefined
    })
    inEachLanguage(() => this.#showKeys())
    part('help').addEventListener('click', () => this.open())
    part('show-own').addEventListener('click', () => this.#openOwn())
    part('show-trash').addEventListener('click', () => void this.#openTrash())
    for (const dialog of [this.#dialog, this.#trash, this.#own]) {
      for (const button of dialog.querySelectorAll('[data-close]')) button.addEventListener('click',
        () => dialog.close())
    }
    // Nothing secret stays in the document.
    this.#own.addEventListener('close', () => find(HTMLFormElement, '#own form').reset())
    this.#trash.addEventListener('close', () => part('deleted').replaceChildren())
  }

  /** Finds out which of the extra routes the service has. */
  async start(): Promise<void> { this.#operations = await this.#options.api.operations() }

  has(operation: string): boolean { return this.#operations.has(operation) }

  open(): void {
    const { user } = this.#options.api
    part('account').hidden = user === undefined
    part('account-who').textContent = user === undefined ? '' : say('loggedInAs', { name: plainText(user.name),
      email: user.email })
    part('show-own').hidden = !this.has('changeOwnPassword')
    part('show-trash').hidden = !this.has('deletedPasswords') || part('list').hidden
    this.#dialog.showModal()
  }

  #openOwn(): void {
    this.#dialog.close()
    this.#ownForm.clear()
    find(HTMLInputElement, '#own-email').value = this.#options.api.user?.email ?? ''
    this.#own.showModal()
  }

  async #openTrash(): Promise<void> {
    const button = part('show-trash')
    button.ariaBusy = 'true'
    const answer = await this.#options.api.deleted()
    button.ariaBusy = null
    this.#dialog.close()
    if (!answer.ok) return toast(explain(answer).join('. '))
    const items = answer.value.slice(0, MAX_LISTED).map(entry => this.#item(entry))
    part('deleted').replaceChildren(...items)
    part('no-deleted').hidden = items.length > 0
    this.#trash.showModal()
  }

  #item(entry: Entry): HTMLElement {
    const item = document.createElement('li')
    const names = document.createElement('div')
    for (const text of [entry.sistema, entry.usuario]) {
      const name = document.createElement('bdi')
      showName(name, text)
      names.append(name)
    }
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'second'
    button.textContent = say('restore')
    button.ariaLabel = say('restoreOf', { name: plainText(entry.sistema) })
    button.addEventListener('click', () => void this.#restore(entry, item, button))
    item.append(names, button)
    return item
  }

  async #restore(entry: Entry, item: HTMLElement, button: HTMLButtonElement): Promise<void> {
    button.disabled = true
    const answer = await this.#options.api.restore(entry.id)
    button.disabled = false
    if (!answer.ok) return toast(explain(answer).join('. '))
    item.remove()
    part('no-deleted').hidden = part('deleted').childElementCount > 0
    toast(say('restored'))
    this.#options.onRestored(entry)
  }

  #showKeys(): void {
    part('keys').replaceChildren(...KEYS.flatMap(([keys, text]) => {
      const [term, meaning] = [document.createElement('dt'), document.createElement('dd')]
      term.textContent = keys === 'Intro' ? say('keyEnter') : keys
      meaning.textContent = say(text)
      return [term, meaning]
    }))
  }
}

/** The part of an entry's dialog that shows its history, asked for when it is opened. */
export function startHistory(api: Api, has: () => boolean, entry: () => Entry | undefined): () => void {
  const details = find(HTMLDetailsElement, '#history')
  const list = find(HTMLElement, 'ol', details)
  details.addEventListener('toggle', () => {
    const id = entry()?.id
    if (!details.open || id === undefined) return list.replaceChildren()
    list.replaceChildren(say('loading'))
    void api.history(id).then(answer => {
      if (entry()?.id !== id) return
      list.replaceChildren(...answer.ok ? answer.value.map(change => itemOf(change)) : [explain(answer).join('. ')])
    })
  })
  return () => {
    details.open = false
    details.hidden = !has() || entry() === undefined
    list.replaceChildren()
  }
}

function itemOf({ time, by, change, fields }: import('./api.ts').Change): HTMLElement {
  const item = document.createElement('li')
  const when = new Date(time).toLocaleString(document.documentElement.lang)
  const head = document.createElement('p')
  head.textContent = [when, say(`history_${change}`), plainText(by ?? '')].filter(text => text !== '').join(' · ')
  item.append(head)
  for (const name of ['sistema', 'usuario', 'password'] as const) {
    const text = fields[name]
    if (text === undefined) continue
    const line = document.createElement('p')
    const value = document.createElement('bdi')
    if (name === 'password') hide(value, text)
    else showName(value, text)
    line.append(`${say(name)}: `, value)
    item.append(line)
  }
  return item
}

/** A former password stays hidden until it is clicked. */
function hide(value: HTMLElement, password: string): void {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'former'
  button.textContent = say('reveal')
  button.addEventListener('click', () => {
    const text = document.createElement('span')
    text.className = 'code'
    showSecret(text, password)
    button.replaceWith(text)
  })
  value.append(button)
}
