/** The acts of a person on the entries of the list. */
import {
  rowOf,
  type Answer,
  type Code,
  type EntryFields,
  type Listed,
  type Refusal,
  type Stored
} from './answers.ts'
import { copySecret, copyText } from './secrets.ts'
import { forgetRemovals, reload, removalsOver, removeEntry, restoreAll, save } from './changes.ts'
import { announce, confirm, isModal, sayWhy, tell } from './dialogs.ts'
import { openEditor, type Draft, type Edited } from './editor.ts'
import { isAlike } from './entries.ts'
import { recall, remember } from './dom.ts'
import { explained, say, sayCount } from './language.ts'
import { briefName, sentences } from './plain.ts'
import type { Act } from './rows.ts'
import { api, deleted, entries, isAtList, page, rights, screenNow, show } from './state.ts'
import { closeViewer, entryInView, openViewer, renewViewer } from './viewer.ts'

/** Shorter losses are not told. */
export const LOST_AFTER_MS = 3_000

/** The latest load, which ends the sign of loading. */
let lastLoad: object | undefined

/** Loads the list, in place: dialog, focus and scroll position stay. */
export async function loadList(isAsked: boolean = false): Promise<void> {
  if (screenNow().name === 'deleted') return loadDeleted()
  if (!rights.may('listEntries')) return isAtList() ? undefined : show({ name: 'list' })
  const own = (lastLoad = {})
  page.setLoading(true)
  let answer = await reload()
  if (!answer.ok && answer.why === 'lost' && isAtList()) {
    await new Promise(resolve => setTimeout(resolve, LOST_AFTER_MS))
    if (own === lastLoad) answer = await reload()
  }
  if (own !== lastLoad) return
  lastLoad = undefined
  page.setLoading(false)
  if (answer.ok) return loaded(isAsked)
  if (answer.why === 'forbidden') return show({ name: 'list' })
  if (!isAtList()) return show({ name: 'failed', refusal: answer, retry: () => void loadList() })
  tell(explained(answer), { label: say('retry'), act: () => void loadList(true) })
}

/** A failure is told by the next load that somebody asks for. */
export async function loadQuietly(): Promise<void> {
  if (lastLoad === undefined && rights.may('listEntries') && (await reload()).ok) loaded(false)
}

function loaded(isAsked: boolean): void {
  const viewed = entryInView()
  const now = viewed && entries.get(viewed.id)
  if (now !== undefined) renewViewer(now)
  else if (viewed !== undefined) gone(viewed)
  if (!isAtList()) show({ name: 'list' })
  if (isAsked) announce(say('refreshed'))
}

async function loadDeleted(): Promise<void> {
  const own = (lastLoad = {})
  const all: Listed[] = []
  await removalsOver() // the list may be asked for before a deletion is answered
  for (;;) {
    const answer = await api.deleted(all.at(-1)?.id)
    if (own !== lastLoad || screenNow().name !== 'deleted') return
    if (!answer.ok) return deleted.isLoaded ? sayWhy(answer) : deletedFailed(answer)
    all.push(...answer.value)
    deleted.load({ entries: all })
    if (answer.value.length === 0) return
  }
}

function deletedFailed(refusal: Refusal): undefined {
  const retry = (): void => {
    show({ name: 'deleted' })
    void loadDeleted()
  }
  show({ name: 'failed', refusal, retry })
}

export function stopActs(): void {
  lastLoad = undefined
  forgetRemovals()
}

export function act(asked: Act, entry: Listed, button?: HTMLElement): void {
  if (asked === 'view' || asked === 'reveal') view(entry, asked === 'reveal')
  else if (asked === 'copyUser') void copyText(entry.usuario, button)
  else if (asked === 'copy') copyStored('password', entry, button)
  else if (asked === 'reused' || asked === 'exposed') page.select({ state: asked })
  else if (asked === 'copyNotes') copyStored('notas', entry, button)
  else if (asked === 'copyCode') copyCode(entry, button)
  else if (asked === 'change') void edit(entry, button, true)
  else if (asked !== 'visit') void { edit, remove, restore }[asked](entry, button)
}

const EDITOR = { save, secretsOf } as const

export function create(): void {
  if (rights.may('createPassword') && !isModal()) openEditor(EDITOR)
}

export function resume({ edited, typed }: Draft): void {
  openEditor(EDITOR, edited, typed)
}

export function toggleDeleted(): void {
  deleted.load()
  show({ name: screenNow().name === 'deleted' ? 'list' : 'deleted' })
  if (screenNow().name === 'deleted') void loadDeleted()
  page.toTop()
  page.focus()
}

