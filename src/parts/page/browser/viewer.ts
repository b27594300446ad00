/** The dialog that shows an entry; secrets are requested only when they are shown. */
import { codeOf } from './code.ts'
import type { Listed, Operation, Stored } from './answers.ts'
import { openDialog } from './dialogs.ts'
import { iconButton, make, textButton } from './dom.ts'
import { age, moment, say } from './language.ts'
import { hostIn, plainText, shortened, webAddress } from './plain.ts'
import { createSecret, linkTo, longText, nameOf, tileOf, type Act, type Secret } from './showing.ts'
import { rights } from './state.ts'
import { historyOf, knowersOf } from './versions.ts'

/** A longer name is also shown whole below the title. */
const TITLE_LENGTH = 60

interface ViewerActs {
  act(act: Act, entry: Listed, button: HTMLElement): void
  copyText(text: string, button: HTMLElement): void
  /** Undefined if it may not be shown. */
  read(entry: Listed): Promise<Stored | undefined>
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
    },
    foot:
      entry.deleted !== undefined
        ? button('restore', 'main', 'restorePassword')
        : [
            ...button('remove', 'quiet bad', 'deletePassword'),
            ...button('edit', 'main', 'updatePassword')
          ]
  })
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

function fill(own: Viewed): Secret {
  const { acts, entry } = own
  const { id, sistema, usuario, url, grupo, hasNotes, hasCode, exposed = 0, deleted } = entry
  const read = async (name: 'password' | 'notas'): Promise<string | undefined> =>
    (await acts.read(own.entry))?.fields[name]
  const copyOf = (
    act: 'copy' | 'copyNotes' | 'copyCode' | 'copyUser' | 'copyUrl',
    label: string,
    copy: (button: HTMLElement) => void
  ) => {
    const button = iconButton('copy', label, () => copy(button))
    button.dataset['act'] = act
    return button
  }
  const password = createSecret({ read: () => read('password') })
  const notes = createSecret({ isNotes: true, read: () => read('notas') })
  const copyUser = copyOf('copyUser', say('copyUser'), button => acts.copyText(usuario, button))
  const copyUrl = copyOf('copyUrl', say('copyUrl'), button => acts.copyText(url, button))
  const copy = copyOf('copy', say('copyThis'), button => acts.act('copy', own.entry, button))
  const copyNotes = copyOf('copyNotes', say('copyNotes'), button =>
    acts.act('copyNotes', own.entry, button)
  )
  const copyCode = copyOf('copyCode', say('copyCode'), button =>
    acts.act('copyCode', own.entry, button)
  )
  const code =
    hasCode && deleted === undefined && rights.may('oneTimeCode') ? codeOf(id) : undefined
  const isWhole = webAddress(sistema) === undefined && sistema.length <= TITLE_LENGTH
  const maySee = rights.may('getPassword')
  const rows = [
    !isWhole && rowOf('view-system', say('sistema'), longText(sistema), [linkTo(sistema)]),
    rowOf('view-user', say('usuario'), longText(usuario), [copyUser]),
    maySee && rowOf('view-password', say('password'), password.text, [password.button, copy]),
    code !== undefined &&
      rowOf('view-code', say('oneTimeCode'), code.text, [code.button, copyCode]),
    url !== '' && rowOf('view-url', say('url'), nameOf(url), [linkTo(url), copyUrl]),
    maySee && hasNotes && rowOf('view-notes', say('notas'), notes.text, [notes.button, copyNotes]),
    grupo !== '' && rowOf('view-group', say('grupo'), longText(grupo), [])
  ].filter(row => row !== false)
  own.content.replaceChildren(
    make('dl', { className: 'facts' }, ...rows),
    ...sinceOf(entry),
    ...(rights.may('whoKnows') && deleted === undefined ? [knowersOf(id, exposed > 0)] : []),
    ...(rights.may('historyPassword') ? [historyOf(id)] : [])
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
  const by = deletedBy === undefined ? [] : [` · ${plainText(deletedBy)}`]
  return [make('p', { id: 'view-since', className: 'hint', title: moment(time) }, text, ...by)]
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
