/** The dialog of one's account: what it allows, its sessions, and the change of one's own password. */
import type { OwnSession } from './answers.ts'
import { confirm, fillWith, openDialog, tell } from './dialogs.ts'
import { breakable, icon, make, textButton } from './dom.ts'
import { Form } from './form.ts'
import { dayOf, explained, hourOf, languageNow, moment, say, when } from './language.ts'
import { briefName, plainText } from './plain.ts'
import { typedSecret } from './secrets.ts'
import { api, rights } from './state.ts'
import type { TextName } from './texts-es.ts'

const NAMED = [
  'listEntries',
  'getPassword',
  'createPassword',
  'updatePassword',
  'deletePassword',
  'restorePassword'
] as const

let onPasswordChanged = (): void => {}

/** `onChanged` is called when the change of the password has ended the session. */
export function startAccount(onChanged: () => void): void {
  onPasswordChanged = onChanged
}

/** `isChange`: to change the own password. */
export function openAccount(isChange: boolean = false): void {
  const { name = '', email = '' } = api.user ?? {}
  const form = make('div')
  const own = ownPassword(form, () => close())
  const close = openDialog({
    id: 'account',
    title: say('account'),
    mayClose: () => form.querySelector('[aria-busy=true]') === null,
    content: [
      make(
        'p',
        { className: 'who' },
        make('strong', {}, plainText(name)),
        make('small', {}, ...breakable(email))
      ),
      make('dl', { className: 'pairs' }, ...pairs()),
      ...(rights.may('ownSessions') ? [sessions()] : []),
      own
    ]
  })
  if (isChange) own.querySelector<HTMLElement>('#show-own')?.click()
}

function pairs(): readonly HTMLElement[] {
  const { groups, secondFactor } = api.user ?? {}
  const allowed = NAMED.filter(operation => rights.may(operation))
  const abilities = new Intl.ListFormat(languageNow()).format(
    allowed.map(operation => say(`ability_${operation}`))
  )
  const factor =
    secondFactor === true
      ? [make('span', { className: 'on-mark' }, icon('check'), say('isOn'))]
      : [say('isOff'), make('small', {}, say('factorBy'))]
  const names = plainText(groups?.join(', ') ?? '') || say('groupsNone')
  const rows: readonly (readonly [string, ...(Node | string)[]])[] = [
    ...(secondFactor === undefined ? [] : [[say('secondFactor'), ...factor] as const]),
    [say('groups'), groups === undefined ? say('groupsAll') : names],
    [say('mayDo'), abilities || say('mayNothing')]
  ]
  return rows.flatMap(([label, ...value]) => [make('dt', {}, label), make('dd', {}, ...value)])
}

function section(
  id: string,
  title: TextName,
  content: HTMLElement,
  link?: HTMLElement
): HTMLElement {
  const heading = make('h3', {}, say(title), ...(link === undefined ? [] : [link]))
  return make('section', { id, className: 'section' }, heading, content)
}

/** The service names sessions in the order in which they began, and ends none that is later. */
function earlier(sessions: readonly OwnSession[]): readonly OwnSession[] {
  return sessions.slice(
    0,
    sessions.findIndex(({ current }) => current)
  )
}

function sinceOf(issued: string): string {
  return say('since', { day: dayOf(issued), hour: hourOf(issued) })
}

