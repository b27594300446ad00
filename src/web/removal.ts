/** The dialog that asks whether an entry shall really go. */
import type { Entry } from './api.ts'
import { find } from './dom.ts'
import { closeByButtons } from './editor.ts'
import { Form, type Outcome } from './form.ts'
import { showName } from './plain.ts'

/** The dialog; `remove` does it, and gets what closes the dialog, unless that is on another entry by then. */
export class Removal {
  readonly #dialog = find(HTMLDialogElement, '#removal')
  readonly #view: Form
  #entry: Entry | undefined

  constructor(remove: (entry: Entry, close: () => void) => Promise<Outcome>) {
    this.#view = new Form(find(HTMLFormElement, '#removal form'), async () => {
      const entry = this.#entry
      return entry && remove(entry, () => { if (this.#entry === entry) this.#dialog.close() })
    })
    closeByButtons(this.#dialog)
    this.#dialog.addEventListener('close', () => this.#view.clear())
  }

  /** Asks about an entry. */
  open(entry: Entry): void {
    this.#entry = entry
    this.#view.clear()
    showName(find(HTMLElement, '.named bdi', this.#dialog), entry.sistema)
    showName(find(HTMLElement, '.named span', this.#dialog), entry.usuario)
    this.#dialog.showModal()
  }

  /** Closes it. */
  close(): void { this.#dialog.close() }
}
