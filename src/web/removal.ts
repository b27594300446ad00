/** The dialog that asks whether an entry shall really go. */
import type { Entry } from './api.ts'
import { find } from './dom.ts'
import { closeByButtons } from './editor.ts'
import { Form, type Outcome } from './form.ts'
import { showText } from './plain.ts'

/** The dialog; `remove` does it. */
export class Removal {
  readonly #dialog = find(HTMLDialogElement, '#removal')
  readonly #view: Form
  #entry: Entry | undefined

  constructor(remove: (entry: Entry) => Promise<Outcome>) {
    this.#view = new Form(find(HTMLFormElement, '#removal form'), async () => {
      const outcome = this.#entry === undefined ? undefined : await remove(this.#entry)
      if (outcome === undefined) this.#dialog.close()
      return outcome
    })
    closeByButtons(this.#dialog)
  }

  /** Asks about an entry. */
  open(entry: Entry): void {
    this.#entry = entry
    this.#view.clear()
    showText(find(HTMLElement, '.named bdi', this.#dialog), entry.sistema)
    showText(find(HTMLElement, '.named span', this.#dialog), entry.usuario)
    this.#dialog.showModal()
  }

  /** Closes it. */
  close(): void { this.#dialog.close() }
}
