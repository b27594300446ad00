/** Asks for the texts of one language alone, while the other modules arrive: a script of its own. */
const TEXTS = { es: () => import('./texts-es.ts'), en: () => import('./texts-en.ts') }

export type Language = keyof typeof TEXTS

export async function textsIn(language: Language): Promise<typeof first> {
  return (await TEXTS[language]()).TEXTS
}

/** The browser's language, unless the address has another. */
export const preferred: Language =
  [new URLSearchParams(location.search).get('lang') ?? '', ...navigator.languages]
    .map(tag => tag.slice(0, 2))
    .find(tag => tag === 'es' || tag === 'en') === 'es'
    ? 'es'
    : 'en'

export const first: typeof import('./texts-en.ts').TEXTS = (await TEXTS[preferred]()).TEXTS