function view(entry: Listed, isRevealed: boolean): void {
  if (isModal()) return
  openViewer(entry, isRevealed, {
    act,
    copyText: (...asked) => void copyText(...asked),
    read: storedNow,
    code: codeNow
  })
}

/** The entry that the address names, once. */
export function viewAddressed(): void {
  const id = Number(recall('entry') ?? NaN)
  remember('entry')
  const entry = entries.get(id)
  if (entry !== undefined) view(entry, false)
  else if (!Number.isNaN(id)) tell(say('gone'))
}

/** Also of a deleted entry. */
function copyStored(name: 'password' | 'notas', entry: Listed, button?: HTMLElement): void {
  if (rights.may('getPassword'))
    void copySecret(
      busy(button, storedNow(entry)).then(now => now?.fields[name]),
      button
    )
}

/** Its key may have been removed meanwhile. */
async function codeNow({ id }: Listed): Promise<Answer<Code>> {
  const answer = await api.code(id)
  if (!answer.ok && answer.why === 'unknown') void reload()
  return answer
}

function copyCode(entry: Listed, button?: HTMLElement): void {
  void copySecret(
    busy(button, codeNow(entry)).then(answer => (answer.ok ? answer.value.code : sayWhy(answer))),
    button
  )
}

async function edit(entry: Listed, button?: HTMLElement, isChange: boolean = false): Promise<void> {
  const edited = await busy(button, editedOf(entry))
  if (edited === undefined) return
  // Meanwhile the person may have opened something else.
  if (entryInView()?.id === entry.id) closeViewer()
  if (!isModal()) openEditor(EDITOR, edited, {}, isChange)
}

/**
 * Without secrets, and at least as new as its tag: a change in between is a conflict at the save.
 * Undefined, after a message, on failure.
 */
async function editedOf(entry: Listed): Promise<Edited | undefined> {
  if (!rights.may('getPassword')) return { entry, tag: undefined }
  const tag = await api.tag(entry.id)
  if (!tag.ok && tag.why === 'lost') return sayWhy(tag)
  const list = await reload()
  if (!list.ok) return sayWhy(list)
  const now = entries.get(entry.id)
  if (now === undefined) return gone(entry) as undefined
  if (!tag.ok) return sayWhy(tag)
  return { entry: now, tag: tag.value }
}

async function secretsOf(entry: Listed): Promise<EntryFields | undefined> {
  return (await storedNow(entry))?.fields
}

async function remove(entry: Listed): Promise<void> {
  if (!(await removeEntry(entry))) return
  closeViewer()
  page.focus()
}

/** All that are shown: a search says which. */
export async function restoreShown(): Promise<void> {
  const all = deleted.shown
  const title = `${sayCount(all.length, 'restoreOneQuestion', 'restoreAllQuestion')}`
  const names = all
    .slice(0, 8)
    .map(({ sistema }) => briefName(sistema))
    .join(' · ')
  const text = all.length > 8 ? `${names} …` : names
  if (!(await confirm(title, text, 'restore', 'cancel', 'main'))) return
  await restoreAll(all)
  await loadDeleted()
}

async function restore(entry: Listed, button?: HTMLElement): Promise<void> {
  const { id, sistema } = entry
  const answer = await busy(button, api.restore(id))
  const name = briefName(sistema)
  if (!answer.ok) return void tell(sentences(say('notRestored', { name }), explained(answer)))
  if (entryInView()?.id === id) closeViewer()
  deleted.drop(id)
  page.focus()
  tell(say('restored', { name }), {
    label: say('view'),
    act: () => {
      if (screenNow().name === 'deleted') toggleDeleted()
      const now = entries.get(id)
      if (now !== undefined) view(now, false)
    }
  })
  await reload()
}

/** Undefined, after a message, on failure. */
async function storedNow(entry: Listed): Promise<Stored | undefined> {
  const answer = await api.get(entry.id)
  if (!answer.ok && answer.why !== 'unknown') return sayWhy(answer)
  if (screenNow().name === 'deleted' && answer.ok) return answer.value
  if (!answer.ok || !answer.value.isActive) return gone(entry) as undefined
  const now = rowOf(answer.value, entries.get(entry.id) ?? entry)
  if (!isAlike(now, entry)) {
    entries.put(now)
    renewViewer(now)
  }
  return answer.value
}

function gone({ id }: Listed): void {
  if (entryInView()?.id === id) closeViewer()
  entries.drop(id)
  if (!isModal()) page.focus()
  tell(say('gone'))
}

async function busy<T>(button: HTMLElement | undefined, work: Promise<T>): Promise<T> {
  if (button !== undefined) button.ariaBusy = 'true'
  try {
    return await work
  } finally {
    if (button !== undefined) button.ariaBusy = null
  }
}
