/** The dialog that creates or changes an entry. It never discards typed text unasked. */
import type { EntryFields, Listed, Sent } from './answers.ts'
import { confirm, openDialog } from './dialogs.ts'
import { grow, icon, make, textButton } from './dom.ts'
import { CodeField, optional, PasswordField, storedLine } from './fields.ts'
import { Form, type Field, type Outcome } from './form.ts'
import { say } from './language.ts'
import { briefName, plainText } from './plain.ts'
import { api, entries, rights } from './state.ts'

/** An entry as it was when the editor opened. `tag` is undefined if the account may not read it. */
export interface Edited {
  readonly entry: Listed
  readonly tag: string | undefined
}

/** For a new entry if `edited` is undefined. */
export interface Draft {
  readonly edited: Edited | undefined
  readonly typed: Sent
}

/**
 * The changed fields; all fields of a new entry. `secrets`: of the edited entry, if the person has
 * asked for them.
 */
export interface Changed {
  readonly edited: Edited | undefined
  readonly secrets: EntryFields | undefined
  readonly fields: Sent
  /** Different each time that the editor opens. */
  readonly session: object
}

export interface EditorActs {
  /** Closes the editor, unless that shows another entry meanwhile. */
  save(changed: Changed, close: () => void): Promise<Outcome>
  /** Undefined, after a message, on failure. */
  secretsOf(entry: Listed): Promise<EntryFields | undefined>
}

type Name = keyof EntryFields

let current: { draft(): Draft | undefined } | undefined

/** Undefined if there is nothing to lose. */
export function draftNow(): Draft | undefined {
  return current?.draft()
}

/** `isChange`: to change the password of the entry. */
export function openEditor(
  acts: EditorActs,
  edited?: Edited,
  typed: Sent = {},
  isChange: boolean = false
): void {
  if (current !== undefined) return
  const { entry } = edited ?? {}
  const maySee = entry !== undefined && rights.may('getPassword')
  const stored: Partial<EntryFields> = entry ?? {}
  const password = new PasswordField(entry && (() => putPasswordAway()))
  /** Asked for once, and not before the person asks to see or change one. */
  let asked: Promise<EntryFields | undefined> | undefined
  let secrets: EntryFields | undefined
  const readSecrets = async (): Promise<EntryFields | undefined> => {
    asked ??= acts.secretsOf(entry!)
    secrets = await asked
    if (secrets === undefined) asked = undefined
    return secrets
  }
  const group = groupField(entry)
  const preset = group?.input.value
  const inputs: { readonly [name in Name]?: Field['input'] } = {
    sistema: make('input', { id: 'sistema', dir: 'auto' }),
    usuario: make('input', { id: 'usuario', dir: 'auto', spellcheck: false }),
    url: make('input', { id: 'url', dir: 'ltr', inputMode: 'url', spellcheck: false }),
    ...((entry === undefined || maySee) && {
      notas: make('textarea', { id: 'notas', dir: 'auto', rows: 2 })
    }),
    ...(group !== undefined && { grupo: group.input })
  }
  const code = new CodeField(entry?.hasCode === true)
  for (const [name, input] of Object.entries(inputs)) {
    input.autocomplete = 'off'
    if (name !== 'notas') input.autocapitalize = 'off'
    const text = typed[name as Name] ?? stored[name as Name]
    if (text !== undefined) input.value = text
  }
  group?.input.dispatchEvent(new Event('input'))
  const field = (name: keyof typeof inputs, isRequired: boolean): Field[] =>
    inputs[name] === undefined
      ? []
      : [
          {
            name,
            label: say(name),
            input: inputs[name],
            isRequired,
            ...(!isRequired && { aside: optional() })
          }
        ]
  const button = make('button', { className: 'main' }, say('save'))
  const session = {}
  const form = new Form(
    [
      ...field('sistema', true),
      ...field('usuario', true),
      password.field,
      ...field('url', false),
      ...(rights.may('oneTimeCode') ? [code.field] : []),
      ...(group === undefined ? [] : [group]),
      ...field('notas', false)
    ],
    button,
    async () => {
      const changed = changedFields()
      if (edited !== undefined && Object.keys(changed).length === 0) return close() as undefined
      const fields =
        edited === undefined ? { sistema: '', usuario: '', password: '', ...changed } : changed
      await asked
      return acts.save({ edited, secrets, fields, session }, close)
    }
  )

  /**
   * An input drops line breaks: that alone is no change. Undefined: notes that nobody has asked
   * for.
   */
  const heldBy = (name: Name): string | undefined => {
    if (name !== 'notas') return (stored[name] ?? '').replace(/[\r\n]/g, '')
    return entry?.hasNotes === true ? secrets?.notas.replace(/\r\n?/g, '\n') : ''
  }
  const changedFields = (): Sent => {
    const changed = Object.entries(inputs)
      .filter(([name, { value, isConnected }]) => isConnected && value !== heldBy(name as Name))
      .map(([name, { value }]) => [name as Name, value] as const)
    if (password.typed !== undefined && (password.typed !== '' || edited !== undefined)) {
      changed.push(['password', password.typed])
    }
    return { ...Object.fromEntries(changed), ...(code.typed !== undefined && { otp: code.typed }) }
  }
  const draft = (): Draft | undefined => {
    const { grupo, ...others } = changedFields()
    const isChosen = grupo !== undefined && (grupo !== preset || edited !== undefined)
    const changed = isChosen ? { ...others, grupo } : others
    return Object.keys(changed).length === 0 ? undefined : { edited, typed: changed }
  }
  /** A line in place of the field, until the person asks for the field. */
  const putAway = (name: 'password' | 'notas', input: Field['input']): void => {
    const place = input.closest('.field')!
    const change = async (): Promise<void> => {
      // The old password is for "Undo".
      const read = maySee ? readSecrets() : undefined
      if (name === 'notas') {
        const known = await read
        if (known === undefined || !line.isConnected) return
        input.value = known.notas
      }
      line.replaceWith(place)
      if (input instanceof HTMLTextAreaElement) grow(input)
      input.focus()
    }
    const read = async (): Promise<string | undefined> => (await readSecrets())?.[name]
    const line = storedLine(name, maySee ? read : undefined, () => void change())
    place.replaceWith(line)
    if (form.element.isConnected) line.querySelector<HTMLElement>('.link:last-child')?.focus()
  }
  const putPasswordAway = (): void => putAway('password', password.field.input)
  const discard = async (): Promise<void> => {
    if (await confirm(say('discardTitle'), say('discardText'), 'discard', 'goOn')) close()
  }
  /** Not during a save. */
  const mayClose = (): boolean => {
    if (form.isBusy) return false
    const unsaved = draft()?.typed ?? {}
    if (Object.entries(unsaved).every(([name, text]) => name === 'password' && text === ''))
      return true
    void discard()
    return false
  }
  form.element.addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.submit()
  })

  if (entry?.hasCode === true && typed.otp === undefined) code.putAway()
  else code.set(typed.otp ?? '')
  const { notas } = inputs
  if (entry !== undefined && typed.password === undefined) putPasswordAway()
  if (notas !== undefined && entry?.hasNotes === true && typed.notas === undefined)
    putAway('notas', notas)
  const cancel = textButton('second', say('cancel'), () => {
    if (mayClose()) close()
  })
  const close = openDialog({
    id: 'editor',
    title:
      entry === undefined ? say('createTitle') : say('editOf', { name: briefName(entry.sistema) }),
    content: [form.element],
    foot: [cancel, button],
    mayClose,
    onClose: () => {
      current = undefined
    }
  })
  current = { draft }
  if (typed.password !== undefined) password.set(typed.password)
  if (notas instanceof HTMLTextAreaElement) {
    grow(notas)
    notas.addEventListener('input', () => grow(notas))
  }
  if (isChange) form.element.querySelector<HTMLElement>('#change-password')?.click()
  else inputs.sistema!.focus()
}

