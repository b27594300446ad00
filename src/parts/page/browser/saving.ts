/** Creates and changes entries: nothing typed is lost, and nothing that another has saved is overwritten unseen. */
import { mayHaveStored, type Acts } from './acts.ts'
import type { Entry, EntryFields, Stored } from './api.ts'
import { askWhich } from './conflict.ts'
import { isModal } from './dialogs.ts'
import type { Changed } from './editor.ts'
import type { Outcome } from './form.ts'
import type { Grid } from './grid.ts'
import { say } from './language.ts'
import { tell } from './messages.ts'
import { api, entries, loaded, rights } from './state.ts'
import { clearSearch } from './view.ts'

/** Between a failure and the look whether the service has stored it all the same. */
const CHECK_AFTER_MS = 1000

/** A create that may have been stored: its fields, and the entries that there were before. */
interface Unsure {
  readonly fields: EntryFields
  readonly known: ReadonlySet<number>
}

interface SavingParts {
  readonly acts: Acts
  readonly grid: Grid
}

/** What becomes of a form that was sent. */
export class Saving {
  readonly #parts: SavingParts
  /** By editing, from when a create is sent until it is known whether it was stored: the session may end before. */
  readonly #unsure = new WeakMap<EntryFields, Unsure>()

  constructor(parts: SavingParts) { this.#parts = parts }

  /** Saves what was typed; `close` closes the dialog, unless that is open on something else by now. */
  async save(changed: Changed, close: () => void): Promise<Outcome> {
    return changed.entry === undefined ? this.#create(changed, close) : this.#update(changed.entry, changed, close)
  }

  async #create(changed: Changed, close: () => void): Promise<Outcome> {
    const { all: fields, before } = changed
    const unsure = this.#unsure.get(before)
    if (unsure !== undefined && rights.may('listPassword')) {
      const found = await this.#findStored(unsure)
      if (found === 'unreadable') return 'stillUnsure'
      if (found !== undefined) {
        const isChanged = JSON.stringify({ ...found, ...fields }) !== JSON.stringify(found)
        if (!isChanged) return this.#created(found, 'wasStored', close)
        return this.#update(found, { ...changed, entry: found, fields }, close)
      }
    }
    const sent = { fields, known: entries.ids() }
    this.#unsure.set(before, sent)
    const answer = await api.create(fields)
    if (answer.ok) return this.#created(answer.value, 'created', close)
    if (!mayHaveStored(answer)) {
      this.#unsure.delete(before)
      return answer
    }
    if (!rights.may('listPassword')) return { refusal: answer, note: 'cannotCheck' }
    const found = await this.#findStored(sent)
    if (found === 'unreadable') return { refusal: answer, note: 'unsure' }
    if (found !== undefined) return this.#created(found, 'wasStored', close)
    // A service that is still writing may store it yet: the next save looks again.
    return { refusal: answer, note: 'notStored' }
  }

  #created(entry: Entry, text: 'created' | 'wasStored', close: () => void): undefined {
    const { acts, grid } = this.#parts
    entries.put(entry)
    close()
    tell(say(text))
    // A dialog that was opened since is left alone.
    if (!isModal() && !entries.shown.some(({ id }) => id === entry.id)) clearSearch()
    acts.show()
    if (!isModal() && (!loaded.is || !grid.focusOn(entry.id, true))) acts.focusList()
  }

  /** Looks whether a create was stored all the same; that may come a moment after the failure. */
  async #findStored({ fields, known }: Unsure): Promise<Entry | 'unreadable' | undefined> {
    await api.pause(CHECK_AFTER_MS)
    entries.expect()
    const answer = await api.list()
    if (!answer.ok) return 'unreadable'
    loaded.is = true
    entries.load(answer.value)
    this.#parts.acts.show()
    return entries.newest(fields, known)
  }

  async #update(entry: Entry, changed: Changed, close: () => void): Promise<Outcome> {
    const { fields, all, tag } = changed
    const answer = await api.update(entry.id, fields, tag)
    if (answer.ok && answer.value.entry.status === 1) return this.#updated(answer.value.entry, close)
    if (answer.ok) return this.#settleConflict(entry, changed, answer.value, close)
    if (answer.why === 'changed' || answer.why === 'unknown') {
      const now = await api.get(entry.id)
      if (!now.ok && now.why !== 'unknown') return now
      const theirs = now.ok ? now.value : undefined
      // What was sent before, and seemed to be lost.
      if (theirs !== undefined && isStored(all, theirs.entry)) return this.#updated(theirs.entry, close)
      return this.#settleConflict(entry, changed, theirs, close)
    }
    if (!mayHaveStored(answer)) return answer
    const now = await api.get(entry.id)
    if (!now.ok) return { refusal: answer, note: 'unsureUpdate' }
    if (isStored(fields, now.value.entry)) return this.#updated(now.value.entry, close)
    return { refusal: answer, note: 'notStored' }
  }

  #updated(entry: Entry, close: () => void): undefined {
    const { acts, grid } = this.#parts
    entries.put(entry)
    close()
    acts.show()
    if (!isModal()) grid.focusOn(entry.id)
    tell(say('updated'))
  }

  /** Somebody else has changed or deleted the entry: the person sees both and says which is to stay. */
  async #settleConflict(
    entry: Entry, changed: Changed, theirs: Stored | undefined, close: () => void
  ): Promise<Outcome> {
    // What this person left alone is as the other one has it.
    const { sistema, usuario, password } = { ...changed.all, ...theirs?.entry, ...changed.fields }
    const mine = { sistema, usuario, password }
    const again = { ...changed, fields: mine, all: mine, tag: theirs?.tag }
    const isGone = theirs === undefined || theirs.entry.status === 0
    if (isGone) entries.drop(entry.id)
    else entries.put(theirs.entry)
    this.#parts.acts.show()
    const choice = await askWhich(entry.id, mine, theirs?.entry)
    if (choice === 'back') return undefined
    if (choice === 'theirs') {
      close()
      if (!isModal() && (isGone || !this.#parts.grid.focusOn(entry.id))) this.#parts.acts.focusList()
      return undefined
    }
    if (!isGone) return this.#update(entry, again, close)
    if (theirs === undefined || !rights.may('restorePassword')) return this.#create(again, close)
    return this.#restoreAs(entry, again, close)
  }

  /** Makes a deleted entry active again, with what was typed. */
  async #restoreAs(entry: Entry, again: Changed, close: () => void): Promise<Outcome> {
    const restored = await api.restore(entry.id)
    if (!restored.ok) return restored
    const now = await api.get(entry.id)
    if (!now.ok) return now
    return this.#update(entry, { ...again, tag: now.value.tag }, close)
  }
}

function isStored(fields: Partial<EntryFields>, now: Entry): boolean {
  return now.status === 1 &&
    Object.entries(fields).every(([name, text]) => now[name as keyof EntryFields] === text)
}
