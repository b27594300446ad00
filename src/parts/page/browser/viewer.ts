/** The dialog that shows an entry: to copy from it first of all, and to change or delete it. */
import type { Entry } from './api.ts'
import { closeModal, openModal } from './dialogs.ts'
import { find, part } from './dom.ts'
import { resetHistory, startHistory } from './history.ts'
import { showLong, showName } from './showing.ts'
import { linkTo, showTile, type Act } from './row.ts'
import { createSecret } from './secret.ts'
import { rights } from './state.ts'

/** A name that is longer is shown whole below the title, which has room for as much. */
const TITLE_LENGTH = 60

interface ViewerOptions {
  act(act: Act, entry: Entry): void
  /** The password as it is stored now; undefined if it may not be shown. */
  read(entry: Entry): Promise<string | undefined>
}

/** The dialog of an entry that is looked at. */
export class Viewer {
  readonly #dialog = find(HTMLDialogElement, '#viewer')
  readonly #options: ViewerOptions
  #entry: Entry | undefined

  constructor(options: ViewerOptions) {
    this.#options = options
    for (const button of this.#dialog.querySelectorAll<HTMLElement>('[data-act]')) {
      button.addEventListener('click', () => {
        if (this.#entry !== undefined) options.act(button.dataset['act'] as Act, this.#entry)
      })
    }
    this.#dialog.addEventListener('close', () => { if (!this.#dialog.open) this.#forget() })
    startHistory(() => this.#entry)
  }

  /** The entry that is looked at. */
  get entry(): Entry | undefined { return this.#entry }

  open(entry: Entry): void {
    this.#show(entry)
    openModal(this.#dialog)
    find(HTMLButtonElement, '[data-act=copy]', this.#dialog).focus()
  }

  /** Shows the entry as it is now, if it is still the one that is looked at. */
  renew(entry: Entry): void { if (this.#entry?.id === entry.id) this.#show(entry) }

  close(): void {
    closeModal(this.#dialog)
    this.#forget()
  }

  /** Marks the button that opens the editor as busy. */
  setBusy(isBusy: boolean): void {
    find(HTMLElement, '[data-act=edit]', this.#dialog).ariaBusy = isBusy ? 'true' : null
  }

  #show(entry: Entry): void {
    const isNew = this.#entry?.id !== entry.id
    const isOther = this.#entry?.password !== entry.password
    this.#entry = entry
    showTile(find(HTMLElement, '.tile', this.#dialog), entry)
    showName(part('viewer-title'), entry.sistema)
    part('view-system').hidden = entry.sistema.length <= TITLE_LENGTH
    showLong(find(HTMLElement, 'bdi', part('view-system')), entry.sistema)
    showLong(find(HTMLElement, 'bdi', part('view-user')), entry.usuario)
    linkTo(find(HTMLAnchorElement, '#view-visit', this.#dialog), entry)
    for (const [act, operation] of [['edit', 'updatePassword'], ['remove', 'deletePassword']] as const) {
      find(HTMLElement, `[data-act=${act}]`, this.#dialog).hidden = !rights.may(operation)
    }
    // A password that is shown and was changed is hidden, and shown as it is now.
    const shown = part('view-password').querySelector<HTMLElement>('.revealed button')
    if (!isNew && isOther) for (const button of [shown, shown]) button?.click()
    if (!isNew) return
    const read = async (): Promise<string | undefined> => this.#entry && this.#options.read(this.#entry)
    part('view-password').replaceChildren(createSecret(read))
    resetHistory()
  }

  /** Nothing of it stays in the document. */
  #forget(): void {
    this.#entry = undefined
    this.setBusy(false)
    for (const one of this.#dialog.querySelectorAll('bdi, .tile, #viewer-title')) one.textContent = ''
    for (const name of ['href', 'aria-label']) part('view-visit').removeAttribute(name)
    part('view-password').replaceChildren()
    resetHistory()
  }
}
