/**
 * The dialog of one's account: what it allows, its sessions, and the change of one's own password.
 */
import type { OwnSession } from './answers.ts'
import { keepFocus, openDialog, tell } from './dialogs.ts'
import { make, textButton } from './dom.ts'
import { Form } from './form.ts'
import { age, explained, moment, say } from './language.ts'
import { plainText } from './plain.ts'
import { typedSecret } from './showing.ts'
import { api, rights } from './state.ts'

const NAMED = [
  'listEntries',
  'getPassword',
  'createPassword',
  'updatePassword',
  'deletePassword',
  'restorePassword'
] as const

/** `onPasswordChanged` is called when the change has ended the session. */
export function openAccount(onPasswordChanged: () => void): void {
  const { name = '', email = '', groups } = api.user ?? {}
  const allowed = NAMED.filter(operation => rights.may(operation))
  const what = (allowed.length > 0 ? allowed : NAMED)
    .map(operation => say(`ability_${operation}`))
    .join(', ')
  const seen =
    groups === undefined
      ? []
      : [
          make(
            'p',
            { className: 'hint' },
            say('accountGroups', { names: plainText(groups.join(', ') || '–') })
          )
        ]
  const mayChange = rights.may('changeOwnPassword')
  const own = mayChange ? ownPassword(() => close(), onPasswordChanged) : undefined
  const close = openDialog({
    id: 'account',
    title: say('account'),
    mayClose: () => own?.isBusy() !== true,
    content: [
      make('p', {}, say('loggedInAs', { name: plainText(name), email })),
      make(
        'p',
        { id: 'account-may', className: 'hint' },
        say(allowed.length > 0 ? 'accountMay' : 'limits', { what })
      ),
      ...seen,
      ...(rights.may('ownSessions') ? [sessions()] : []),
      own?.element ??
        make(
          'p',
          { id: 'who-can', className: 'hint' },
          say('askOperator'),
          ' ',
          make('code', {}, 'admin user password EMAIL')
        )
    ]
  })
}

function ownPassword(
  close: () => void,
  onChanged: () => void
): { readonly element: HTMLElement; isBusy(): boolean } {
  const current = typedSecret('current', 'current-password')
  const fresh = typedSecret('fresh', 'new-password')
  const button = make('button', { className: 'main' }, say('changeOwn'))
  const form = new Form(
    [
      { name: 'password', label: say('currentPassword'), ...current, isRequired: true },
      { name: 'newPassword', label: say('newPassword'), ...fresh, isRequired: true }
    ],
    button,
    async () => {
      const answer = await api.changePassword(current.input.value, fresh.input.value)
      if (!answer.ok) return answer
      close()
      onChanged()
      return undefined
    }
  )
  // Password managers learn the account from it.
  form.element.prepend(
    make('input', {
      className: 'unseen',
      autocomplete: 'username',
      tabIndex: -1,
      ariaHidden: 'true',
      readOnly: true,
      value: api.user?.email
    })
  )
  form.element.append(button)
  const element = make(
    'details',
    { id: 'own' },
    make('summary', { id: 'show-own' }, say('changeOwn')),
    make('p', { className: 'hint' }, say('changeOwnText')),
    form.element
  )
  element.addEventListener('toggle', () => {
    if (element.open) current.input.focus()
  })
  return { element, isBusy: () => form.isBusy }
}

/** Asked for when it is opened. */
function sessions(): HTMLElement {
  const list = make('ul')
  const element = make('details', { id: 'sessions' }, make('summary', {}, say('sessions')), list)
  const load = async (): Promise<void> => {
    const answer = await api.sessions()
    if (!element.open || !element.isConnected) return
    list.replaceChildren(
      ...(answer.ok ? itemsOf(answer.value, end) : [make('li', {}, explained(answer))])
    )
    keepFocus()
  }
  const end = async (session: OwnSession['id'] | 'others'): Promise<void> => {
    const answer = await api.endSessions(session)
    if (!answer.ok) tell(explained(answer))
    await load()
  }
  element.addEventListener('toggle', () => {
    if (!element.open) return list.replaceChildren()
    list.replaceChildren(make('li', {}, say('loading')))
    void load()
  })
  return element
}

function itemsOf(
  all: readonly OwnSession[],
  end: (session: OwnSession['id'] | 'others') => Promise<void>
): readonly HTMLElement[] {
  const rows = all.map(({ id, name, issued, current }) => {
    const kind = name === 'login' ? say('aLogin') : plainText(name)
    const what = current ? say('thisSession') : kind
    const since = make('span', { className: 'hint', title: moment(issued) }, age(issued, true))
    const button = current ? [] : [textButton('link', say('endSession'), () => void end(id))]
    return make('li', {}, make('span', {}, what), since, ...button)
  })
  if (all.filter(({ current }) => !current).length < 2) return rows
  return [
    ...rows,
    make(
      'li',
      {},
      Object.assign(
        textButton('link', say('endOthers'), () => void end('others')),
        { id: 'end-others' }
      )
    )
  ]
}
