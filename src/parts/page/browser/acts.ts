/** The acts of a person on the entries of the list. */
import { rowOf, type Listed, type Stored } from './answers.ts'
import { forgetRemovals, reload, removeEntry, save } from './changes.ts'
import { clearNow, copy } from './clipboard.ts'
import { announce, isModal, sayCopied, tell } from './dialogs.ts'
import { openEditor, type Draft, type Edited } from './editor.ts'
import { isAlike } from './entries.ts'
import { explained, say } from './language.ts'
import { briefName, sentences } from './plain.ts'
import type { Act } from './showing.ts'
import { api, deleted, entries, isAtList, page, rights, screenNow, show } from './state.ts'
import { closeViewer, entryInView, openViewer, renewViewer } from './viewer.ts'

/** Shorter losses are not told. */
export const LOST_AFTER_MS = 3_000

/** The latest load, which ends the sign of loading. */
let lastLoad: object | undefined

/** Loads the list, in place: dialog, focus and scroll position stay. */
export async function loadList(isAsked: boolean = false): Promise<void> {
  if (screenNow().name === 'deleted') return loadDeleted()
  if (!rights.may('listEntries')) return show(isAtList() ? undefined : { name: 'list' })
  const own = lastLoad = {}
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

function loaded(isAsked: boolean): void {
  const viewed = entryInView()
  const now = viewed && entries.get(viewed.id)
  if (now !== undefined) renewViewer(now)
  else if (viewed !== undefined) gone(viewed)
  show(isAtList() ? undefined : { name: 'list' })
  if (isAsked) announce(say('refreshed'))
}

async function loadDeleted(): Promise<void> {
  const own = lastLoad = {}
  const all: Listed[] = []
  for (;;) {
    const answer = await api.deleted(all.at(-1)?.id)
    if (own !== lastLoad || screenNow().name !== 'deleted') return
    if (!answer.ok) return void tell(explained(answer))
    all.push(...answer.value)
    deleted.load({ entries: all })
    show()
    if (answer.value.length === 0) return
  }
}

export function stopActs(): void {
  lastLoad = undefined
  forgetRemovals()
}

export function act(asked: Act, entry: Listed, button?: HTMLElement): void {
  if (asked === 'view' || asked === 'reveal') view(entry, asked === 'reveal')
  else if (asked === 'copyUser') void copyText(entry.usuario, button)
  else if (asked === 'copy') void copySecret('password', entry, button)
  else if (asked === 'keepReused') page.keep({ by: 'reused' })
  else if (asked === 'keepExposed') page.keep({ by: 'exposed' })
  else if (asked === 'copyNotes') void copySecret('notas', entry, button)
  else void { edit, remove, restore }[asked](entry, button)
}

export function create(): void { if (rights.may('createPassword') && !isModal()) openEditor(save) }

export function resume({ edited, typed }: Draft): void { openEditor(save, edited, typed) }

export function toggleDeleted(): void {
  deleted.load()
  show({ name: screenNow().name === 'deleted' ? 'list' : 'deleted' })
  if (screenNow().name === 'deleted') void loadDeleted()
  page.toTop()
  page.focus()
}

function view(entry: Listed, isRevealed: boolean): void {
  if (isModal()) return
  openViewer(entry, isRevealed, { act, copyText: (...asked) => void copyText(...asked), read: storedNow })
}

async function copySecret(name: 'password' | 'notas', entry: Listed, button?: HTMLElement): Promise<void> {
  if (!rights.may('getPassword')) return
  const text = busy(button, storedNow(entry)).then(now => now?.fields[name])
  const isCopied = await copy(text, outcome => {
    if (outcome === 'cleared') announce(say('cleared'))
    else tell(say('maybeCopied'), { label: say('clear'), act: () => void clearClipboard() })
  })
  if (isCopied !== undefined) tellCopied(isCopied, button)
}

async function copyText(text: string, button?: HTMLElement): Promise<void> {
  tellCopied(await copy(Promise.resolve(text)) === true, button)
}

async function clearClipboard(): Promise<void> { if (await clearNow()) announce(say('cleared')) }

function tellCopied(isCopied: boolean, button: HTMLElement | undefined): void {
  if (!isCopied) tell(say('notCopied'))
  else if (button === undefined) announce(say('copied'))
  else sayCopied(button)
}

async function edit(entry: Listed, button?: HTMLElement): Promise<void> {
  const { id, sistema, usuario, url, grupo, hasCode } = entry
  let edited: Edited = { id, tag: undefined, hasCode, fields: { sistema, usuario, url, grupo } }
  if (rights.may('getPassword')) {
    const now = await busy(button, storedNow(entry))
    if (now === undefined) return
    edited = { id, tag: now.tag, hasCode, fields: now.fields }
  }
  // Meanwhile the person may have opened something else.
  if (entryInView()?.id === id) closeViewer()
  if (!isModal()) openEditor(save, edited)
}

async function remove(entry: Listed): Promise<void> {
  if (!await removeEntry(entry)) return
  closeViewer()
  page.focus()
}

async function restore({ id, sistema }: Listed, button?: HTMLElement): Promise<void> {
  const answer = await busy(button, api.restore(id))
  const name = briefName(sistema)
  if (!answer.ok) return void tell(sentences(say('notRestored', { name }), explained(answer)))
  deleted.drop(id)
  show()
  announce(say('restored', { name }))
  page.focus()
  await reload()
}

/** Undefined, after a message, on failure. */
async function storedNow(entry: Listed): Promise<Stored | undefined> {
  const answer = await api.get(entry.id)
  if (!answer.ok && answer.why !== 'unknown') return void tell(explained(answer)) as undefined
  if (!answer.ok || !answer.value.isActive) return gone(entry) as undefined
  const now = rowOf(answer.value, entries.get(entry.id) ?? entry)
  if (!isAlike(now, entry)) {
    entries.put(now)
    renewViewer(now)
    show()
  }
  return answer.value
}

function gone({ id }: Listed): void {
  if (entryInView()?.id === id) closeViewer()
  entries.drop(id)
  show()
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
