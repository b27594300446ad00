/** Creates, changes and deletes entries: nothing typed is lost, and nothing of another's is overwritten unseen. */
import { mayBeDone, type EntryFields, type Listed, type Stored } from './answers.ts'
import { announce, confirm, tell } from './dialogs.ts'
import type { Changed, Edited } from './editor.ts'
import type { Outcome } from './form.ts'
import { explained, say } from './language.ts'
import { briefName, sentences } from './plain.ts'
import { api, entries, rights, show } from './state.ts'
import { askWhich } from './versions.ts'

/** Between a failure and the look whether the service has stored it all the same. */
const CHECK_AFTER_MS = 1000

const EMPTY: EntryFields = { sistema: '', usuario: '', password: '', url: '', notas: '' }

interface SavingOptions {
  /** Gets the list again; false if that failed. */
  load(): Promise<boolean>
  /** Brings an entry into sight, marked if it is new. */
  focusOn(id: number, isNew: boolean): void
}

/** What becomes of a form that was sent. */
export class Saving {
  readonly #options: SavingOptions
  /** Creates that may have been stored, by the editor that sent them: what there was before. */
  readonly #unsure = new WeakMap<object, ReadonlySet<number>>()

  constructor(options: SavingOptions) { this.#options = options }

  /** Saves what was typed; `close` closes the editor, unless that is open on something else by then. */
  async save(changed: Changed, close: () => void): Promise<Outcome> {
    const { edited, fields } = changed
    return edited === undefined ? this.#create(changed, close) : this.#update(edited, fields, close)
  }

  async #create({ fields, session }: Changed, close: () => void): Promise<Outcome> {
    const before = this.#unsure.get(session)
    if (before !== undefined) {
      const found = await this.#findStored(fields, before)
      if (found === 'unreadable') return 'stillUnsure'
      if (found !== undefined) return this.#created(found, fields, close)
    }
    const known = new Set(entries.shown.map(({ id }) => id))
    for (const { id } of entries.named(fields.sistema!)) known.add(id)
    const answer = await api.create(fields)
    if (answer.ok) return this.#created(answer.value, fields, close)
    if (!mayBeDone(answer)) return answer
    if (!rights.may('listEntries') || !rights.may('getPassword')) return { refusal: answer, note: 'cannotCheck' }
    this.#unsure.set(session, known)
    await new Promise(resolve => setTimeout(resolve, CHECK_AFTER_MS))
    const found = await this.#findStored(fields, known)
    if (found === 'unreadable') return { refusal: answer, note: 'unsure' }
    if (found !== undefined) return this.#created(found, fields, close)
    // A service that is still writing may store it yet: the next save looks again.
    return { refusal: answer, note: 'notStored' }
  }

  #created(id: number, { sistema = '', usuario = '', url = '' }: Partial<EntryFields>, close: () => void): undefined {
    entries.put({ id, sistema, usuario, url, changed: new Date().toISOString() })
    close()
    show()
    announce(say('created'))
    this.#options.focusOn(id, true)
  }

  /** Looks whether a create was stored all the same: an entry that was not there before, with the same texts. */
  async #findStored(
    fields: Partial<EntryFields>, known: ReadonlySet<number>
  ): Promise<number | 'unreadable' | undefined> {
    if (!await this.#options.load()) return 'unreadable'
    const alike = entries.named(fields.sistema!, fields.usuario).filter(({ id }) => !known.has(id))
    for (const { id } of alike) {
      const answer = await api.get(id)
      if (!answer.ok) return 'unreadable'
      if (isStored(fields, answer.value)) return id
    }
    return undefined
  }

  async #update(edited: Edited, fields: Partial<EntryFields>, close: () => void): Promise<Outcome> {
    const answer = await api.update(edited.id, fields, edited.tag)
    if (answer.ok && answer.value.isActive) return this.#updated(edited, fields, answer.value, close)
    if (answer.ok) return this.#settle(edited, fields, answer.value, close)
    const mayAsk = rights.may('getPassword')
    if (mayAsk && (answer.why === 'changed' || answer.why === 'unknown')) {
      const now = await api.get(edited.id)
      if (!now.ok && now.why !== 'unknown') return now
      const theirs = now.ok ? now.value : undefined
      // What was sent before, and seemed to be lost.
      if (theirs !== undefined && isStored(fields, theirs)) return this.#updated(edited, fields, theirs, close)
      return this.#settle(edited, fields, theirs, close)
    }
    if (!mayBeDone(answer) || !mayAsk) return answer
    const now = await api.get(edited.id)
    if (!now.ok) return { refusal: answer, note: 'unsureUpdate' }
    if (isStored(fields, now.value)) return this.#updated(edited, fields, now.value, close)
    return { refusal: answer, note: 'notStored' }
  }

  #updated(edited: Edited, fields: Partial<EntryFields>, now: Stored, close: () => void): undefined {
    this.#put(now, fields.password !== undefined)
    close()
    show()
    this.#options.focusOn(now.id, false)
    const { password } = edited.fields
    if (fields.password === undefined || password === undefined) return announce(say('updated')) as undefined
    const name = briefName(now.fields.sistema)
    const act = (): void => void this.#undo(now, password)
    tell(say('passwordChanged', { name }), { label: say('undo'), isBrief: true, act })
  }

  /** Puts the former password back, unless the entry was changed again since. */
  async #undo(now: Stored, password: string): Promise<void> {
    const answer = await api.update(now.id, { password }, now.tag)
    if (!answer.ok) return void tell(sentences(say('notUndone'), explained(answer)))
    this.#put(answer.value, true)
    show()
    announce(say('undone'))
  }

  /** The list has what is stored now; how many others have the same password, the next list says. */
  #put({ id, fields: { sistema, usuario, url } }: Stored, isNewPassword: boolean): void {
    const { changed, reused } = entries.get(id) ?? {}
    const since = isNewPassword ? new Date().toISOString() : changed
    entries.put({
      id, sistema, usuario, url, ...since !== undefined && { changed: since },
      ...!isNewPassword && reused !== undefined && { reused }
    })
    if (isNewPassword) void this.#options.load()
  }

  /** Somebody else has changed or deleted the entry: the person sees both and says which is to stay. */
  async #settle(
    edited: Edited, fields: Partial<EntryFields>, theirs: Stored | undefined, close: () => void
  ): Promise<Outcome> {
    // What this person left alone is as the other one has it.
    const mine = { ...EMPTY, ...edited.fields, ...theirs?.fields, ...fields }
    const isGone = theirs?.isActive !== true
    if (isGone) entries.drop(edited.id)
    else this.#put(theirs, false)
    show()
    const choice = await askWhich(edited.id, mine, theirs)
    if (choice === 'back') return undefined
    if (choice === 'theirs') {
      close()
      this.#options.focusOn(edited.id, false)
      return undefined
    }
    const again = { ...edited, tag: theirs?.tag }
    if (!isGone) return this.#update(again, fields, close)
    if (theirs === undefined || !rights.may('restorePassword')) {
      return this.#create({ edited: undefined, fields: mine, session: {} }, close)
    }
    const restored = await api.restore(edited.id)
    if (!restored.ok) return restored
    const now = await api.get(edited.id)
    return now.ok ? this.#update({ ...again, tag: now.value.tag }, mine, close) : now
  }
}

