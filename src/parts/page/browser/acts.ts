/** What a person does with entries, and what the answers of the service mean. */
import type { Answer, Entry, EntryFields, Refusal } from './api.ts'
import { CLEAR_AFTER_SECONDS, copyForAWhile, copyForGood } from './clipboard.ts'
import { find, part } from './dom.ts'
import type { Editor } from './editor.ts'
import type { Outcome } from './form.ts'
import type { Grid } from './grid.ts'
import { say } from './language.ts'
import { explain, toast, withdrawOffer, type Notice } from './notice.ts'
import { plainText } from './plain.ts'
import type { Removals } from './removal.ts'
import type { Act } from './row.ts'
import type { Session } from './session.ts'
import { api, denied, entries, loaded } from './state.ts'
import { clearSearch, show } from './view.ts'

/** Between a failure and the look whether the service has stored it all the same. */
const CHECK_AFTER_MS = 1000

/** A create that may have been stored: its fields, and the entries that there were before. */
interface Unsure {
  readonly fields: EntryFields
  readonly before: ReadonlySet<number>
}

interface Parts {
  readonly grid: Grid
  readonly editor: Editor
  readonly removals: Removals
  readonly notice: Notice
  readonly session: Session
}

/** The acts; `connect` is called once with all that they work on. */
export class Acts {
  #parts!: Parts
  /** Set while it is not known whether a create was stored. */
  #unsure: Unsure | undefined

  connect(parts: Parts): void { this.#parts = parts }

  /** Gets the list, and says what is in the way of that. */
  async load(): Promise<boolean> {
    const { notice, session } = this.#parts
    notice.hide()
    part('loading').hidden = loaded.is
    part('refresh').ariaBusy = 'true'
    const answer = await api.list()
    part('refresh').ariaBusy = null
    part('loading').hidden = true
    const refusal = session.settle('list', answer)
    if (answer.ok) {
      loaded.is = true
      entries.load(answer.value)
    } else if (refusal !== undefined && refusal.why !== 'forbidden') {
      // Without a connection nothing that is stored stays in sight.
      if (refusal.why === 'lost' && !navigator.onLine) {
        loaded.is = false
        entries.load([])
        this.#parts.grid.hideAll()
      }
      notice.show(refusal, !loaded.is, () => void this.load())
    }
    if (session.isOpen) this.#show()
    return answer.ok
  }

  do(act: Act, entry: Entry): void { void this[act](entry) }

  /** Shows or hides a password. */
  async reveal(entry: Entry): Promise<void> {
    const { grid } = this.#parts
    if (grid.isRevealed(entry)) return grid.reveal(entry, false)
    const now = await this.#permitted(entry, 'reveal')
    if (now !== undefined) grid.reveal(now, true)
  }

  async copy(entry: Entry): Promise<void> {
    const text = this.#permitted(entry, 'copy').then(now => now?.password)
    const outcome = await copyForAWhile(text, () => toast(say('cleared')))
    if (outcome !== undefined) toast(say(outcome, { seconds: CLEAR_AFTER_SECONDS }))
  }

  async copyUser(entry: Entry): Promise<void> {
    toast(say(await copyForGood(entry.usuario) ? 'userCopied' : 'notCopied'))
  }

  /** Opens the dialog on the entry as it is now, which somebody else may have changed. */
  async edit(entry: Entry): Promise<void> {
    const now = await this.#current(entry, 'edit')
    // Meanwhile the person may have opened something else.
    if (now !== undefined && document.querySelector('dialog[open]') === null) {
      this.#parts.editor.open(now, denied.has('update'))
    }
  }

  /** Deletes an entry in a few seconds, unless that is undone. */
  remove(entry: Entry): void {
    if (denied.has('remove')) return
    const { removals, grid } = this.#parts
    grid.reveal(entry, false)
    entries.setLeaving(entry.id, true)
    removals.add(entry)
    this.#show()
    this.#focusList()
    toast(say('removing', { name: plainText(entry.sistema) }), say('undo'), () => this.undo())
  }

  /** Takes the newest deletion back; false if there is none. */
  undo(): boolean {
    const entry = this.#parts.removals.undo()
    if (entry === undefined) return false
    entries.setLeaving(entry.id, false)
    this.#show()
    this.#parts.grid.focusOn(entry.id)
    toast(say('undone'))
    return true
  }

  /** Carries a deletion out. */
  async carryOut(entry: Entry): Promise<void> {
    const { session, removals } = this.#parts
    if (removals.isEmpty) withdrawOffer()
    let answer: Answer<unknown> = await api.remove(entry.id)
    if (mayHaveStored(answer)) {
      const now = await api.get(entry.id)
      if (now.ok && now.value.status === 0) answer = { ok: true, value: undefined }
    }
    const refusal = session.settle('remove', answer)
    if (answer.ok || refusal?.why === 'unknown') {
      entries.drop(entry.id)
      return
    }
    entries.setLeaving(entry.id, false)
    if (refusal === undefined || !session.isOpen) return
    this.#show()
    toast(`${say('notRemoved', { name: plainText(entry.sistema) })} ${explain(refusal).join('. ')}`)
  }

  async save(entry: Entry | undefined, fields: Partial<EntryFields>, close: () => void): Promise<Outcome> {
    return entry === undefined ? this.#create(fields as EntryFields, close) : this.#update(entry, fields, close)
  }

  async #create(fields: EntryFields, close: () => void): Promise<Outcome> {
    const { session } = this.#parts
    const unsure = this.#unsure
    if (unsure !== undefined) {
      const found = await this.#findStored(unsure)
      if (found === 'unreadable') return 'stillUnsure'
      this.#unsure = undefined
      if (found !== undefined) {
        const changed = JSON.stringify({ ...found, ...fields }) !== JSON.stringify(found)
        return changed ? this.#update(found, fields, close) : this.#created(found, 'wasStored', close)
      }
    }
    const before = entries.ids()
    const answer = await api.create(fields)
    if (mayHaveStored(answer)) {
      if (denied.has('list')) return { refusal: answer as Refusal, note: 'cannotCheck' }
      const found = await this.#findStored({ fields, before })
      if (found === 'unreadable') {
        this.#unsure = { fields, before }
        return { refusal: answer as Refusal, note: 'unsure' }
      }
      if (found !== undefined) return this.#created(found, 'wasStored', close)
      return session.isOpen ? { refusal: answer as Refusal, note: 'notStored' } : undefined
    }
    const refusal = session.settle('create', answer)
    if (refusal !== undefined) return refusal
    if (!answer.ok) return undefined
    // The answer does not say which entry was created.
    if (!denied.has('list') && !await this.load()) { close(); toast(say('created')); return undefined }
    return this.#created(entries.newest(fields, before), 'created', close)
  }

