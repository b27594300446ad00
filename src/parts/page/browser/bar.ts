/** The one bar of the page: search, deleted entries, the menu, and a new entry. */
import { openAccount } from './account.ts'
import { create, toggleDeleted } from './acts.ts'
import { icon, iconButton, make } from './dom.ts'
import { languageSwitch, openHelp } from './help.ts'
import { languageNow, say } from './language.ts'
import { plainText } from './plain.ts'
import { endSession, logOut } from './session.ts'
import { api, entries, isAtList, rights, screenNow } from './state.ts'

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
  #madeFor = ''

  constructor(options: BarOptions) {
    this.#options = options
    this.#query.addEventListener('input', () => options.onSearch(this.#query.value))
    this.#query.addEventListener('keydown', event => {
      if (event.isComposing) return
      if (event.key === 'Escape') this.clearSearch()
      else if (!options.onKey(event.key)) return
      event.preventDefault()
    })
    addEventListener('resize', () => this.#placeMenu())
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
    const isEmpty = isList && !isDeleted && entries.total === 0
    const mayCreate = isAtList() && !isEmpty && rights.may('createPassword')
    const mayRestore = isList && rights.may('deletedPasswords')
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
    this.menu.replaceChildren(
      languageSwitch(),
      ...(mayRestore ? [deletedButton('item', isDeleted)] : []),
      item('help', 'help', say('help'), openHelp),
      ...(api.user === undefined
        ? []
        : [
            item('show-account', 'user', plainText(api.user.name), () =>
              openAccount(() => endSession('ownChanged'))
            ),
            item('logout', 'leave', say('logout'), () => void logOut())
          ])
    )
    this.menu.querySelector('button')!.autofocus = true
    this.element.className = isList ? 'bar' : 'bar bare'
    this.element.replaceChildren(
      make('h1', {}, icon('mark'), make('span', {}, say('title'))),
      ...(isList && !isEmpty ? [this.#searchField()] : []),
      ...(mayRestore ? [deletedButton('quiet', isDeleted)] : []),
      this.#menuButton(),
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

  /** Before it is drawn: a click could hit it elsewhere. */
  #placeMenu(): void {
    const { bottom = 0, right = 0 } =
      this.element.querySelector('#show-menu')?.getBoundingClientRect() ?? {}
    this.menu.style.setProperty('--top', `${bottom + 4}px`)
    this.menu.style.setProperty('--end', `${document.documentElement.clientWidth - right}px`)
  }

  #menuButton(): HTMLElement {
    const button = Object.assign(iconButton('menu', say('menu')), {
      id: 'show-menu',
      popoverTargetElement: this.menu
    })
    this.menu.onbeforetoggle = event => {
      button.ariaExpanded = String(event instanceof ToggleEvent && event.newState === 'open')
      this.#placeMenu()
    }
    return button
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

function deletedButton(className: string, isPressed: boolean): HTMLElement {
  const button = item('', 'bin', say('showDeleted'), toggleDeleted, `${className} to-deleted`)
  button.removeAttribute('id')
  button.ariaPressed = String(isPressed)
  return button
}
