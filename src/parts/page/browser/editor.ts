/** The dialog that creates or changes an entry. It never discards typed text unasked. */
import type { EntryFields, Listed, Sent } from './answers.ts'
import { confirm, openDialog } from './dialogs.ts'
import { grow, make, textButton } from './dom.ts'
import { Form, type Field, type Outcome } from './form.ts'
import { say } from './language.ts'
import { CodeField } from './code.ts'
import { api, entries, rights } from './state.ts'
import { PasswordField, storedLine } from './password-field.ts'

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

export function openEditor(acts: EditorActs, edited?: Edited, typed: Sent = {}): void {
  if (current !== undefined) return
  const { entry } = edited ?? {}
  const maySee = entry !== undefined && rights.may('getPassword')
  const stored: Partial<EntryFields> = entry ?? {}
  const password = new PasswordField(entry && (() => keepPassword()))
  /** Asked for once, and not before the person asks to see or change one. */
  let asked: Promise<EntryFields | undefined> | undefined
  let secrets: EntryFields | undefined
  const readSecrets = async (): Promise<EntryFields | undefined> => {
    asked ??= acts.secretsOf(entry!)
    secrets = await asked
    if (secrets === undefined) asked = undefined
    return secrets
  }
  const inputs = {
    sistema: make('input', { id: 'sistema', dir: 'auto' }),
    usuario: make('input', { id: 'usuario', dir: 'auto', spellcheck: false }),
    url: make('input', { id: 'url', dir: 'ltr', inputMode: 'url', spellcheck: false }),
    ...((entry === undefined || maySee) && {
      notas: make('textarea', { id: 'notas', dir: 'auto', rows: 2 })
    }),
    ...(hasGroups(stored.grupo) && {
      grupo: make('input', { id: 'grupo', dir: 'auto', spellcheck: false })
    })
  }
  const code = new CodeField(entry?.hasCode === true)
  for (const [name, input] of Object.entries(inputs)) {
    input.autocomplete = 'off'
    if (name !== 'notas') input.autocapitalize = 'off'
    input.value = typed[name as Name] ?? stored[name as Name] ?? ''
  }
  const field = (name: keyof typeof inputs, isRequired: boolean): Field[] =>
    inputs[name] === undefined ? [] : [{ name, label: say(name), input: inputs[name], isRequired }]
  const known = make(
    'datalist',
    { id: 'groups' },
    ...knownGroups().map(value => make('option', { value }))
  )
  inputs.grupo?.setAttribute('list', known.id)
  const button = make('button', { className: 'main' }, say('save'))
  const session = {}
  const form = new Form(
    [
      ...field('sistema', true),
      ...field('usuario', true),
      password.field,
      ...field('url', false),
      ...(rights.may('oneTimeCode') ? [code.field] : []),
      ...field('grupo', false),
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
    const changed = changedFields()
    return Object.keys(changed).length === 0 ? undefined : { edited, typed: changed }
  }
  /** A line in place of the field, until the person asks for the field. */
  const keep = (
    name: 'password' | 'notas',
    input: HTMLInputElement | HTMLTextAreaElement
  ): void => {
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
  const keepPassword = (): void => keep('password', password.field.input)
  const discard = async (): Promise<void> => {
    if (await confirm(say('discardTitle'), say('discardText'), 'discard', 'keep')) close()
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

  if (entry?.hasCode === true && typed.otp === undefined) code.keep()
  else code.set(typed.otp ?? '')
  const { notas } = inputs
  if (entry !== undefined && typed.password === undefined) keepPassword()
  if (notas !== undefined && entry?.hasNotes === true && typed.notas === undefined)
    keep('notas', notas)
  const cancel = textButton('second', say('cancel'), () => {
    if (mayClose()) close()
  })
  const close = openDialog({
    id: 'editor',
    title: say(edited === undefined ? 'create' : 'edit'),
    content: [form.element, known],
    foot: [cancel, button],
    mayClose,
    onClose: () => {
      current = undefined
    }
  })
  current = { draft }
  if (typed.password !== undefined) password.set(typed.password)
  if (notas !== undefined) {
    grow(notas)
    notas.addEventListener('input', () => grow(notas))
  }
  inputs.sistema.focus()
}

/** Those that the account is confined to, or that the list has. */
function knownGroups(): readonly string[] {
  return api.user?.groups ?? entries.offers.groups
}

function hasGroups(stored: string = ''): boolean {
  return stored !== '' || knownGroups().length > 0
}
