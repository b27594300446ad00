/**
 * Creates, changes and deletes entries: nothing typed is lost, and nobody else's change is
 * overwritten unseen.
 */
import {
  isWait,
  mayBeDone,
  rowOf,
  type Answer,
  type EntryFields,
  type Listed,
  type Refusal,
  type Sent,
  type Stored
} from './answers.ts'
import { announce, choose, type Choice, confirm, sayWhy, tell } from './dialogs.ts'
import { countDown, make } from './dom.ts'
import type { Changed, Edited } from './editor.ts'
import type { Outcome } from './form.ts'
import { explained, nameOfUser, number, say, when } from './language.ts'
import { briefName, sentences } from './plain.ts'
import { longText } from './rows.ts'
import { copySecret, createSecret, isSecret, type SecretName } from './secrets.ts'
import { api, deleted, entries, page, rights } from './state.ts'
import type { TextName } from './texts-es.ts'

/** Time for a slow service to store the entry. */
const CHECK_AFTER_MS = 1000
const OPEN = ['sistema', 'usuario', 'url', 'grupo'] as const
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
    page.setLine(answer.ok || answer.why !== 'lost')
    if (answer.ok && changes !== entries.changes) continue
    if (answer.ok && answer.value !== undefined && own > lastLoaded) {
      lastLoaded = own
      entries.load(answer.value)
    }
    return answer
  }
}

/** Saves that may have been stored: the ids known before, by editor. */
const unsure = new WeakMap<object, ReadonlySet<number>>()

