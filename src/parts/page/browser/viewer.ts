/**
 * The dialog that shows an entry, its history, and who knows its password. Secrets are requested only when
 * they are shown.
 */
import type {
  Answer,
  Change,
  Code,
  EntryFields,
  Knower,
  Listed,
  Operation,
  Stored
} from './answers.ts'
import { openable, openDialog, sayWhy } from './dialogs.ts'
import { breakable, iconButton, make, remember, textButton } from './dom.ts'
import { age, dateOf, moment, nameOfUser, number, say, sayCount, when } from './language.ts'
import { hostIn, plainText, shortened, webAddress } from './plain.ts'
import { linkTo, longText, nameOf, tileOf, type Act } from './rows.ts'
import {
  copySecret,
  createCode,
  createSecret,
  isSecret,
  type Secret,
  type SecretName
} from './secrets.ts'
import { api, rights } from './state.ts'
import type { TextName } from './texts-es.ts'

/** A longer name is also shown whole below the title. */
const TITLE_LENGTH = 60

interface ViewerActs {
  act(act: Act, entry: Listed, button: HTMLElement): void
  copyText(text: string, button: HTMLElement): void
  /** Undefined if it may not be shown. */
  read(entry: Listed): Promise<Stored | undefined>
  code(entry: Listed): Promise<Answer<Code>>
}

interface Viewed {
  readonly acts: ViewerActs
  readonly content: HTMLElement
  entry: Listed
  close(): void
}

let viewed: Viewed | undefined

export function entryInView(): Listed | undefined {
  return viewed?.entry
}

export function closeViewer(): void {
  viewed?.close()
}

export function openViewer(entry: Listed, isRevealed: boolean, acts: ViewerActs): void {
  const content = make('div', { className: 'view' })
  const own: Viewed = (viewed = { acts, content, entry, close: () => {} })
  const button = (
    act: 'edit' | 'remove' | 'restore',
    className: string,
    operation: Operation
  ): HTMLElement[] => {
    const made = textButton(className, say(act), () => acts.act(act, own.entry, made))
    made.dataset['act'] = act
    return rights.may(operation) ? [made] : []
  }
  own.close = openDialog({
    id: 'viewer',
    title: hostIn(entry.sistema) ?? plainText(shortened(entry.sistema, TITLE_LENGTH)),
    mark: tileOf(entry.sistema),
    content: [content],
    onClose: () => {
      viewed = undefined
      remember('entry')
    },
    foot:
      entry.deleted !== undefined
        ? button('restore', 'main', 'restorePassword')
        : [
            ...button('remove', 'quiet bad', 'deletePassword'),
            ...button('edit', 'main', 'updatePassword')
          ]
  })
  // The address opens it again.
  remember('entry', String(entry.id))
  const password = fill(own)
  if (isRevealed) void password.show()
  const first =
    content.querySelector<HTMLElement>('[data-act=copy]') ?? content.querySelector('button')
  first?.focus()
}

/** Only if its texts changed: drawing again hides a shown secret. */
export function renewViewer(entry: Listed): void {
  if (viewed?.entry.id !== entry.id) return
  const isOther = (['sistema', 'usuario', 'url', 'grupo', 'hasNotes', 'hasCode'] as const).some(
    name => viewed?.entry[name] !== entry[name]
  )
  viewed.entry = entry
  if (isOther) fill(viewed)
}

function copyOf(
  act: 'copy' | 'copyNotes' | 'copyCode' | 'copyUser' | 'copyUrl',
  label: TextName,
  copy: (button: HTMLElement) => void
): HTMLElement {
  const button = iconButton('copy', say(label), () => copy(button))
  button.dataset['act'] = act
  return button
}

