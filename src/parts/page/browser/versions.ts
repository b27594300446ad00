/**
 * The history of an entry, who knows its password, and the choice between two versions in a
 * conflict.
 */
import type { Change, EntryFields, Knower, Stored } from './answers.ts'
import { copySecret } from './copying.ts'
import { openDialog, tell } from './dialogs.ts'
import { iconButton, make, textButton } from './dom.ts'
import { age, explained, moment, say } from './language.ts'
import { plainText, sentences } from './plain.ts'
import { createSecret, longText } from './showing.ts'
import { api, rights } from './state.ts'

type Name = keyof EntryFields

const FIELDS: readonly Name[] = ['sistema', 'usuario', 'password', 'url', 'notas', 'grupo']

/**
 * Who changed what and when, asked for when it is opened; each former value only when it is asked
 * for.
 */
export function historyOf(id: number): HTMLElement {
  const list = make('ol')
  const details = make('details', { id: 'history' }, make('summary', {}, say('history')), list)
  details.addEventListener('toggle', async () => {
    if (!details.open) return list.replaceChildren()
    list.replaceChildren(make('li', {}, say('loading')))
    const answer = await api.history(id)
    if (!details.open || !details.isConnected) return
    list.replaceChildren(
      ...(answer.ok
        ? answer.value.map(change => itemOf(id, change))
        : [make('li', {}, explained(answer))])
    )
  })
  return details
}

function valueOf(name: Name, text: string): readonly HTMLElement[] {
  if (name !== 'password' && name !== 'notas') return [longText(text)]
  if (text === '') return [make('span', {}, '–')]
  const secret = createSecret({ isNotes: name === 'notas', read: () => text })
  return [secret.text, secret.button]
}

function itemOf(id: number, { version, time, by, change, fields = [], values }: Change): HTMLElement {
  const facts = [say(`history_${change}`), plainText(by ?? '')].filter(text => text !== '')
  const head = make(
    'p',
    {},
    make('span', { title: moment(time) }, age(time, true)),
    ` · ${facts.join(' · ')}`
  )
  const labelOf = (name: Name | 'otp'): string => say(name === 'otp' ? 'oneTimeKey' : name)
  const linesOf = (name: Name | 'otp'): readonly HTMLElement[] => {
    if (name === 'otp') return []
    if (name !== 'password' && name !== 'notas') return valueOf(name, values?.[name] ?? '')
    const operation = name === 'password' ? 'formerPassword' : 'formerNotes'
    return rights.may(operation) ? formerOf(id, version, name) : []
  }
  return make(
    'li',
    {},
    head,
    ...fields.map(name =>
      make(
        'p',
        { className: 'line' },
        labelOf(name),
        ...linesOf(name)
      )
    )
  )
}

function formerOf(
  id: number,
  version: number,
  name: 'password' | 'notas'
): readonly HTMLElement[] {
  const read = async (): Promise<string | undefined> => {
    const answer = await api.former(id, version, name)
    return answer.ok ? answer.value : (void tell(explained(answer)) as undefined)
  }
  const { text, button } = createSecret({ isNotes: name !== 'password', read })
  const copyIt = iconButton('copy', say('copyFormer'), () => void copySecret(read(), copyIt))
  button.ariaLabel = button.title = say('revealFormer')
  return [text, button, copyIt]
}

/** Asked for when it is opened; it tells no secret. */
export function knowersOf(id: number, isExposed: boolean): HTMLElement {
  const list = make('ul')
  const details = make('details', { id: 'knowers' }, make('summary', {}, say('knownBy')), list)
  details.addEventListener('toggle', async () => {
    if (!details.open) return list.replaceChildren()
    list.replaceChildren(make('li', {}, say('loading')))
    const answer = await api.whoKnows(id)
    if (!details.open || !details.isConnected) return
    if (!answer.ok) return list.replaceChildren(make('li', {}, explained(answer)))
    const { knows, unrecordedBefore } = answer.value
    const notes =
      unrecordedBefore === undefined ? [] : [say('unrecorded', { time: moment(unrecordedBefore) })]
    if (knows.length === 0) notes.unshift(say('knownByNobody'))
    list.replaceChildren(
      ...knows.map(knowerOf),
      ...notes.map(text => make('li', { className: 'hint' }, text))
    )
  })
  details.open = isExposed
  return details
}