export function save(changed: Changed, close: () => void): Promise<Outcome> {
  const { edited, fields, session } = changed
  return edited === undefined
    ? create(fields, session, close)
    : update({ ...edited, secrets: changed.secrets, session }, fields, close)
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

function created(id: number, { otp = '', ...fields }: Sent, close: () => void): undefined {
  const row = rowOf({ id, fields: { ...EMPTY, ...fields } }, undefined, true)
  entries.put({ ...row, hasCode: otp !== '' })
  if (!entries.shown.some(entry => entry.id === id)) page.select({})
  close()
  saved(say('created'), fields)
  page.focusOn(id)
}

/** The new password, which the person has typed or drawn, can be copied. */
function saved(text: string, { password }: Sent): void {
  const act = (): void => void copySecret(Promise.resolve(password))
  tell(text, password === undefined ? undefined : { label: say('copy'), act })
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
type Base = Edited & Pick<Changed, 'secrets' | 'session'>

async function update(base: Base, fields: Sent, close: () => void): Promise<Outcome> {
  const { entry, tag, session } = base
  const answer = await api.update(entry.id, fields, tag)
  if (answer.ok && answer.value.isActive) return updated(base, fields, answer.value, close)
  const isOther = answer.ok || answer.why === 'changed' || answer.why === 'unknown'
  if (!answer.ok && (!rights.may('getPassword') || !(isOther || mayBeDone(answer)))) return answer
  // Only the answer may have been lost.
  if (!isOther || unsure.has(session)) {
    unsure.set(session, new Set())
    const now = await api.get(entry.id)
    if (now.ok && isStored(fields, now.value)) return updated(base, fields, now.value, close)
    if (!answer.ok && !isOther)
      return { refusal: answer, note: now.ok ? 'notStored' : 'unsureUpdate' }
  }
  return settle(base, fields, close)
}

function updated(base: Base, fields: Sent, now: Stored, close: () => void): undefined {
  put(now, fields)
  close()
  page.focusOn(now.id)
  const { entry, secrets } = base
  const known: Sent = { ...entry, ...secrets, ...(!entry.hasCode && { otp: '' }) }
  const names = Object.keys(fields) as (keyof Sent)[]
  const former: Sent = Object.fromEntries(names.map(name => [name, known[name]]))
  const name = briefName(now.fields.sistema)
  const text = fields.password === undefined ? say('updated') : say('passwordChanged', { name })
  // What was not asked for cannot be put back.
  if (names.some(one => known[one] === undefined)) return void tell(text) as undefined
  const act = (): void => void putBack(now, former)
  tell(text, { label: say('undo'), isUndo: true, act })
}

async function putBack(now: Stored, former: Sent): Promise<void> {
  const answer = await api.update(now.id, former, now.tag)
  if (!answer.ok) return void tell(sentences(say('notUndone'), explained(answer)))
  put(answer.value, former)
  announce(say('undone'))
}

function put(now: Stored, { password, otp }: Sent): void {
  const row = rowOf(now, entries.get(now.id), password !== undefined)
  entries.put(otp === undefined ? row : { ...row, hasCode: otp !== '' })
  if (password !== undefined) void reload()
}

/** Somebody else has changed, deleted or moved the entry: the person chooses. */
async function settle(base: Base, fields: Sent, close: () => void): Promise<Outcome> {
  const { entry, secrets } = base
  const { id } = entry
  // The tag first: the list that follows is at least as new.
  const tag = await api.tag(id)
  const list = await reload()
  if (!list.ok) return list
  const now = entries.get(id)
  if (now !== undefined && !tag.ok) return tag
  const changedByThem: (keyof EntryFields)[] = OPEN.filter(
    name => now !== undefined && fields[name] === undefined && now[name] !== entry[name]
  )
  if (fields.password === undefined && now?.changed !== entry.changed)
    changedByThem.push('password')
  const choice = await askWhich(id, {
    mine: now === undefined ? { ...openOf(entry), ...secrets, ...fields } : fields,
    theirs: now && openOf(now),
    changedByThem,
    mayKeep: now !== undefined || rights.may('createPassword') || rights.may('restorePassword'),
    read: async name => {
      const stored = await api.get(id)
      return stored.ok ? stored.value.fields[name] : sayWhy(stored)
    }
  })
  if (choice === 'back') return undefined
  if (choice === 'theirs') {
    close()
    page.focusOn(id)
    return undefined
  }
  if (now !== undefined)
    return update({ ...base, tag: tag.ok ? tag.value : undefined }, fields, close)
  const restored = rights.may('restorePassword') ? await api.restore(id) : undefined
  if (restored?.ok === true) {
    const fresh = await api.tag(id)
    return fresh.ok ? update({ ...base, tag: fresh.value }, fields, close) : fresh
  }
  // Whoever makes it anew asks for what was there.
  const old = await api.get(id)
  if (!old.ok && fields.password === undefined) return old
  const known = old.ok ? old.value.fields : { ...openOf(entry), ...secrets }
  return create({ ...known, ...fields }, base.session, close)
}

/** `back` goes on editing, and loses nothing. */
type Version = 'mine' | 'theirs' | 'back'

interface Versions {
  /** What would be saved, and what is stored; a secret that was not asked for is undefined. */
  readonly mine: Partial<EntryFields>
  /** Undefined if the entry is gone. */
  readonly theirs: Partial<EntryFields> | undefined
  /** Fields that only the other person has changed. */
  readonly changedByThem: readonly (keyof EntryFields)[]
  readonly mayKeep: boolean
  /** For a stored secret that the person asks to see. */
  read(name: SecretName): Promise<string | undefined>
}

async function askWhich(id: number, versions: Versions): Promise<Version> {
  const { mine, theirs, changedByThem, mayKeep, read } = versions
  const isGone = theirs === undefined
  const line = (
    name: keyof EntryFields,
    side: 'mine' | 'theirs' | 'changedByThem'
  ): HTMLElement => {
    const value = (side === 'mine' ? mine : theirs)?.[name]
    const element = make(
      'dd',
      { className: side === 'mine' ? side : 'theirs' },
      make('span', { className: 'side' }, say(side))
    )
    if (isSecret(name)) {
      const { text, button } = createSecret(name, async () => value ?? (await read(name)))
      element.append(text, button)
    } else element.append(longText(value || say('nothing')))
    return element
  }
  const sidesOf = (name: keyof EntryFields): Parameters<typeof line>[1][] => {
    if (isGone) return mine[name] ? ['mine'] : []
    if (changedByThem.includes(name)) return ['changedByThem']
    return mine[name] === undefined || mine[name] === theirs[name] ? [] : ['mine', 'theirs']
  }
  const lines = FIELDS.flatMap(name => {
    const sides = sidesOf(name).map(side => line(name, side))
    return sides.length === 0 ? [] : [make('dt', {}, say(name)), ...sides]
  })
  const text = isGone ? say('conflictGone') : (await lastChange(id)) || say('conflictChanged')
  const choice = (value: Version, className: string, label: TextName): Choice<Version> => ({
    className,
    label: say(label),
    value
  })
  const choices = [
    ...(mayKeep ? [choice('mine', 'second', isGone ? 'saveAgain' : 'saveMine')] : []),
    choice('theirs', 'second', isGone ? 'discard' : 'takeTheirs'),
    choice('back', 'main', 'goOn')
  ]
  return choose<Version>(
    'conflict',
    say(isGone ? 'notSaved' : 'conflictTitle'),
    [make('p', {}, text), make('dl', { id: 'versions', className: 'versions' }, ...lines)],
    choices,
    choices.length - 1
  )
}

async function lastChange(id: number): Promise<string> {
  if (!rights.may('historyPassword')) return ''
  const answer = await api.history(id)
  const [last] = answer.ok ? answer.value : []
  if (last === undefined) return ''
  const [first = '', ...rest] = say(`history_${last.change}`)
  const done = first.toUpperCase() + rest.join('')
  const time = when(last.time, true)
  return last.by === null
    ? say('doneAt', { done, time })
    : say('doneBy', { done, time, who: nameOfUser(last.by) })
}

function openOf(entry: Listed): Pick<EntryFields, (typeof OPEN)[number]> {
  const { sistema, usuario, url, grupo } = entry
  return { sistema, usuario, url, grupo }
}

function isStored(sent: Sent, { isActive, fields }: Stored): boolean {
  const names = FIELDS.filter(name => sent[name] !== undefined)
  return isActive && names.every(name => fields[name] === sent[name])
}

let undoable: readonly Listed[] = []
let untell = (): void => {}
let removing: Promise<unknown> = Promise.resolve()

/** Resolves once the deletions so far are over. */
export function removalsOver(): Promise<unknown> {
  return removing
}

/** Asks first if the account cannot restore; false: nothing was deleted. */
export async function removeEntry(entry: Listed): Promise<boolean> {
  const name = nameOf(entry)
  const isFinal = !rights.may('restorePassword')
  if (isFinal && !(await confirm(say('removeOf', { name }), say('removeFinal'), 'remove')))
    return false
  entries.drop(entry.id)
  removing = Promise.all([removing, carryOut(entry, name, isFinal)])
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
  if (answer.ok) return isFinal ? announce(say('removed', { name })) : offerUndo(entry, name)
  if (answer.why === 'unknown') return sayWhy(answer)
  entries.put(entry)
  // An unanswered deletion may have been carried out.
  if (mayBeDone(answer) && (await reload()).ok && entries.get(entry.id) === undefined)
    return offerUndo(entry, name)
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

/** One after the other, within the service's limit. What cannot be restored ends it, and is said. */
export async function restoreAll(all: readonly Listed[]): Promise<void> {
  let done = 0
  const soFar = (): string =>
    done === 0 ? '' : say('restoredSome', { done: number(done), left: number(all.length - done) })
  for (const entry of all) {
    let answer = await api.restore(entry.id)
    while (!answer.ok && isWait(answer)) {
      await waitFor(answer, soFar())
      answer = await api.restore(entry.id)
    }
    if (!answer.ok) {
      const text = say('notRestored', { name: nameOf(entry) })
      return void tell(sentences(soFar(), text, explained(answer)))
    }
    done++
    entries.put(entry)
    deleted.drop(entry.id)
  }
  announce(soFar())
  page.focusOn(all.at(-1)!.id)
}

async function waitFor(refusal: Refusal, soFar: string): Promise<void> {
  const { waitSeconds } = refusal
  const untell = tell(sentences(soFar, explained(refusal)), undefined, true)
  await new Promise<void>(resolve => countDown(waitSeconds, left => left === 0 && resolve()))
  untell()
}

function nameOf({ sistema, usuario, id }: Listed): string {
  const isAlone = entries.named(sistema).every(other => other.id === id)
  return isAlone ? briefName(sistema) : `${briefName(sistema)} (${briefName(usuario)})`
}