function fill(own: Viewed): Secret {
  const { acts, entry } = own
  const { sistema, usuario, url, grupo, hasNotes, hasCode, deleted } = entry
  const read = async (name: 'password' | 'notas'): Promise<string | undefined> =>
    (await acts.read(own.entry))?.fields[name]
  const password = createSecret('password', () => read('password'))
  const notes = createSecret('notas', () => read('notas'))
  const copyUser = copyOf('copyUser', 'copyUser', button => acts.copyText(usuario, button))
  const copyUrl = copyOf('copyUrl', 'copyUrl', button => acts.copyText(url, button))
  const copyBy = (
    act: 'copy' | 'copyNotes' | 'copyCode',
    label: 'copyThis' | 'copyNotes' | 'copyCode'
  ) => copyOf(act, label, button => acts.act(act, own.entry, button))
  password.button.dataset['act'] = 'reveal'
  const code =
    hasCode && deleted === undefined && rights.may('oneTimeCode')
      ? createCode(() => acts.code(own.entry))
      : undefined
  const isWhole = webAddress(sistema) === undefined && sistema.length <= TITLE_LENGTH
  const maySee = rights.may('getPassword')
  const rows = [
    !isWhole && rowOf('view-system', say('sistema'), longText(sistema), [linkTo(sistema)]),
    rowOf('view-user', say('usuario'), longText(usuario), [copyUser]),
    maySee &&
      rowOf('view-password', say('password'), password.text, [
        password.button,
        copyBy('copy', 'copyThis')
      ]),
    code !== undefined &&
      rowOf('view-code', say('oneTimeCode'), code.text, [
        code.button,
        copyBy('copyCode', 'copyCode')
      ]),
    url !== '' && rowOf('view-url', say('url'), nameOf(url), [linkTo(url), copyUrl]),
    maySee &&
      hasNotes &&
      rowOf('view-notes', say('notas'), notes.text, [
        notes.button,
        copyBy('copyNotes', 'copyNotes')
      ]),
    grupo !== '' && rowOf('view-group', say('grupo'), longText(grupo), [])
  ].filter(row => row !== false)
  own.content.replaceChildren(
    make('dl', { className: 'facts' }, ...rows),
    ...sinceOf(entry),
    ...(rights.may('whoKnows') && deleted === undefined
      ? [knowersOf(entry, button => acts.act('change', own.entry, button))]
      : []),
    ...(rights.may('historyPassword') ? [historyOf(entry.id)] : [])
  )
  return password
}

/** Of a deleted entry: when, and by whom. */
function sinceOf({ changed, deleted, deletedBy }: Listed): readonly HTMLElement[] {
  const time = deleted ?? changed
  if (time === undefined) return []
  const text = say(deleted === undefined ? 'changedSince' : 'deletedSince', {
    age: age(time, true)
  })
  const said = deletedBy === undefined ? text : `${text} · ${nameOfUser(deletedBy)}`
  return [make('p', { id: 'view-since', className: 'hint', title: moment(time) }, said)]
}

function rowOf(
  id: string,
  label: string,
  value: HTMLElement,
  buttons: readonly (HTMLElement | undefined)[]
): HTMLElement {
  const own = buttons.filter(button => button !== undefined)
  return make(
    'div',
    { id },
    make('dt', {}, label),
    make('dd', { className: 'value' }, value),
    make('dd', {}, ...own)
  )
}

/** Who changed what and when. A former secret is asked for one at a time. */
function historyOf(id: number): HTMLElement {
  return openable(
    'history',
    'history',
    () => api.history(id),
    changes => [
      make('ol', {}, ...changes.map((change, i) => itemOf(id, change, changes.slice(i + 1))))
    ]
  )
}

function itemOf(id: number, change: Change, earlier: readonly Change[]): HTMLElement {
  const said = [
    change.by === null ? '' : nameOfUser(change.by),
    change.change === 'updated' ? '' : say(`history_${change.change}`)
  ]
  const head = make(
    'p',
    { title: moment(change.time) },
    make('b', {}, when(change.time)),
    make('span', {}, ...breakable(said.filter(text => text !== '').join(' · ')))
  )
  const names = change.change === 'updated' ? (change.fields ?? []) : []
  return make('li', {}, head, ...names.map(name => replacedBy(id, change, name, earlier)))
}

