/** The dialog that creates an entry, or changes one. What was typed is only discarded when asked. */
import type { EntryFields } from './answers.ts'
import { confirm, openDialog } from './dialogs.ts'
import { make, textButton } from './dom.ts'
import { Form, type Field, type Outcome } from './form.ts'
import { say } from './language.ts'
import { PasswordField } from './password-field.ts'

/** An entry that is edited, and the version of it that was opened. */
export interface Edited {
  readonly id: number
  readonly tag: string | undefined
  /** As it is stored; its secrets are not known to an account that may change an entry and not get it. */
  readonly fields: Partial<EntryFields>
}

/** What was typed, and into what; without an entry, for a new one. */
export interface Draft {
  readonly edited: Edited | undefined
  readonly typed: Partial<EntryFields>
}

/** What is to be saved: the fields that were changed; all of them for a new entry. */
export interface Changed {
  readonly edited: Edited | undefined
  readonly fields: Partial<EntryFields>
  /** Another one each time that the editor is opened. */
  readonly session: object
}

type Save = (changed: Changed, close: () => void) => Promise<Outcome>
type Name = keyof EntryFields

/** The editor that is open. */
let current: { draft(): Draft | undefined } | undefined

/** What was typed and not saved; undefined if there is nothing to lose. */
export function draftNow(): Draft | undefined { return current?.draft() }

/**
 * Opens it on a version of an entry, or for a new one; with what was typed before. `save` closes it, unless it is open
 * on something else by then.
 */
export function openEditor(save: Save, edited?: Edited, typed: Partial<EntryFields> = {}): void {
  if (current !== undefined) return
  const stored = edited?.fields ?? { url: '', notas: '' }
  const password = new PasswordField(edited && (stored.password ?? ''), () => keepPassword())
  const inputs = {
    sistema: make('input', { id: 'sistema', dir: 'auto' }),
    usuario: make('input', { id: 'usuario', dir: 'auto', spellcheck: false }),
    url: make('input', { id: 'url', dir: 'ltr', inputMode: 'url', spellcheck: false }),
    ...stored.notas !== undefined && { notas: make('textarea', { id: 'notas', dir: 'auto', rows: 2 }) }
  }
  for (const [name, input] of Object.entries(inputs)) {
    input.autocomplete = 'off'
    if (name !== 'notas') input.autocapitalize = 'off'
    input.value = typed[name as Name] ?? stored[name as Name] ?? ''
  }
  const field = (name: keyof typeof inputs, isRequired: boolean): Field[] =>
    inputs[name] === undefined ? [] : [{ name, label: say(name), input: inputs[name], isRequired }]
  const button = make('button', { className: 'main' }, say('save'))
  const session = {}
  const form = new Form([
    ...field('sistema', true), ...field('usuario', true), password.field, ...field('url', false),
    ...field('notas', false)
  ], button, async () => {
    const changed = changedFields()
    if (edited !== undefined && Object.keys(changed).length === 0) return close() as undefined
    const fields = edited === undefined ? { sistema: '', usuario: '', password: '', ...changed } : changed
    return save({ edited, fields, session }, close)
  })

  /** The fields that are not as they were. An input takes no line breaks: what it cannot hold is not changed by it. */
  const changedFields = (): Partial<EntryFields> => {
    const changed = Object.entries(inputs).map(([name, { value }]) => [name as Name, value] as const)
      .filter(([name, value]) => value !== heldBy(name, edited?.fields[name] ?? ''))
    if (password.typed !== undefined && (password.typed !== '' || edited !== undefined)) {
      changed.push(['password', password.typed])
    }
    return Object.fromEntries(changed)
  }
  const draft = (): Draft | undefined => {
    const changed = changedFields()
    return Object.keys(changed).length === 0 ? undefined : { edited, typed: changed }
  }
  /** The line of the stored password in the place of the field; "Change" makes the field. */
  const keepPassword = (): void => {
    const place = password.field.input.closest('.field')!
    const line = password.line(edited?.fields.password !== undefined, () => {
      line.replaceWith(place)
      password.focus()
    })
    place.replaceWith(line)
    if (form.element.isConnected) line.querySelector<HTMLElement>('#change')?.focus()
  }
  const discard = async (): Promise<void> => {
    if (await confirm(say('discardTitle'), say('discardText'), 'discard', 'keep')) close()
  }
  /** One step back: out of the generator, or out of the dialog; while it is saved there is no way back. */
  const mayClose = (): boolean => {
    if (form.isBusy || password.closeGenerator()) return false
    const unsaved = draft()?.typed ?? {}
    if (Object.entries(unsaved).every(([name, text]) => name === 'password' && text === '')) return true
    void discard()
    return false
  }
  // Enter takes what is generated while the generator is open; with Ctrl it saves from anywhere.
  form.element.addEventListener('submit', event => {
    if (!password.isGenerating) return
    event.preventDefault()
    event.stopImmediatePropagation()
    password.useGenerated()
  }, { capture: true })
  form.element.addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.submit()
  })

  if (edited !== undefined && typed.password === undefined) keepPassword()
  const cancel = textButton('second', say('cancel'), () => { if (mayClose()) close() })
  const close = openDialog({
    id: 'editor', title: say(edited === undefined ? 'create' : 'edit'), content: [form.element],
    foot: [cancel, button], mayClose, onClose: () => { current = undefined }
  })
  current = { draft }
  if (typed.password !== undefined) password.set(typed.password)
  inputs.sistema.focus()
}

/** A text as its input has it. */
function heldBy(name: Name, text: string): string {
  return name === 'notas' ? text.replace(/\r\n?/g, '\n') : text.replace(/[\r\n]/g, '')
}
