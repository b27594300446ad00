/**
 * Creates, changes and deletes entries: nothing typed is lost, and nobody else's change is
 * overwritten unseen.
 */
import {
  mayBeDone,
  rowOf,
  type Answer,
  type EntryFields,
  type Listed,
  type Sent,
  type Stored
} from './answers.ts'
import { announce, confirm, tell } from './dialogs.ts'
import type { Changed, Edited } from './editor.ts'
import type { Outcome } from './form.ts'
import { explained, say } from './language.ts'
import { briefName, sentences } from './plain.ts'
import { api, deleted, entries, isAtList, page, rights, show } from './state.ts'
import { askWhich } from './versions.ts'

/** Time for a slow service to store the entry. */
const CHECK_AFTER_MS = 1000
const EMPTY: EntryFields = { sistema: '', usuario: '', password: '', url: '', notas: '', grupo: '' }
const FIELDS = Object.keys(EMPTY) as (keyof EntryFields)[]

let lastAsked = 0
let lastLoaded = 0

/**
 * Asks again if the page itself has changed an entry meanwhile: the answer may be older than the
 * change. An earlier question that is answered later must not show old entries.
 */
export async function reload(): Promise<Answer<unknown>> {
  for (;;) {
    const { changes } = entries
    const own = ++lastAsked
    const answer = await api.list(entries.tag)
    if (answer.ok && changes !== entries.changes) continue
    if (answer.ok && answer.value !== undefined && own > lastLoaded) {
      lastLoaded = own
      entries.load(answer.value)
    }
    if (answer.ok && isAtList()) show()
    return answer
  }
}

/** Creates that may have been stored: the ids known before, by editor. */
const unsure = new WeakMap<object, ReadonlySet<number>>()

export function save(
  { edited, secrets, fields, session }: Changed,
  close: () => void
): Promise<Outcome> {
  return edited === undefined
    ? create(fields, session, close)
    : update({ ...edited, secrets }, fields, close)
}

async function create(fields: Sent, session: object, close: () => void): Promise<Outcome> {
  const before = unsure.get(session)
  if (before !== undefined) {
    const found = await findStored(fields, before)
    if (found === 'unreadable') return 'stillUnsure'
    if (found !== undefined) return created(found, fields, close)
  }
  const known = new Set([...entries.shown, ...entries.named(fields.sistema!)].map(({ id }) => id))
  const answer = await api.create(fields)
  if (answer.ok) return created(answer.value, fields, close)
  if (!mayBeDone(answer)) return answer
  if (!rights.may('listEntries') || !rights.may('getPassword'))
    return { refusal: answer, note: 'cannotCheck' }
  unsure.set(session, known)
  await new Promise(resolve => setTimeout(resolve, CHECK_AFTER_MS))
  const found = await findStored(fields, known)
  if (found === 'unreadable') return { refusal: answer, note: 'unsure' }
  if (found !== undefined) return created(found, fields, close)
  // A slow service may store it yet: the next save looks again.
  return { refusal: answer, note: 'notStored' }
}

function created(id: number, fields: Sent, close: () => void): undefined {
  const { otp = '', ...others } = fields
  const row = rowOf(
    { id, isActive: true, tag: undefined, fields: { ...EMPTY, ...others } },
    undefined,
    true
  )
  entries.put({ ...row, hasCode: otp !== '' })
  if (!entries.shown.some(entry => entry.id === id)) entries.keep()
  close()
  show()
  tell(say('created'))
  page.focusOn(id)
}

async function findStored(
  fields: Sent,
  known: ReadonlySet<number>
): Promise<number | 'unreadable' | undefined> {
  if (!(await reload()).ok) return 'unreadable'
  for (const { id } of entries
    .named(fields.sistema!, fields.usuario)
    .filter(({ id }) => !known.has(id))) {
    const answer = await api.get(id)
    if (!answer.ok) return 'unreadable'
    if (isStored(fields, answer.value)) return id
  }
  return undefined
}

/** What is known of the entry as it was: the secrets only if they were asked for. */
type Base = Edited & Pick<Changed, 'secrets'>

async function update(base: Base, fields: Sent, close: () => void): Promise<Outcome> {
  const {
    entry: { id },
    tag
  } = base
  const answer = await api.update(id, fields, tag)
  if (answer.ok && answer.value.isActive) return updated(base, fields, answer.value, close)
  if (answer.ok) return settle(base, fields, answer.value, close)
  const isOther = answer.why === 'changed' || answer.why === 'unknown'
  if (!rights.may('getPassword') || !(isOther || mayBeDone(answer))) return answer
  const now = await api.get(id)
  // Only the answer may have been lost.
  if (now.ok && isStored(fields, now.value)) return updated(base, fields, now.value, close)
  if (!isOther) return { refusal: answer, note: now.ok ? 'notStored' : 'unsureUpdate' }
  if (!now.ok && now.why !== 'unknown') return now
  return settle(base, fields, now.ok ? now.value : undefined, close)
}

function updated({ secrets }: Base, fields: Sent, now: Stored, close: () => void): undefined {
  put(now, fields)
  close()
  show()
  page.focusOn(now.id)
  const { password } = secrets ?? {}
  if (fields.password === undefined || password === undefined)
    return void tell(say('updated')) as undefined
  const name = briefName(now.fields.sistema)
  const act = (): void => void putBack(now, password)
  tell(say('passwordChanged', { name }), { label: say('undo'), isUndo: true, act })
}