/** What a change has replaced: an open value and the new one, or a secret to ask for. */
function replacedBy(
  id: number,
  { time, values }: Change,
  name: keyof EntryFields | 'otp',
  earlier: readonly Change[]
): HTMLElement {
  const label = make('span', {}, say(name === 'otp' ? 'code' : name))
  const line = (...content: readonly (HTMLElement | string)[]): HTMLElement =>
    make('div', { className: 'was' }, label, ...content)
  if (name === 'otp') return line(make('span', { className: 'value' }, say('keyChanged')))
  // Behind what was out of sight nothing is known.
  const last = earlier.find(({ fields, change }) => change === 'unseen' || fields?.includes(name))
  const known = last?.change === 'unseen' ? undefined : last
  if (isSecret(name)) {
    if (known === undefined || !rights.may(name === 'notas' ? 'formerNotes' : 'formerPassword'))
      return line(make('span', { className: 'value' }, say(`set_${name}`)))
    return line(...formerOf(id, known.version, name, time))
  }
  const shown = (text = ''): HTMLElement =>
    text === '' ? make('span', { className: 'none' }, say('nothing')) : longText(text)
  if (values === undefined) return line()
  const now = shown(values[name])
  const both =
    last !== undefined && known?.values === undefined
      ? [now]
      : [
          make('del', {}, shown(known?.values?.[name])),
          make('span', { className: 'became' }, '→', now)
        ]
  return line(make('span', { className: 'value' }, ...both))
}

function formerOf(
  id: number,
  version: number,
  name: SecretName,
  time: string
): readonly HTMLElement[] {
  const read = async (): Promise<string | undefined> => {
    const answer = await api.former(name, id, version)
    return answer.ok ? answer.value : sayWhy(answer)
  }
  const { text, button } = createSecret(name, read)
  const label = (act: 'show' | 'copy'): string =>
    say(`${act}_former_${name}`, { time: when(time, true) })
  const copyIt = iconButton('copy', label('copy'), () => void copySecret(read(), copyIt))
  button.ariaLabel = button.title = label('show')
  return [
    make('span', { className: 'value' }, make('small', {}, say('before')), text),
    make('span', {}, button, copyIt)
  ]
}

/** It tells no secret. `change` is for who may change the password. */
function knowersOf(
  { id, exposed = 0 }: Listed,
  change: (button: HTMLElement) => void
): HTMLElement {
  const element = openable(
    'knowers',
    'knownBy',
    () => api.whoKnows(id),
    ({ knows, unrecordedBefore }, count) => {
      count.textContent = number(knows.length)
      const nameOf = ({ user, operator }: Knower): string =>
        user?.name || user?.email || (operator ?? say('hostKnows'))
      const all = [...knows].sort(
        (a, b) =>
          Number(b.removed === true) - Number(a.removed === true) ||
          nameOf(a).localeCompare(nameOf(b))
      )
      const gone = all.filter(({ removed }) => removed === true).length
      return [
        ...(gone > 0 ? [adviceOn(gone, change)] : []),
        ...(all.length === 0 ? [make('p', {}, say('knownByNobody'))] : []),
        make('ul', { className: 'people' }, ...all.map(one => knowerOf(one, nameOf(one)))),
        ...(unrecordedBefore === undefined ? [] : [unrecorded(unrecordedBefore)])
      ]
    }
  )
  element.open = exposed > 0
  return element
}

function adviceOn(gone: number, change: (button: HTMLElement) => void): HTMLElement {
  const button = textButton('link', say('changeIt'), () => change(button))
  return make(
    'p',
    { className: 'advice' },
    make('span', {}, `${sayCount(gone, 'exposedOne', 'exposedMany')}.`),
    ...(rights.may('updatePassword') ? [button] : [])
  )
}

function unrecorded(time: string): HTMLElement {
  return make('p', { className: 'note' }, say('unrecorded', { date: dateOf(time) }))
}

function knowerOf({ user, operator, how, removed }: Knower, name: string): HTMLElement {
  const you = user?.email === api.user?.email && user !== undefined ? ` ${say('you')}` : ''
  const gone = removed === true ? [make('span', { className: 'gone' }, say('noAccess'))] : []
  const below = operator === undefined ? (user?.email ?? '') : say('onServer')
  const who = make('span', {}, make('bdi', {}, plainText(name)), you, ...gone)
  if (below !== '' && below !== name) who.append(make('small', {}, ...breakable(plainText(below))))
  return make('li', {}, who, make('small', {}, say(how === 'equal' ? 'knows_equal' : 'knows_read')))
}