  #created(entry: Entry | undefined, text: 'created' | 'wasStored', close: () => void): undefined {
    this.#unsure = undefined
    close()
    toast(say(text))
    // A dialog that was opened since is left alone.
    if (this.#parts.editor.isOpen) return this.#show()
    if (entry === undefined || !entries.shown.includes(entry)) clearSearch()
    this.#show()
    if (entry === undefined || !this.#parts.grid.focusOn(entry.id, true)) find(HTMLInputElement, '#query').focus()
  }

  /** Looks whether a create was stored all the same; that may come a moment after the failure. */
  async #findStored({ fields, before }: Unsure): Promise<Entry | 'unreadable' | undefined> {
    await new Promise(resolve => setTimeout(resolve, CHECK_AFTER_MS))
    const answer = await api.list()
    this.#parts.session.settle('list', answer)
    if (!answer.ok) return 'unreadable'
    loaded.is = true
    entries.load(answer.value)
    this.#show()
    return entries.newest(fields, before)
  }

  async #update(entry: Entry, fields: Partial<EntryFields>, close: () => void): Promise<Outcome> {
    const { session } = this.#parts
    let answer = await api.update(entry.id, fields)
    if (mayHaveStored(answer)) {
      const now = await api.get(entry.id)
      if (!now.ok) return { refusal: answer as Refusal, note: 'unsureUpdate' }
      const isStored = Object.entries(fields).every(([name, text]) => now.value[name as keyof EntryFields] === text)
      if (!isStored) return { refusal: answer as Refusal, note: 'notStored' }
      answer = now
    }
    const refusal = session.settle('update', answer)
    const isGone = answer.ok ? answer.value.status === 0 : answer.why === 'unknown'
    if (!answer.ok && !isGone) return refusal
    close()
    if (!answer.ok || isGone) return this.#drop(entry)
    this.#renew(answer.value)
    toast(say('updated'))
    return undefined
  }

  /** In the protected configuration a password is only given away while the token is valid. */
  async #permitted(entry: Entry, act: Act): Promise<Entry | undefined> {
    if (api.user === undefined) return entry
    return this.#current(entry, act, true)
  }

  /**
   * The entry as it is now; what is known of it where the token may not ask, or, unless `isStrict`, nothing answers.
   */
  async #current(entry: Entry, act: Act, isStrict: boolean = false): Promise<Entry | undefined> {
    const { grid, session } = this.#parts
    grid.setBusy(entry, act, true)
    const answer = await api.get(entry.id)
    grid.setBusy(entry, act, false)
    if (answer.ok ? answer.value.status === 0 : answer.why === 'unknown') return this.#drop(entry)
    if (answer.ok) {
      if (JSON.stringify(answer.value) !== JSON.stringify(entry)) this.#renew(answer.value)
      return answer.value
    }
    if (answer.why === 'login') return void session.settle('get', answer)
    if (answer.why === 'forbidden' || !isStrict) return entry
    return void toast(explain(answer).join('. '))
  }

  #renew(entry: Entry): void {
    entries.put(entry)
    this.#show()
    if (!this.#parts.editor.isOpen) this.#parts.grid.focusOn(entry.id)
  }

  /** Removes an entry that somebody else has deleted. */
  #drop(entry: Entry): undefined {
    entries.drop(entry.id)
    this.#show()
    this.#focusList()
    toast(say('gone'))
  }

  #focusList(): void {
    if (entries.shown.length > 0) this.#parts.grid.focus()
    else find(HTMLInputElement, '#query').focus()
  }

  #show(): undefined { return void show(this.#parts.grid) }
}

/** Whether the service may have done what it has not confirmed: it never answered, or failed on the way. */
function mayHaveStored(answer: Answer<unknown>): boolean {
  return !answer.ok && (answer.why === 'lost' || answer.why === 'failed')
}
