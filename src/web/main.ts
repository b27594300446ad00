/** The page: what the person does, what the service answers, and what is then to be seen. */
import { Api, type Answer, type Entry, type EntryFields, type Operation, type Refusal } from './api.ts'
import { CLEAR_AFTER_SECONDS, copyForAWhile } from './clipboard.ts'
import { find } from './dom.ts'
import { Editor } from './editor.ts'
import { Entries } from './entries.ts'
import { Form, type Outcome } from './form.ts'
import { Grid } from './grid.ts'
import { inEachLanguage, number, say, startLanguage } from './language.ts'
import { Notice, toast } from './notice.ts'
import { plainText } from './plain.ts'
import { Removal } from './removal.ts'
import type { TextName } from './texts.ts'

/** How long the typing pauses before the number of hits is read out. */
const SPOKEN_AFTER_MS = 600

const api = new Api()
const entries = new Entries()
const query = find(HTMLInputElement, '#query')
const loginPart = find(HTMLElement, '#login')
const blank = find(HTMLElement, '#blank')
/** What the token was refused for want of an ability; the contract has no other way to learn that. */
const denied = new Set<Operation>()
/** Whether the list was ever got, by this session. */
let isLoaded = false
let spokenTimer: ReturnType<typeof setTimeout> | undefined

startLanguage()
const notice = new Notice()
const grid = new Grid((act, entry) => void { copy, edit, remove: askToRemove }[act](entry))
const editor = new Editor(save)
const removal = new Removal(remove)
const loginForm = new Form(find(HTMLFormElement, '#login form'), login)

function part(id: string): HTMLElement { return find(HTMLElement, `#${id}`) }

/** Gets the list, and says what is in the way of that. */
async function load(): Promise<boolean> {
  notice.hide()
  part('loading').hidden = isLoaded
  const answer = await api.list()
  part('loading').hidden = true
  const refusal = settle('list', answer)
  if (answer.ok) {
    isLoaded = true
    entries.load(answer.value)
  } else if (refusal !== undefined && refusal.why !== 'unable') {
    notice.show(refusal, !isLoaded, () => void load())
  }
  if (loginPart.hidden) show()
  return answer.ok
}

/** What an answer means for the whole page; a refusal that is left to whoever asked. */
function settle(operation: Operation, answer: Answer<unknown>): Refusal | undefined {
  if (answer.ok) return undefined
  if (answer.why === 'login') {
    leave(api.isLoggedIn ? 'ended' : 'loginNote')
    return undefined
  }
  if (answer.why === 'unable') {
    denied.add(operation)
    showAbilities()
  }
  return answer
}

/** Forgets everything and asks for a login; the note says why. */
function leave(note: TextName): void {
  api.forget()
  editor.close()
  removal.close()
  notice.hide()
  entries.load([])
  grid.reset()
  denied.clear()
  isLoaded = false
  query.value = ''
  entries.search('')
  for (const id of ['tools', 'list', 'blank', 'loading', 'logout', 'limits']) part(id).hidden = true
  loginPart.hidden = false
  noteAtLogin(note)
  find(HTMLInputElement, '#email').focus()
}

function noteAtLogin(note: TextName): void {
  part('login-note').dataset['text'] = note
  part('login-note').textContent = say(note)
}

async function login(texts: { readonly [name: string]: string }): Promise<Outcome> {
  const answer = await api.login(texts['email']!, texts['password']!)
  if (!answer.ok) return answer.why === 'login' ? 'badLogin' : answer.why === 'invalid' ? 'badEmail' : answer
  find(HTMLFormElement, '#login form').reset()
  loginPart.hidden = true
  await load()
  query.focus()
  return undefined
}

async function logout(): Promise<void> {
  const leaving = api.logout()
  leave('loggedOut')
  const answer = await leaving
  if (!answer.ok && answer.why !== 'login') noteAtLogin('notRevoked')
}

async function save(entry: Entry | undefined, fields: Partial<EntryFields>, close: () => void): Promise<Outcome> {
  if (entry === undefined) {
    const refusal = settle('create', await api.create(fields as EntryFields))
    if (refusal !== undefined) return refusal
    if (!loginPart.hidden) return undefined
    close()
    toast(say('created'))
    // The service does not say which entry it has made.
    if (!denied.has('list')) await load()
    // The button that opened the dialog may be gone.
    if (document.activeElement === document.body) query.focus()
    return undefined
  }
  const answer = await api.update(entry.id, fields)
  const refusal = settle('update', answer)
  const isGone = answer.ok ? answer.value.status === 0 : answer.why === 'unknown'
  if (!answer.ok && !isGone) return refusal
  close()
  if (!answer.ok || isGone) return forget(entry)
  renew(answer.value)
  toast(say('updated'))
  return undefined
}

