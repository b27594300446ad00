/**
 * Asks for the texts of one language alone, while the other modules arrive: a script of its own. It
 * exports a promise and does not wait: Safari runs what imports a waiting module before its end.
 */
const TEXTS = { es: () => import('./texts-es.ts'), en: () => import('./texts-en.ts') }

export type Language = keyof typeof TEXTS
export type Texts = typeof import('./texts-en.ts').TEXTS

export async function textsIn(language: Language): Promise<Texts> {
  return (await TEXTS[language]()).TEXTS
}

/** The browser's language, unless the address has another. */
export const preferred: Language =
  [new URLSearchParams(location.search).get('lang') ?? '', ...navigator.languages]
    .map(tag => tag.slice(0, 2))
    .find(tag => tag === 'es' || tag === 'en') === 'es'
    ? 'es'
    : 'en'

export const first: Promise<Texts> = textsIn(preferred)
