/** What a person does with the entries of the list, and what the answers of the service mean. */
import type { Answer, Listed, Stored } from './answers.ts'
import { Removals, Saving } from './changes.ts'
import { clearNow, copy } from './clipboard.ts'
import { announce, isModal, sayCopied, tell } from './dialogs.ts'
import { Editor } from './editor.ts'
import { explained, say } from './language.ts'
import { briefName, sentences } from './plain.ts'
import type { PageView } from './screen.ts'
import type { Act } from './showing.ts'
import { api, deleted, entries, isAtList, rights, screenNow, show } from './state.ts'
import { Viewer } from './viewer.ts'

/** How long the service may not be reached before that is told. */
export const LOST_AFTER_MS = 3_000

/** The acts; `connect` is called once with the page that they are shown on. */
export class Acts {
  readonly editor: Editor
  readonly removals: Removals
  readonly #viewer: Viewer
  readonly #saving: Saving
  #view!: PageView
  /** The load that was begun last; what an earlier one brings is not shown. */
  #loading: object | undefined

  constructor() {
    this.#saving = new Saving({ load: () => this.#reload(), focusOn: (id, isNew) => this.#view.focusOn(id, isNew) })
    this.editor = new Editor({ save: (changed, close) => this.#saving.save(changed, close) })
    this.removals = new Removals({ load: () => this.#reload(), onRestored: id => this.#restored(id) })
    this.#viewer = new Viewer({
      act: (act, entry, button) => this.do(act, entry, button), read: entry => this.#current(entry),
      copyText: (text, button) => void this.#copyPlain(text, button)
    })
  }

  connect(view: PageView): void { this.#view = view }

  /**
   * Gets the list, and says what is in the way; a line that drops for a moment is not told. What is shown stays, with
   * its place, its dialog and the focus. `isAsked`: a person has asked for it.
   */
  async load(isAsked: boolean = false): Promise<void> {
    if (screenNow().name === 'deleted') return this.#loadDeleted()
    if (!rights.may('listEntries')) return show(isAtList() ? undefined : { name: 'list' })
    const loading = this.#loading = {}
    this.#view.setLoading(true)
    let answer = await this.#ask()
    if (!answer.ok && answer.why === 'lost' && isAtList()) {
      await new Promise(resolve => setTimeout(resolve, LOST_AFTER_MS))
      if (loading === this.#loading) answer = await this.#ask()
    }
    if (loading !== this.#loading) return
    this.#loading = undefined
    this.#view.setLoading(false)
    if (answer.ok) return this.#loaded(isAsked)
    if (answer.why === 'forbidden') return show({ name: 'list' })
    if (!isAtList()) return show({ name: 'failed', refusal: answer, retry: () => void this.load() })
    tell(explained(answer), { label: say('retry'), act: () => void this.load(true) })
  }

  /** Forgets what is under way, as when the session ends. */
  stop(): void {
    this.#loading = undefined
    this.removals.forget()
  }

  /** Does what is asked of an entry; `button` is what was pressed, which shows what becomes of that. */
  do(act: Act, entry: Listed, button?: HTMLElement): void {
    if (act === 'view' || act === 'reveal') this.#open(entry, act === 'reveal')
    else if (act === 'copyUser') void this.#copyPlain(entry.usuario, button)
    else if (act === 'remove') void this.#remove(entry)
    else void ({ copy: this.#copy, edit: this.#edit, restore: this.#restore })[act].call(this, entry, button)
  }

  create(): void {
    if (rights.may('createPassword') && !isModal()) this.editor.open()
  }

  /** Shows the deleted entries in the place of the others, or those again. */
  showDeleted(): void {
    deleted.load([])
    show({ name: screenNow().name === 'deleted' ? 'list' : 'deleted' })
    if (screenNow().name === 'deleted') void this.#loadDeleted()
    this.#view.grid.toTop()
    this.#view.focus()
  }

  async #copy(entry: Listed, button?: HTMLElement): Promise<void> {
    if (!rights.may('getPassword')) return
    const text = busy(button, this.#current(entry)).then(now => now?.fields.password)
    const isCopied = await copy(text, outcome => {
      if (outcome === 'cleared') announce(say('cleared'))
      else tell(say('maybeCopied'), { label: say('clear'), act: () => void this.#clear() }, true)
    })
    if (isCopied !== undefined) tellCopied(isCopied, button)
  }

  /** Shows an entry as it is known. */
  #open(entry: Listed, isRevealed: boolean): void { if (!isModal()) this.#viewer.open(entry, isRevealed) }

  #ask(): Promise<Answer<readonly Listed[] | undefined>> { return api.list().then(answer => this.#take(answer)) }

  #take(answer: Answer<readonly Listed[] | undefined>): Answer<readonly Listed[] | undefined> {
    if (answer.ok && answer.value !== undefined) entries.load(answer.value)
    return answer
  }

  async #reload(): Promise<boolean> {
    const { ok } = await this.#ask()
    if (ok && isAtList()) show()
    return ok
  }

  #loaded(isAsked: boolean): void {
    const { entry } = this.#viewer
    const now = entry && entries.get(entry.id)
    if (now !== undefined) this.#viewer.renew(now)
    else if (entry !== undefined) this.#gone(entry)
    show(isAtList() ? undefined : { name: 'list' })
    if (isAsked) announce(say('refreshed'))
  }

  /** Gets the deleted entries, one page after the other. */
  async #loadDeleted(): Promise<void> {
    const loading = this.#loading = {}
    const all: Listed[] = []
    for (;;) {
      const answer = await api.deleted(all.at(-1)?.id)
      if (loading !== this.#loading || screenNow().name !== 'deleted') return
      if (!answer.ok) return void tell(explained(answer))
      for (const one of answer.value) all.push(one)
      deleted.load(all)
      show()
      if (answer.value.length === 0) return
    }
  }

  /** Opens the editor on the entry as it is now. */
  async #edit(entry: Listed, button?: HTMLElement): Promise<void> {
    const { id, sistema, usuario, url } = entry
    let edited = { id, tag: undefined as string | undefined, fields: { sistema, usuario, url } as Stored['fields'] }
    if (rights.may('getPassword')) {
      const now = await busy(button, this.#current(entry))
      if (now === undefined) return
      edited = { id, tag: now.tag, fields: now.fields }
    }
    // Meanwhile the person may have opened something else.
    if (this.#viewer.entry?.id === id) this.#viewer.close()
    if (!isModal()) this.editor.open(edited)
  }

  async #remove(entry: Listed): Promise<void> {
    if (!await this.removals.remove(entry)) return
    this.#viewer.close()
    this.#view.focus()
  }

  async #restore(entry: Listed, button?: HTMLElement): Promise<void> {
    const answer = await busy(button, api.restore(entry.id))
    const name = briefName(entry.sistema)
    if (!answer.ok) return void tell(sentences(say('notRestored', { name }), explained(answer)))
    deleted.drop(entry.id)
    show()
    announce(say('restored', { name }))
    this.#view.focus()
    await this.#reload()
  }

  /** A deletion was undone. */
  #restored(id: number): void {
    if (screenNow().name === 'deleted') void this.#loadDeleted()
    else this.#view.focusOn(id)
  }

  async #copyPlain(text: string, button?: HTMLElement): Promise<void> {
    tellCopied(await copy(Promise.resolve(text)) === true, button)
  }

  async #clear(): Promise<void> { if (await clearNow()) announce(say('cleared')) }

  /** The entry as it is stored now; undefined, with a message, if that cannot be found out. */
  async #current(entry: Listed): Promise<Stored | undefined> {
    const answer = await api.get(entry.id)
    if (answer.ok && answer.value.isActive) {
      const { sistema, usuario, url } = answer.value.fields
      const now = { ...entries.get(entry.id), id: entry.id, sistema, usuario, url }
      if (now.sistema !== entry.sistema || now.usuario !== entry.usuario || now.url !== entry.url) {
        entries.put(now)
        this.#viewer.renew(now)
        show()
      }
      return answer.value
    }
    if (answer.ok || answer.why === 'unknown') this.#gone(entry)
    else tell(explained(answer))
    return undefined
  }

  /** Removes an entry that somebody else has deleted. */
  #gone(entry: Listed): void {
    if (this.#viewer.entry?.id === entry.id) this.#viewer.close()
    entries.drop(entry.id)
    show()
    if (!isModal()) this.#view.focus()
    tell(say('gone'))
  }
}

/** Marks a button as busy until something is done. */
async function busy<T>(button: HTMLElement | undefined, work: Promise<T>): Promise<T> {
  if (button !== undefined) button.ariaBusy = 'true'
  const done = await work
  if (button !== undefined) button.ariaBusy = null
  return done
}

function tellCopied(isCopied: boolean, button: HTMLElement | undefined): void {
  if (!isCopied) tell(say('notCopied'))
  else if (button === undefined) announce(say('copied'))
  else sayCopied(button)
}