/** Opens the dialog on the entry as it is now, which somebody else may have changed, or on what is known of it. */
async function edit(entry: Entry): Promise<void> {
  const answer = await api.get(entry.id)
  if (answer.ok ? answer.value.status === 0 : answer.why === 'unknown') { forget(entry); return }
  if (!answer.ok && answer.why === 'login') { settle('get', answer); return }
  if (answer.ok && JSON.stringify(answer.value) !== JSON.stringify(entry)) renew(answer.value)
  // Meanwhile the person may be at something else.
  if (document.querySelector('dialog[open]') === null) editor.open(answer.ok ? answer.value : entry)
}

/** Shows an entry as it is now, and focuses its row. */
function renew(entry: Entry): void {
  entries.put(entry)
  show()
  grid.focusOn(entry.id)
}

function askToRemove(entry: Entry): void { removal.open(entry) }

async function remove(entry: Entry, close: () => void): Promise<Outcome> {
  const refusal = settle('remove', await api.remove(entry.id))
  if (refusal !== undefined && refusal.why !== 'unknown') return refusal
  if (!loginPart.hidden) return undefined
  entries.drop(entry.id)
  close()
  show()
  focusList()
  toast(say('removed'))
  return undefined
}

/** Drops an entry that somebody else has deleted. */
function forget(entry: Entry): undefined {
  entries.drop(entry.id)
  show()
  focusList()
  toast(say('gone'))
}

async function copy(entry: Entry): Promise<void> {
  const outcome = await copyForAWhile(entry.password, () => toast(say('cleared')))
  toast(say(outcome, { seconds: CLEAR_AFTER_SECONDS }))
}

function focusList(): void {
  if (entries.shown.length > 0) grid.focus()
  else query.focus()
}

function showAbilities(): void {
  const what = [...denied].map(operation => say(`ability_${operation}`)).join(', ')
  part('limits').textContent = say('limits', { what })
  part('limits').hidden = denied.size === 0
  part('create').hidden = denied.has('create')
  grid.renew(denied)
}

/** Brings the document to what is known. */
function show(): void {
  const isSome = entries.shown.length > 0
  part('tools').hidden = !isLoaded && !denied.has('list')
  part('logout').hidden = !api.isLoggedIn
  part('list').hidden = !isLoaded
  part('grid').hidden = !isSome
  grid.show(entries.shown)
  blank.hidden = isSome || !isLoaded
  showBlank()
  showCount()
}

function showBlank(): void {
  const isEmpty = entries.total === 0
  const mayCreate = !denied.has('create')
  find(HTMLElement, 'h2', blank).textContent = say(isEmpty ? 'emptyTitle' : 'noHitTitle')
  find(HTMLElement, 'p', blank).textContent = isEmpty
    ? say(mayCreate ? 'emptyText' : 'emptyOnly')
    : say('noHitText', { query: plainText(query.value) })
  const button = find(HTMLButtonElement, 'button', blank)
  button.textContent = say(isEmpty ? 'emptyAction' : 'noHitAction')
  button.hidden = isEmpty && !mayCreate
  find(SVGUseElement, 'use', blank).setAttribute('href', isEmpty ? '#i-key' : '#i-search')
}

function showCount(): void {
  const [some, all] = [number(entries.shown.length), number(entries.total)]
  const text = entries.total === 1 && entries.shown.length === 1 ? say('countOne')
    : say(some === all ? 'countAll' : 'countSome', { some, all })
  part('count').textContent = text
  clearTimeout(spokenTimer)
  spokenTimer = setTimeout(() => {
    part('spoken').textContent = blank.hidden ? text : find(HTMLElement, 'h2', blank).textContent
  }, SPOKEN_AFTER_MS)
}

function search(): void {
  entries.search(query.value)
  show()
}

function clearSearch(): void {
  query.value = ''
  search()
  query.focus()
}

query.addEventListener('input', search)
query.addEventListener('keydown', event => {
  if (event.key === 'ArrowDown' && entries.shown.length > 0) { event.preventDefault(); grid.focus() }
  if (event.key === 'Escape') clearSearch()
})
part('create').addEventListener('click', () => editor.open())
find(HTMLButtonElement, 'button', blank).addEventListener('click', () => {
  if (entries.total === 0) editor.open()
  else clearSearch()
})
// Whoever goes back to a page that was left must not find the session of somebody else in it.
addEventListener('pageshow', event => { if (event.persisted) location.reload() })
part('refresh').addEventListener('click', () => void load())
part('logout').addEventListener('click', () => void logout())
inEachLanguage(() => {
  notice.renew()
  loginForm.clear()
  showAbilities()
  if (isLoaded) show()
})
void load()