/** Pages that are logged in; programs apart, since ending one cannot be undone. */
function sessions(): HTMLElement {
  const element = make('div', { id: 'sessions' })
  const load = (): Promise<void> => fillWith(element, () => api.sessions(), listsOf)
  const end = async (session: OwnSession['id'] | 'others', said: string): Promise<void> => {
    const answer = await api.endSessions(session)
    tell(answer.ok ? said : explained(answer))
    await load()
  }
  const endProgram = async (id: OwnSession['id'], name: string): Promise<void> => {
    const isSure = await confirm(
      say('endProgramTitle', { name }),
      say('endProgramText'),
      'endSession'
    )
    if (isSure) await end(id, say('programEnded', { name }))
  }
  const line = ({ id, name, issued, current }: OwnSession, isPage: boolean): HTMLElement => {
    const filled = { time: when(issued, true), name: briefName(name) }
    const act = current
      ? make('span', { className: 'here' }, say('thisSession'))
      : textButton('link', say(isPage ? 'endSession' : 'endProgram'), () =>
          isPage
            ? void end(id, say('sessionsEnded', { count: 1 }))
            : void endProgram(id, filled.name)
        )
    if (!current) act.ariaLabel = say(isPage ? 'endSessionOf' : 'endProgramOf', filled)
    const what = make('span', { title: moment(issued) })
    if (isPage) what.append(say('pageSession', filled))
    else what.append(plainText(name), make('small', {}, sinceOf(issued)))
    return make('li', {}, what, act)
  }
  const listsOf = (all: readonly OwnSession[]): readonly HTMLElement[] => {
    const sorted = [...all].sort(
      (a, b) => Number(b.current) - Number(a.current) || b.issued.localeCompare(a.issued)
    )
    const isPage = ({ name, current }: OwnSession): boolean => current || name === 'login'
    const pages = sorted.filter(isPage)
    const programs = sorted.filter(one => !isPage(one))
    const others = earlier(all).filter(isPage).length
    const endAll = textButton(
      'link',
      say('endOthers', { count: others }),
      () => void end('others', say('sessionsEnded', { count: others }))
    )
    endAll.id = 'end-others'
    const list = (of: readonly OwnSession[], areIn: boolean): HTMLElement =>
      make('ul', { className: 'lines' }, ...of.map(one => line(one, areIn)))
    return [
      section('pages', 'sessions', list(pages, true), others > 1 ? endAll : undefined),
      ...(programs.length > 0 ? [section('programs', 'programs', list(programs, false))] : [])
    ]
  }
  void load()
  return element
}

/** The form takes the place of a line; `place` holds it while it is there. */
function ownPassword(place: HTMLElement, close: () => void): HTMLElement {
  const note = (...content: readonly (Node | string)[]): HTMLElement =>
    make('p', { className: 'note' }, ...content)
  if (api.user?.hasPassword === false) return section('own', 'password', note(say('noPassword')))
  if (!rights.may('changeOwnPassword')) {
    const command = make('code', {}, 'admin user password EMAIL')
    return section('own', 'password', note(say('askOperator'), ' ', command))
  }
  const show = textButton('link', say('change'), () => {
    const shown = formOf(close, () => {
      place.replaceChildren()
      draw(false)
      show.focus()
    })
    place.replaceChildren(shown)
    draw(true)
    shown.scrollIntoView({ block: 'end' })
    shown.querySelector<HTMLElement>('#current')!.focus()
  })
  show.id = 'show-own'
  show.ariaLabel = say('changeOwn')
  const own = section('own', 'password', place, show)
  const draw = (isOpen: boolean): void => {
    show.hidden = isOpen
    own.querySelector('h3')!.firstChild!.textContent = say(isOpen ? 'changeOwn' : 'password')
  }
  return own
}

function formOf(close: () => void, cancel: () => void): HTMLElement {
  const current = typedSecret('current', 'current-password')
  const fresh = typedSecret('fresh', 'new-password')
  const button = make('button', { className: 'main' }, say('change'))
  const rule = make('p', { className: 'below' }, say('passwordRule'))
  const form = new Form(
    [
      { name: 'password', label: say('currentPassword'), ...current, isRequired: true },
      { name: 'newPassword', label: say('newPassword'), ...fresh, isRequired: true, below: [rule] }
    ],
    button,
    async () => {
      const answer = await api.changePassword(current.input.value, fresh.input.value)
      if (!answer.ok) return answer
      close()
      onPasswordChanged()
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
  const back = textButton('second', say('cancel'), () => {
    if (!form.isBusy) cancel()
  })
  form.element.append(
    make('p', { className: 'note' }, say('changeOwnText')),
    make('div', { className: 'end' }, back, button)
  )
  form.element.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || form.isBusy) return
    event.preventDefault()
    cancel()
  })
  return form.element
}
