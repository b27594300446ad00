/** What stands above the list: search, menu, a new entry; and the filter with the chip that says it is on. */
import { openAccount } from './account.ts'
import { create, toggleDeleted } from './acts.ts'
import { icon, iconButton, isOpening, make, opensMenu } from './dom.ts'
import { type Filter, type State, STATES } from './entries.ts'
import { languageSwitch, openHelp } from './help.ts'
import { languageNow, number, say } from './language.ts'
import { plainText } from './plain.ts'
import { logOut } from './session.ts'
import { api, entries, isAtList, page, rights, screenNow } from './state.ts'

interface BarOptions {
  onSearch(query: string): void
  /** True if the key was for the list. */
  onKey(key: string): boolean
}

export class Bar {
  readonly element: HTMLElement = make('header')
  readonly menu: HTMLElement = make('div', { id: 'menu', className: 'menu', popover: 'auto' })
  readonly #options: BarOptions
  readonly #query = make('input', {
    id: 'query',
    type: 'search',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: false,
    dir: 'auto'
  })
  readonly #menuButton = iconButton('menu', '')
  #madeFor = ''

  constructor(options: BarOptions) {
    this.#options = options
    this.#menuButton.id = 'show-menu'
    opensMenu(this.#menuButton, this.menu)
    this.#query.addEventListener('input', () => options.onSearch(this.#query.value))
    this.#query.addEventListener('keydown', event => {
      if (event.isComposing) return
      if (event.key === 'Escape') this.clearSearch()
      else if (!options.onKey(event.key)) return
      event.preventDefault()
    })
    this.menu.addEventListener(
      'click',
      event => {
        if (event.target instanceof Element && event.target.closest('button') !== null)
          this.menu.hidePopover()
      },
      { capture: true }
    )
  }

  /** `isForGood`: undo must not show the search to the next person. */
  clearSearch(isForGood: boolean = false): void {
    this.#query.value = ''
    if (isForGood) this.#query.type = 'tel'
    this.#query.type = 'search'
    this.#options.onSearch('')
  }

  focusSearch(): void {
    this.#query.select()
  }

  renew(): void {
    this.#madeFor = ''
  }

  draw(): void {
    const isList = isAtList() && rights.may('listEntries')
    const isDeleted = screenNow().name === 'deleted'
    const isEmpty = isAtList() && !isDeleted && entries.total === 0
    const mayCreate = isAtList() && !isEmpty && rights.may('createPassword')
    const mayRestore = isList && rights.may('deletedPasswords') && api.user?.groups?.length !== 0
    const made = [
      languageNow(),
      screenNow().name,
      isEmpty,
      mayCreate,
      mayRestore,
      api.user?.email
    ].join(' ')
    if (made === this.#madeFor) return
    this.#madeFor = made
    this.#menuButton.ariaLabel = this.#menuButton.title = say('menu')
    this.menu.replaceChildren(
      languageSwitch(),
      ...(mayRestore ? [deletedButton('item', isDeleted)] : []),
      item('help', 'help', say('help'), openHelp),
      ...(api.user === undefined
        ? []
        : [
            accountItem(plainText(api.user.name)),
            item('logout', 'leave', say('logout'), () => void logOut())
          ])
    )
    this.menu.querySelector<HTMLElement>('[aria-pressed=true]')!.autofocus = true
    this.element.className = isList ? 'bar' : 'bar bare'
    this.element.replaceChildren(
      make('h1', {}, icon('mark'), make('span', {}, say('title'))),
      ...(isList && !isEmpty ? [this.#searchField()] : []),
      ...(mayRestore ? [deletedButton('quiet', isDeleted)] : []),
      this.#menuButton,
      ...(mayCreate ? [item('create', 'new', say('create'), create, 'main')] : []),
      this.menu
    )
  }

  #searchField(): HTMLElement {
    this.#query.ariaLabel = say('search')
    this.#query.placeholder = say('searchShort')
    const clear = iconButton('close', say('noHitAction'), () => {
      this.clearSearch()
      this.focusSearch()
    })
    return make(
      'div',
      { id: 'search', className: 'search', role: 'search' },
      icon('search'),
      this.#query,
      clear
    )
  }
}

function item(
  id: string,
  drawing: string,
  text: string,
  onclick: () => void,
  className: string = 'item'
): HTMLElement {
  return make(
    'button',
    { type: 'button', id, className, onclick },
    icon(drawing),
    make('span', {}, text)
  )
}

function accountItem(name: string): HTMLElement {
  const own = item('show-account', 'user', say('account'), () => openAccount())
  own.lastElementChild!.append(make('small', {}, name))
  return own
}

function deletedButton(className: string, isPressed: boolean): HTMLElement {
  const button = item('', 'bin', say('showDeleted'), toggleDeleted, `${className} to-deleted`)
  button.removeAttribute('id')
  button.ariaPressed = String(isPressed)
  return button
}

interface Choice {
  readonly text: string
  readonly title?: string
  /** Shown on a phone, which shows no titles. */
  readonly note?: string
  readonly filter: Filter
}

const menu = make('div', {
  id: 'choices',
  className: 'menu choices',
  popover: 'auto',
  role: 'menu'
})
const button = make('button', { type: 'button', id: 'filter', className: 'tool' })
const chip = make('button', { type: 'button', id: 'chip', className: 'chip' })
button.ariaHasPopup = 'menu'
opensMenu(button, menu, () => menu.replaceChildren(...drawn()))
menu.addEventListener('toggle', event => {
  if (isOpening(event)) focusOn(items().find(item => item.ariaChecked === 'true'))
  else menu.replaceChildren()
})
menu.addEventListener('click', ({ target }) => {
  if (target !== menu) menu.hidePopover()
})
menu.addEventListener('keydown', pressed)
chip.addEventListener('click', () => {
  page.select({})
  button.focus()
})

/** The chip in place of the count if a filter is on, and the button with its menu. */
export function filterParts(): readonly [chip: HTMLElement, ...tools: HTMLElement[]] {
  const { filter, shown, total } = entries
  button.replaceChildren(icon('filter'), make('span', {}, say('filter')), icon('down'))
  button.ariaLabel = say('filter')
  menu.ariaLabel = say('filter')
  const names = namesOf(filter)
  button.classList.toggle('on', names.length > 0)
  const some = number(shown.length)
  const rest = say('countShort', { some, count: number(total) }).slice(some.length)
  const ofAll = make('span', { className: 'of' }, rest)
  const name = make('span', {}, some, ofAll, ' · ', make('b', {}, names.join(' · ')))
  chip.replaceChildren(name, icon('close'))
  chip.ariaLabel = `${name.textContent}: ${say('filterOff')}`
  return [chip, button, menu]
}

export function isFiltered({ state, group }: Filter): boolean {
  return state !== undefined || group !== undefined
}

/** "among the exposed in Finance" */
export function whereOf({ state, group }: Filter): string {
  const among = state === undefined ? [] : [say(`among_${state}`)]
  if (group !== undefined)
    among.push(group === '' ? say('withoutGroup') : say('inGroup', { name: plainText(group) }))
  return among.join(' ')
}

function namesOf({ state, person, group }: Filter): readonly string[] {
  const one = person === undefined ? undefined : entries.people.find(({ id }) => id === person)
  const names = state === undefined ? [] : [say(`filter_${state}`)]
  if (one !== undefined) names.push(plainText(one.name || one.email))
  if (group !== undefined) names.push(group === '' ? say('noGroupOf') : plainText(group))
  return names
}

function drawn(): readonly HTMLElement[] {
  const { filter, groups, people } = entries
  const { group } = filter
  const { groups: own } = api.user ?? {}
  const stateOf = (state: State): Choice[] => {
    const ofPeople = state === 'exposed' ? people : []
    return [
      { text: say(`filter_${state}`), note: say(`about_${state}`), filter: { group, state } },
      ...ofPeople.map(({ id, name, email }) => ({
        text: plainText(name || email),
        title: plainText(email),
        filter: { group, state, person: id }
      }))
    ]
  }
  const states: Choice[] = [
    { text: say('filter_none'), filter: { group } },
    ...(Object.keys(STATES) as State[]).flatMap(stateOf)
  ]
  const ofGroup = (text: string, name?: string): Choice => ({
    text,
    filter: { ...filter, group: name }
  })
  const inGroups = [
    ofGroup(say('allGroups')),
    ...groups.map(name => ofGroup(plainText(name), name)),
    ...(own === undefined ? [ofGroup(say('noGroupOf'), '')] : [])
  ]
  const grip = make('span', { className: 'grip' })
  const hasGroups = groups.length > 0 && own?.length !== 1
  return [grip, section('state', states), ...(hasGroups ? [section('grupo', inGroups)] : [])]
}

function section(name: 'state' | 'grupo', choices: readonly Choice[]): HTMLElement {
  const label = make('div', { id: `choices-${name}`, className: 'part' }, say(name))
  const element = make('div', { role: 'group' }, label, ...choices.map(itemOf))
  element.setAttribute('aria-labelledby', label.id)
  return element
}

function itemOf({ text, note = '', title = note, filter }: Choice): HTMLElement {
  const count = entries.count(filter)
  const isOn = (['state', 'person', 'group'] as const).every(
    name => filter[name] === entries.filter[name]
  )
  const item = make(
    'div',
    {
      className: 'item',
      role: 'menuitemradio',
      ariaChecked: String(isOn),
      tabIndex: -1,
      title,
      onclick: () => page.select(filter)
    },
    icon('check'),
    make('span', {}, text, ...(note === '' ? [] : [make('small', {}, note)])),
    make('small', {}, number(count))
  )
  item.classList.toggle('none', count === 0)
  item.classList.toggle('person', filter.person !== undefined)
  return item
}

function items(): readonly HTMLElement[] {
  return [...menu.querySelectorAll<HTMLElement>('[role=menuitemradio]')]
}

function focusOn(item: HTMLElement | undefined): void {
  for (const one of items()) one.tabIndex = one === item ? 0 : -1
  item?.focus()
}

function pressed(event: KeyboardEvent): void {
  const { key, target } = event
  const all = items()
  const at = all.indexOf(target as HTMLElement)
  if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return
  const moves: { readonly [key: string]: number } = {
    ArrowDown: (at + 1) % all.length,
    ArrowUp: (at + all.length - 1) % all.length,
    Home: 0,
    End: all.length - 1
  }
  if (key === 'Tab') return menu.hidePopover()
  if (key === 'Enter') all[at]!.click()
  else if (key === ' ') {
    // It chooses, and stays.
    all[at]!.onclick?.(new PointerEvent('click'))
    menu.replaceChildren(...drawn())
    focusOn(items()[at])
  } else if (moves[key] !== undefined) focusOn(all[moves[key]])
  else if (key.length === 1) {
    const begins = (item: HTMLElement): boolean =>
      item.textContent!.trim().toLowerCase().startsWith(key.toLowerCase())
    focusOn([...all.slice(at + 1), ...all].find(begins) ?? all[at])
  } else return
  event.preventDefault()
  event.stopPropagation()
}
