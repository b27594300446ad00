/** The one bar of the page: search, deleted entries, the menu, and a new entry. */
import { icon, iconButton, make } from './dom.ts'
import { languageNow, say, setLanguage, type Language } from './language.ts'
import { plainText } from './plain.ts'
import { api, entries, isAtList, rights, screenNow } from './state.ts'

/** What its buttons do. */
export interface BarActs {
  create(): void
  showDeleted(): void
  help(): void
  account(): void
  logout(): void
}

interface BarOptions extends BarActs {
  onSearch(query: string): void
  /** A key in the search; true if it was for the list. */
  onKey(key: string): boolean
  onLanguage(): void
}

export class Bar {
  readonly element: HTMLElement = make('header')
  readonly menu: HTMLElement = make('div', { id: 'menu', className: 'menu', popover: 'auto' })
  readonly #options: BarOptions
  readonly #query = make('input', {
    id: 'query', type: 'search', autocomplete: 'off', autocapitalize: 'off', spellcheck: false, dir: 'auto'
  })
  /** What it was made for. */
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
  }

  /** Whether the search is in use. */
  get isSearching(): boolean { return document.activeElement === this.#query && this.#query.value !== '' }

  /** Takes the search back, so that nothing is hidden by it. */
  clearSearch(): void {
    this.#query.value = ''
    this.#options.onSearch('')
  }

  /** Takes it back for good: in Chromium the keys that undo would bring it back for the next person. */
  forget(): void {
    this.clearSearch()
    this.#query.type = 'tel'
    this.#query.type = 'search'
  }

  focusSearch(): void { this.#query.select() }

  /** Makes it again. */
  renew(): void { this.#madeFor = '' }

  /** Brings it to what is known. */
  draw(): void {
    const isList = isAtList() && rights.may('listEntries')
    const isDeleted = screenNow().name === 'deleted'
    const isEmpty = isList && !isDeleted && entries.total === 0
    const mayDo = [rights.may('createPassword'), rights.may('deletedPasswords')]
    const made = [languageNow(), screenNow().name, isEmpty, ...mayDo, api.user?.email].join(' ')
    if (made === this.#madeFor) return
    this.#madeFor = made
    const title = make('h1', {}, icon('mark'), make('span', {}, say('title')))
    const items: HTMLElement[] = [title]
    if (isList && !isEmpty) items.push(this.#searchField())
    if (isList && rights.may('deletedPasswords')) items.push(this.#deletedButton('quiet', isDeleted))
    items.push(this.#menuButton(isList, isDeleted))
    if (isAtList() && !isEmpty && rights.may('createPassword')) {
      const label = make('span', {}, say('create'))
      const create = make('button', { type: 'button', id: 'create', className: 'main' }, icon('new'), label)
      create.addEventListener('click', this.#options.create)
      items.push(create)
    }
    this.element.className = isList ? 'bar' : 'bar bare'
    this.element.replaceChildren(...items)
  }

  #searchField(): HTMLElement {
    this.#query.ariaLabel = say('search')
    this.#query.placeholder = say('searchShort')
    const clear = iconButton('close', say('noHitAction'), () => {
      this.clearSearch()
      this.focusSearch()
    })
    return make('div', { id: 'search', className: 'search', role: 'search' }, icon('search'), this.#query, clear)
  }

  #deletedButton(className: string, isPressed: boolean): HTMLButtonElement {
    const properties = { className: `${className} to-deleted`, ariaPressed: String(isPressed) }
    const button = make('button', { type: 'button', ...properties }, icon('bin'), make('span', {}, say('showDeleted')))
    button.addEventListener('click', () => {
      this.menu.hidePopover()
      this.#options.showDeleted()
    })
    return button
  }

  #menuButton(isList: boolean, isDeleted: boolean): HTMLElement {
    const item = (id: string, drawing: string, text: string, act: () => void): HTMLElement => {
      const button = make('button', { type: 'button', id, className: 'item' }, icon(drawing), make('span', {}, text))
      button.addEventListener('click', () => {
        this.menu.hidePopover()
        act()
      })
      return button
    }
    const items = [item('help', 'help', say('help'), this.#options.help)]
    if (isList && rights.may('deletedPasswords')) items.unshift(this.#deletedButton('item', isDeleted))
    if (api.user !== undefined) {
      items.push(item('show-account', 'user', plainText(api.user.name), this.#options.account),
        item('logout', 'leave', say('logout'), this.#options.logout))
    }
    this.menu.replaceChildren(this.languages(), ...items)
    const button = Object.assign(iconButton('menu', say('menu')), { id: 'show-menu', popoverTargetElement: this.menu })
    // Before it is drawn, so that it is not seen, nor hit, at another place.
    this.menu.onbeforetoggle = event => {
      const isOpen = event instanceof ToggleEvent && event.newState === 'open'
      button.ariaExpanded = String(isOpen)
      const { bottom, right } = button.getBoundingClientRect()
      this.menu.style.setProperty('--top', `${bottom + 4}px`)
      this.menu.style.setProperty('--end', `${document.documentElement.clientWidth - right}px`)
    }
    this.menu.querySelector('button')!.autofocus = true
    return button
  }

  /** The switch of the language. */
  languages(): HTMLElement {
    const button = (language: Language, name: string): HTMLElement => {
      const isOn = languageNow() === language
      const own = make('button', { type: 'button', lang: language, ariaPressed: String(isOn) }, name)
      own.dataset['language'] = language
      own.addEventListener('click', () => {
        this.menu.hidePopover()
        setLanguage(language)
        this.#options.onLanguage()
      })
      return own
    }
    return make('div', { className: 'languages', role: 'group', ariaLabel: say('language') },
      button('es', 'Español'), button('en', 'English'))
  }
}
