/** The dialog that shows an entry: to copy from it first of all. What is secret is asked for when it is to be shown. */
import type { Listed, Stored } from './answers.ts'
import { openDialog } from './dialogs.ts'
import { iconButton, make, textButton } from './dom.ts'
import { age, moment, say } from './language.ts'
import { plainText, shortened, webAddress } from './plain.ts'
import { createSecret, linkTo, longText, nameOf, tileOf, type Act, type Secret } from './showing.ts'
import { rights } from './state.ts'
import { historyOf } from './versions.ts'

/** A name that is longer is shown whole below the title, which has room for as much. */
const TITLE_LENGTH = 60

interface ViewerOptions {
  act(act: Act, entry: Listed, button: HTMLElement): void
  /** Copies what is not secret. */
  copyText(text: string, button: HTMLElement): void
  /** The entry as it is stored now; undefined if it may not be shown. */
  read(entry: Listed): Promise<Stored | undefined>
}

/** The dialog of an entry that is looked at. */
export class Viewer {
  readonly #options: ViewerOptions
  #entry: Listed | undefined
  #content = make('div')
  #secret: Secret | undefined
  #close = (): void => {}

  constructor(options: ViewerOptions) { this.#options = options }

  /** The entry that is looked at. */
  get entry(): Listed | undefined { return this.#entry }

  /** Opens it; `isRevealed` shows the password at once. */
  open(entry: Listed, isRevealed: boolean): void {
    this.#entry = entry
    const shownName = webAddress(entry.sistema)?.host ?? plainText(shortened(entry.sistema, TITLE_LENGTH))
    this.#content = make('div', { className: 'view' })
    const remove = this.#actButton('remove', 'quiet bad', 'deletePassword')
    const edit = this.#actButton('edit', 'main', 'updatePassword')
    this.#close = openDialog({
      id: 'viewer', title: shownName, mark: tileOf(entry.sistema), content: [this.#content],
      foot: [remove, edit].filter(button => button !== undefined),
      onClose: () => { this.#entry = this.#secret = undefined }
    })
    this.#fill(entry)
    if (isRevealed) void this.#secret?.show()
    const first = this.#content.querySelector<HTMLElement>('[data-act=copy]') ?? this.#content.querySelector('button')
    first?.focus()
  }

  /** Shows the entry as it is now, if it is still the one that is looked at and has another name. */
  renew(entry: Listed): void {
    if (this.#entry?.id !== entry.id) return
    const isOther = (['sistema', 'usuario', 'url'] as const).some(name => this.#entry?.[name] !== entry[name])
    this.#entry = entry
    if (isOther) this.#fill(entry)
  }

  close(): void { this.#close() }

  #fill(entry: Listed): void {
    const { sistema, usuario, url, changed } = entry
    const isWhole = webAddress(sistema) === undefined && sistema.length <= TITLE_LENGTH
    const rows = isWhole ? [] : [rowOf('view-system', say('sistema'), longText(sistema), [linkTo(sistema)])]
    const copyUser = this.#copyButton('copyUser', say('copyUser'), usuario)
    rows.push(rowOf('view-user', say('usuario'), longText(usuario), [copyUser]))
    if (rights.may('getPassword')) rows.push(this.#passwordRow(entry))
    if (url !== '') {
      const link = linkTo(url)
      const copy = this.#copyButton('copyUrl', say('copyUrl'), url)
      rows.push(rowOf('view-url', say('url'), nameOf(url), link === undefined ? [copy] : [link, copy]))
    }
    if (rights.may('getPassword')) rows.push(this.#notesRow(entry))
    const since = changed === undefined ? '' : say('changedSince', { age: age(changed, true) })
    this.#content.replaceChildren(make('dl', { className: 'facts' }, ...rows),
      ...since === '' ? [] : [make('p', { className: 'hint', title: moment(changed!) }, since)],
      ...rights.may('historyPassword') ? [historyOf(entry.id)] : [])
  }

  async #read(entry: Listed, name: 'password' | 'notas'): Promise<string | undefined> {
    return (await this.#options.read(this.#entry ?? entry))?.fields[name]
  }

  #passwordRow(entry: Listed): HTMLElement {
    const { text, button } = this.#secret = createSecret({ read: () => this.#read(entry, 'password') })
    const copy = iconButton('copy', say('copyThis'), () => this.#options.act('copy', this.#entry ?? entry, copy))
    copy.dataset['act'] = 'copy'
    return rowOf('view-password', say('password'), text, [button, copy])
  }

  #notesRow(entry: Listed): HTMLElement {
    const { text, button } = createSecret({
      isNotes: true, read: async () => await this.#read(entry, 'notas') || say('none')
    })
    return rowOf('view-notes', say('notas'), text, [button])
  }

  #copyButton(act: string, label: string, text: string): HTMLElement {
    const button = iconButton('copy', label, () => this.#options.copyText(text, button))
    button.dataset['act'] = act
    return button
  }

  #actButton(act: 'edit' | 'remove', className: string, operation: 'updatePassword' | 'deletePassword'):
    HTMLElement | undefined {
    if (!rights.may(operation)) return undefined
    const button = textButton(className, say(act), () => {
      if (this.#entry !== undefined) this.#options.act(act, this.#entry, button)
    })
    button.dataset['act'] = act
    return button
  }
}

/** A label, its value, and icons. */
function rowOf(
  id: string, label: string, value: HTMLElement, buttons: readonly (HTMLElement | undefined)[]
): HTMLElement {
  const own = buttons.filter(button => button !== undefined)
  return make('div', { id }, make('dt', {}, label), make('dd', { className: 'value' }, value), make('dd', {}, ...own))
}