async function putBack(now: Stored, password: string): Promise<void> {
  const answer = await api.update(now.id, { password }, now.tag)
  if (!answer.ok) return void tell(sentences(say('notUndone'), explained(answer)))
  put(answer.value, { password })
  show()
  announce(say('undone'))
}

function put(now: Stored, { password, otp }: Sent): void {
  const known = entries.get(now.id)
  const row = rowOf(now, known, password !== undefined)
  entries.put(otp === undefined ? row : { ...row, hasCode: otp !== '' })
  if (password !== undefined) void reload()
}

/** Somebody else changed or deleted the entry: the person chooses. */
async function settle(
  base: Base,
  fields: Sent,
  theirs: Stored | undefined,
  close: () => void
): Promise<Outcome> {
  const {
    entry: { id, sistema, usuario, url, grupo, changed },
    secrets
  } = base
  const before: Partial<EntryFields> = { sistema, usuario, url, grupo, ...secrets }
  // Fields that this person left alone keep the other person's values.
  const mine = { ...EMPTY, ...before, ...theirs?.fields, ...fields }
  const isGone = theirs?.isActive !== true
  if (isGone) entries.drop(id)
  else put(theirs, {})
  show()
  // The list says when the password was set.
  if (!isGone && secrets === undefined) await reload()
  const isPasswordTheirs = entries.get(id)?.changed !== changed
  const isTheirs = (name: keyof EntryFields): boolean | undefined => {
    if (before[name] !== undefined) return before[name] !== theirs?.fields[name]
    return name === 'password' ? isPasswordTheirs : undefined
  }
  const choice = await askWhich(
    id,
    mine,
    theirs,
    name => fields[name] === undefined && isTheirs(name)
  )
  if (choice === 'back') return undefined
  if (choice === 'theirs') {
    close()
    page.focusOn(id)
    return undefined
  }
  if (!isGone) return update({ ...base, tag: theirs.tag }, fields, close)
  if (theirs === undefined || !rights.may('restorePassword')) return create(mine, {}, close)
  const restored = await api.restore(id)
  if (!restored.ok) return restored
  const now = await api.get(id)
  return now.ok ? update({ ...base, tag: now.value.tag }, mine, close) : now
}

function isStored(sent: Sent, { isActive, fields }: Stored): boolean {
  const names = FIELDS.filter(name => sent[name] !== undefined)
  return isActive && names.every(name => fields[name] === sent[name])
}

let undoable: readonly Listed[] = []
let untell = (): void => {}

/** Asks first if the account cannot restore; false: nothing was deleted. */
export async function removeEntry(entry: Listed): Promise<boolean> {
  const name = nameOf(entry)
  const isFinal = !rights.may('restorePassword')
  if (
    isFinal &&
    !(await confirm(say('removeOf', { name }), say('removeFinal'), 'remove', 'cancel'))
  )
    return false
  entries.drop(entry.id)
  show()
  void carryOut(entry, name, isFinal)
  return true
}

function undoRemovals(): void {
  const all = undoable
  forgetRemovals()
  void restoreAll(all)
}

export function forgetRemovals(): void {
  undoable = []
  untell()
}

async function carryOut(entry: Listed, name: string, isFinal: boolean): Promise<void> {
  const answer = await api.remove(entry.id)
  entries.drop(entry.id)
  show()
  if (answer.ok) return isFinal ? announce(say('removed', { name })) : offerUndo(entry, name)
  if (answer.why === 'unknown') return void tell(say('gone'))
  entries.put(entry)
  // An unanswered deletion may have been carried out.
  if (mayBeDone(answer) && (await reload()).ok && entries.get(entry.id) === undefined)
    return offerUndo(entry, name)
  show()
  tell(sentences(say('notRemoved', { name }), explained(answer)))
}

function offerUndo(entry: Listed, name: string): void {
  const all = [...undoable, entry]
  untell()
  const text =
    all.length === 1 ? say('removed', { name }) : say('removedSome', { count: all.length })
  untell = tell(text, {
    label: say('undo'),
    isUndo: true,
    act: undoRemovals,
    onOver: () => {
      undoable = []
    }
  })
  undoable = all
}

/** Together; of what fails the first is said. */
export async function restoreAll(all: readonly Listed[]): Promise<void> {
  const answers = await Promise.all(
    all.map(async entry => [entry, await api.restore(entry.id)] as const)
  )
  for (const [entry, { ok }] of answers) {
    if (!ok) continue
    entries.put(entry)
    deleted.drop(entry.id)
  }
  show()
  const [failed, answer] = answers.find(([, { ok }]) => !ok) ?? []
  if (failed !== undefined && answer?.ok === false) {
    return void tell(sentences(say('notRestored', { name: nameOf(failed) }), explained(answer)))
  }
  announce(say('undone'))
  page.focusOn(all.at(-1)!.id)
}

function nameOf({ sistema, usuario, id }: Listed): string {
  const isAlone = entries.named(sistema).every(other => other.id === id)
  return isAlone ? briefName(sistema) : `${briefName(sistema)} (${briefName(usuario)})`
}