function isStored(fields: Partial<EntryFields>, { isActive, fields: now }: Stored): boolean {
  return isActive && Object.entries(fields).every(([name, text]) => now[name as keyof EntryFields] === text)
}

interface RemovalOptions {
  /** Gets the list again; false if that failed. */
  load(): Promise<boolean>
  /** Told of the last entry that is there again. */
  onRestored(id: number): void
}

/** The deletions that a message offers to undo. */
export class Removals {
  readonly #options: RemovalOptions
  #undoable: readonly Listed[] = []
  #untell = (): void => {}

  constructor(options: RemovalOptions) { this.#options = options }

  /** Deletes an entry, which is out of the list at once; who may not restore is asked before. False: it was not. */
  async remove(entry: Listed): Promise<boolean> {
    const name = this.#nameOf(entry)
    const isFinal = !rights.may('restorePassword')
    if (isFinal && !await confirm(say('removeOf', { name }), say('removeFinal'), 'remove', 'cancel')) return false
    entries.drop(entry.id)
    show()
    void this.#carryOut(entry, name, isFinal)
    return true
  }

  /** Restores what the message offers to; false if there is nothing. */
  undo(): boolean {
    if (this.#undoable.length === 0) return false
    const all = this.#undoable
    this.forget()
    void this.#restore(all)
    return true
  }

  /** Offers it no longer, as when the session ends. */
  forget(): void {
    this.#undoable = []
    this.#untell()
  }

  async #carryOut(entry: Listed, name: string, isFinal: boolean): Promise<void> {
    const answer = await api.remove(entry.id)
    if (answer.ok) {
      if (isFinal) announce(say('removed', { name }))
      else this.#offer(entry, name)
      return
    }
    if (answer.why === 'unknown') return void tell(say('gone'))
    entries.put(entry)
    // Whether it was done all the same, the list says.
    if (mayBeDone(answer) && await this.#options.load() && entries.get(entry.id) === undefined) {
      return this.#offer(entry, name)
    }
    show()
    tell(sentences(say('notRemoved', { name }), explained(answer)))
  }

  #offer(entry: Listed, name: string): void {
    const all = [...this.#undoable, entry]
    this.#untell()
    const text = all.length === 1 ? say('removed', { name }) : say('removedSome', { count: all.length })
    const onOver = (): void => { this.#undoable = [] }
    this.#untell = tell(text, { label: say('undo'), isBrief: true, act: () => void this.undo(), onOver })
    this.#undoable = all
  }

  async #restore(all: readonly Listed[]): Promise<void> {
    const answers = await Promise.all(all.map(async entry => [entry, await api.restore(entry.id)] as const))
    for (const [entry, { ok }] of answers) if (ok) entries.put(entry)
    show()
    const failed = answers.find(([, { ok }]) => !ok)
    if (failed !== undefined && !failed[1].ok) {
      tell(sentences(say('notRestored', { name: this.#nameOf(failed[0]) }), explained(failed[1])))
    } else {
      announce(say('undone'))
      this.#options.onRestored(all.at(-1)!.id)
    }
  }

  /** The system, with the user if there are others of that system. */
  #nameOf({ sistema, usuario, id }: Listed): string {
    const isAlone = entries.named(sistema).every(other => other.id === id)
    return isAlone ? briefName(sistema) : `${briefName(sistema)} (${briefName(usuario)})`
  }
}
