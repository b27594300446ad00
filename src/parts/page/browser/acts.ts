/** What a person does with the entries of the list, and what the answers of the service mean. */
import type { Answer, Entry } from './api.ts'
import { CLEAR_AFTER_SECONDS, copyForAWhile, copyForGood } from './clipboard.ts'
import { closeModal, isModal } from './dialogs.ts'
import { find, part } from './dom.ts'
import type { Editor } from './editor.ts'
import type { Grid } from './grid.ts'
import { say } from './language.ts'
import { tell } from './messages.ts'
import { explain, type Notice } from './notice.ts'
import { briefName, sentences } from './plain.ts'
import type { Removals } from './removal.ts'
import type { Act } from './row.ts'
import type { Session } from './session.ts'
import { api, entries, loaded, rights } from './state.ts'
import { show, showProgress } from './view.ts'
import type { Viewer } from './viewer.ts'

/** While a list comes, it is shown again after this time, and ten times as long as showing it has taken. */
const SHOW_AGAIN_MS = 200

interface Parts {
  readonly grid: Grid
  readonly editor: Editor
  readonly viewer: Viewer
  readonly removals: Removals
  readonly notice: Notice
  readonly session: Session
}

/** The acts; `connect` is called once with all that they work on. */
export class Acts {
  #parts!: Parts
  /** The load that was begun last; what an earlier one brings is not shown. */
  #loading: object | undefined
  /** Whether what is shown is the beginning of a list whose rest has never come. */
  #isPart = false