/**
 * Says who will see the entry: a choice for whoever is confined to groups, and otherwise a text with the
 * known ones. Undefined if there are no groups.
 */
function groupField(entry: Listed | undefined): Field | undefined {
  const { groups } = api.user ?? {}
  const known = groups ?? entries.groups
  const stored = entry?.grupo ?? ''
  if (stored === '' && known.length === 0) return undefined
  const { group = '' } = entries.filter
  const preset = entry === undefined ? group : stored
  const choices = known.map(value => make('option', { value }, plainText(value)))
  const all = make('datalist', { id: 'groups' }, ...choices)
  const input =
    groups === undefined
      ? make('input', { id: 'grupo', dir: 'auto', spellcheck: false, value: preset })
      : selectOf(choices, groups.length === 1 ? groups[0]! : preset)
  if (groups === undefined) input.setAttribute('list', all.id)
  const below = make('p', { className: 'below', id: 'grupo-hint' })
  input.addEventListener('input', () => below.replaceChildren(...hintOf(input.value, known)))
  return {
    name: 'grupo',
    label: say('grupo'),
    input,
    missing: 'chooseWho',
    isRequired: groups !== undefined,
    ...(groups === undefined && { aside: optional() }),
    beside: [icon('down')],
    below: [below, all]
  }
}

function selectOf(choices: readonly HTMLOptionElement[], preset: string): HTMLSelectElement {
  const none = make('option', { value: '', hidden: true }, say('chooseGroup'))
  const select = make('select', { id: 'grupo', required: true }, none, ...choices)
  select.value = preset
  return select
}

function hintOf(name: string, known: readonly string[]): readonly (HTMLElement | string)[] {
  const isConfined = api.user?.groups !== undefined
  if (name === '') return [say(isConfined ? 'seenByThat' : 'seenByAll')]
  if (known.includes(name)) return [say('seenBy', { name: plainText(name) })]
  return [make('b', {}, say('newGroup')), ` ${say('newGroupText')}`]
}