function knowerOf({ user, operator, how, removed }: Knower): HTMLElement {
  const name =
    user?.email ??
    (operator === undefined ? say('hostKnows') : say('operatorKnows', { name: operator }))
  const gone = removed === true ? [make('span', { className: 'gone' }, say('mayNoLonger'))] : []
  const who = make('bdi', { title: plainText(user?.name ?? '') }, plainText(name))
  return make('li', {}, who, ` · ${say(`knows_${how}`)} `, ...gone)
}

/** `back` goes on editing, and loses nothing. */
export type Choice = 'mine' | 'theirs' | 'back'

/**
 * `theirs` is undefined if the entry is gone for good. `isTheirs`: whether only the other person
 * changed a field; undefined if that is not known.
 */
export async function askWhich(
  id: number,
  mine: EntryFields,
  theirs: Stored | undefined,
  isTheirs: (name: Name) => boolean | undefined
): Promise<Choice> {
  const isGone = theirs?.isActive !== true
  const text = sentences(say(isGone ? 'conflictGone' : 'conflictChanged'), await lastChange(id))
  const lines = FIELDS.filter(
    name => mine[name] !== '' || (theirs?.fields[name] ?? '') !== ''
  ).flatMap(name =>
    linesOf(name, mine[name], isGone ? undefined : theirs.fields[name], isTheirs(name))
  )
  return new Promise(resolve => {
    let choice: Choice = 'back'
    const button = (className: string, label: string, own: Choice): HTMLButtonElement => {
      const made = textButton(className, label, () => {
        choice = own
        close()
      })
      made.id = `take-${own}`
      return made
    }
    const back = button('second', say('keep'), 'back')
    const isWhole = theirs !== undefined || mine.password !== ''
    const mayKeep =
      !isGone || (isWhole && (rights.may('createPassword') || rights.may('restorePassword')))
    const close = openDialog({
      id: 'conflict',
      title: say('conflictTitle'),
      onClose: () => resolve(choice),
      content: [
        make('p', {}, text),
        make('dl', { id: 'versions', className: 'versions' }, ...lines)
      ],
      foot: [
        back,
        button('second', say(isGone ? 'discard' : 'takeTheirs'), 'theirs'),
        ...(mayKeep ? [button('main', say(isGone ? 'saveAgain' : 'saveMine'), 'mine')] : [])
      ]
    })
    back.focus()
  })
}

async function lastChange(id: number): Promise<string> {
  if (!rights.may('historyPassword')) return ''
  const answer = await api.history(id)
  const [last] = answer.ok ? answer.value : []
  if (last === undefined) return ''
  const who = last.by === null ? '' : `, ${plainText(last.by)}`
  return `${moment(last.time)}${who}: ${say(`history_${last.change}`)}`
}

function linesOf(
  name: Name,
  mine: string,
  theirs: string | undefined,
  isTheirs: boolean | undefined
): readonly HTMLElement[] {
  const line = (side: 'mine' | 'theirs' | 'both' | 'changedByThem', text: string): HTMLElement =>
    make(
      'dd',
      { className: side === 'changedByThem' ? 'theirs' : side },
      make('span', { className: 'side' }, say(side)),
      ...valueOf(name, text)
    )
  const term = make('dt', {}, say(name))
  if (mine === theirs && isTheirs === undefined) return [term, line('theirs', theirs)]
  if (mine === theirs) return [term, line(isTheirs === true ? 'changedByThem' : 'both', mine)]
  return [term, line('mine', mine), ...(theirs === undefined ? [] : [line('theirs', theirs)])]
}