  connect(parts: Parts): void { this.#parts = parts }

  /** Gets the list, shows it as it comes if there was none before, and says what is in the way; true if it is whole. */
  async load(): Promise<boolean> {
    const { notice } = this.#parts
    if (!rights.may('listPassword')) {
      this.show()
      return false
    }
    const loading = {}
    this.#loading = loading
    const isFirst = !loaded.is
    notice.hide()
    entries.expect()
    this.#showLoading(true)
    const answer = await api.list(this.#partTaker(loading))
    if (loading !== this.#loading) return false
    this.#showLoading(false)
    if (answer.ok) {
      loaded.is = true
      this.#isPart = false
      entries.load(answer.value)
    } else if (answer.why !== 'forbidden') {
      // Without a connection nothing that is stored stays in sight.
      if (answer.why === 'lost' && !navigator.onLine) {
        loaded.is = false
        entries.load([])
        this.#parts.grid.hideAll()
        for (const id of ['#viewer', '#trash', '#conflict']) closeModal(find(HTMLDialogElement, id))
      }
      this.#isPart = loaded.is && (isFirst || this.#isPart)
      const shows = this.#isPart ? 'part' : 'all'
      notice.show(answer, loaded.is ? shows : 'nothing', () => void this.load())
    }
    this.show()
    return answer.ok
  }

  /** Forgets a load that is under way, as when the session ends. */
  stopLoading(): void {
    this.#loading = undefined
    this.#showLoading(false)
  }

  do(act: Act, entry: Entry): void { void this[act](entry) }

  /** Shows an entry as it is known, and a moment later as it is now, which somebody else may have changed. */
  async view(entry: Entry): Promise<void> {
    const { viewer } = this.#parts
    viewer.open(entry)
    await this.current(entry)
  }

  /** Shows or hides a password in the list. */
  async reveal(entry: Entry): Promise<void> {
    const { grid } = this.#parts
    if (grid.isRevealed(entry)) return grid.reveal(entry, false)
    const now = await this.#busy(entry, 'reveal', this.permitted(entry))
    if (now !== undefined) grid.reveal(now, true)
  }

  async copy(entry: Entry): Promise<void> {
    const text = this.#busy(entry, 'copy', this.permitted(entry)).then(now => now?.password)
    const outcome = await copyForAWhile(text, () => tell(say('cleared')))
    if (outcome !== undefined) tell(say(outcome, { seconds: CLEAR_AFTER_SECONDS }))
  }

  async copyUser(entry: Entry): Promise<void> {
    const text = this.#busy(entry, 'copyUser', this.permitted(entry)).then(now => now?.usuario)
    const isCopied = await copyForGood(text)
    if (isCopied !== undefined) tell(say(isCopied ? 'userCopied' : 'notCopied'))
  }

  /** Opens the editor on the entry as it is now. */
  async edit(entry: Entry): Promise<void> {
    const { viewer, editor } = this.#parts
    viewer.setBusy(true)
    const now = await this.#busy(entry, 'edit', this.current(entry))
    viewer.setBusy(false)
    if (now === undefined) return
    // Meanwhile the person may have opened something else.
    if (viewer.entry?.id === entry.id) viewer.close()
    if (!isModal()) editor.open(now.entry, now.tag)
  }

  /** Deletes an entry when its message goes, unless that is undone. */
  remove(entry: Entry): void {
    if (!rights.may('deletePassword')) return
    const { removals, grid, viewer } = this.#parts
    grid.reveal(entry, false)
    viewer.close()
    entries.setLeaving(entry.id, true)
    removals.add(entry)
    this.show()
    this.focusList()
  }

  /** Shows an entry again whose deletion was undone. */
  restore(entry: Entry): void {
    entries.setLeaving(entry.id, false)
    this.show()
    if (!isModal()) this.#parts.grid.focusOn(entry.id)
    tell(say('undone'))
  }

  /** Carries a deletion out; false, with a message, if that failed. */
  async carryOut(entry: Entry): Promise<boolean> {
    let answer: Answer<unknown> = await api.remove(entry.id)
    if (mayHaveStored(answer)) {
      const now = await api.get(entry.id)
      if (now.ok && now.value.entry.status === 0) answer = { ok: true, value: undefined }
    }
    if (answer.ok || answer.why === 'unknown') {
      entries.drop(entry.id)
      return true
    }
    entries.setLeaving(entry.id, false)
    if (!this.#parts.session.isOpen) return false
    this.show()
    tell(sentences(say('notRemoved', { name: briefName(entry.sistema) }), ...explain(answer)))
    return false
  }

  /** The entry as it is stored now; undefined, with a message, where that cannot be found out. */
  async permitted(entry: Entry): Promise<Entry | undefined> { return (await this.current(entry))?.entry }

  /** The same, with the tag by which a change finds out whether it still is. */
  async current(entry: Entry): Promise<{ readonly entry: Entry, readonly tag: string | undefined } | undefined> {
    const answer = await api.get(entry.id)
    if (answer.ok) {
      const now = this.#renew(entry, answer.value.entry)
      return now && { entry: now, tag: answer.value.tag }
    }
    // Who may see the list and not ask for one entry has the password already.
    if (answer.why === 'forbidden') return { entry, tag: undefined }
    if (answer.why === 'unknown') return this.drop(entry)
    tell(sentences(...explain(answer)))
    return undefined
  }

  /** Removes an entry that somebody else has deleted. */
  drop(entry: Entry): undefined {
    const { viewer } = this.#parts
    if (viewer.entry?.id === entry.id) viewer.close()
    entries.drop(entry.id)
    this.show()
    if (!isModal()) this.focusList()
    tell(say('gone'))
  }

  /** Puts the focus where a person goes on: into the list, or the search. */
  focusList(): void {
    if (isModal() || !this.#parts.session.isOpen) return
    if (loaded.is && entries.shown.length > 0) this.#parts.grid.focus()
    else if (part('search').checkVisibility()) find(HTMLInputElement, '#query').focus()
    else [...document.querySelectorAll<HTMLElement>('main button, #help')].find(one => one.checkVisibility())?.focus()
  }

  show(): void { show(this.#parts.grid) }

  /** Shows what has come of a first list, as often as that leaves the page time for anything else. */
  #partTaker(loading: object): (some: readonly Entry[], share: number | undefined) => void {
    const isFirst = !loaded.is
    let nextMs = 0
    return (some, share) => {
      const startMs = performance.now()
      if (loading !== this.#loading || startMs < nextMs) return
      showProgress(some.length, share)
      if (isFirst) {
        loaded.is = true
        entries.load(some)
        this.show()
      }
      const endMs = performance.now()
      nextMs = endMs + SHOW_AGAIN_MS + 10 * (endMs - startMs)
    }
  }

  #showLoading(isLoading: boolean): void {
    part('loading').hidden = !isLoading
    part('refresh').ariaBusy = isLoading ? 'true' : null
    showProgress(0, undefined)
  }

  async #busy<T>(entry: Entry, act: Act, work: Promise<T>): Promise<T> {
    this.#parts.grid.setBusy(entry, act, true)
    const done = await work
    this.#parts.grid.setBusy(entry, act, false)
    return done
  }

  #renew(known: Entry, now: Entry): Entry | undefined {
    if (now.status === 0) return this.drop(known)
    if (JSON.stringify(now) === JSON.stringify(known)) return now
    entries.put(now)
    this.#parts.viewer.renew(now)
    this.show()
    return now
  }
}

/** Whether the service may have done what it has not confirmed: it never answered, or failed on the way. */
export function mayHaveStored(answer: Answer<unknown>): boolean {
  return !answer.ok && (answer.why === 'lost' || answer.why === 'failed')
}
