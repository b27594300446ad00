/** The language of the page: the browser's, unless the address or a person chooses another. */
import { recall, remember } from './address.ts'
import { TEXTS, type TextName } from './texts.ts'

type Language = keyof typeof TEXTS

let language = preferred()
const listeners: (() => void)[] = []

/** The text of a name, with what is to be filled in. */
export function say(name: TextName, filled: { readonly [name: string]: string | number } = {}): string {
  return TEXTS[language][name].replace(/\{(\w+)\}/g, (_whole, key: string) => String(filled[key]))
}

/** A number as it is written in this language. */
export function number(value: number): string { return value.toLocaleString(language) }

/** A moment as it is written in this language. */
export function moment(time: string): string { return new Date(time).toLocaleString(language) }

/** Calls a function now, and again when the language has changed. */
export function inEachLanguage(show: () => void): void {
  listeners.push(show)
  show()
}

/** Lets the person switch, and puts the fixed texts of the page in place. */
export function startLanguage(): void {
  for (const button of document.querySelectorAll<HTMLElement>('[data-language]')) {
    button.addEventListener('click', () => {
      language = button.dataset['language'] === 'en' ? 'en' : 'es'
      remember('lang', language)
      for (const show of listeners) show()
    })
  }
  inEachLanguage(showFixed)
}

function showFixed(): void {
  document.documentElement.lang = language
  document.title = say('title')
  for (const element of document.querySelectorAll<HTMLElement>('[data-text]')) {
    element.textContent = say(element.dataset['text'] as TextName)
  }
  for (const element of document.querySelectorAll<HTMLElement>('[data-label]')) {
    const text = say(element.dataset['label'] as TextName)
    element.ariaLabel = text
    if (element.classList.contains('icon')) element.title = text
  }
  for (const element of document.querySelectorAll<HTMLInputElement>('[data-placeholder]')) {
    element.placeholder = say(element.dataset['placeholder'] as TextName)
  }
  for (const button of document.querySelectorAll<HTMLElement>('[data-language]')) {
    button.ariaPressed = String(button.dataset['language'] === language)
  }
}

function preferred(): Language {
  const known = [recall('lang'), ...navigator.languages].map(tag => tag?.slice(0,
    2)).find(tag => tag === 'es' || tag === 'en')
  return known === 'es' || known === 'en' ? known : 'en'
}
