/** Names of groups: what a name is, and how the journal spells it. */
import { MAX_GROUP_CHARACTERS } from '../limits.ts'

/** Commas part names in lists, `@` is for addresses, `*` for all; the others are not seen. */
const OUTSIDE_OF_NAMES = /[,@*\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

/** As names are kept: trimmed, in Unicode's form NFC. Undefined if it cannot be a name. */
export function groupName(given: string): string | undefined {
  const name = given.trim().normalize('NFC')
  const isName =
    name !== '' && [...name].length <= MAX_GROUP_CHARACTERS && !OUTSIDE_OF_NAMES.test(name)
  return isName ? name : undefined
}

/** Names that differ only in case are one. */
function folded(name: string): string {
  return name.toUpperCase().toLowerCase()
}

/**
 * The names that a journal has, each with a small number; 0 stands for no group. `before` has
 * further names.
 */
export class GroupNames {
  readonly #before: GroupNames | undefined
  readonly #names: (string | undefined)[] = [undefined]
  readonly #numbers = new Map<string, number>()
  /** By folded name: the first of its spellings. */
  readonly #spellings = new Map<string, string>()

  constructor(before?: GroupNames) {
    this.#before = before
  }

  add(names: readonly string[] = []): void {
    for (const name of names) this.numberOf(name)
  }

  /** Adds a new name. */
  numberOf(name: string | undefined): number {
    if (name === undefined) return 0
    const known = this.#numbers.get(name)
    if (known !== undefined) return known
    const key = folded(name)
    if (!this.#spellings.has(key)) this.#spellings.set(key, name)
    this.#numbers.set(name, this.#names.length)
    return this.#names.push(name) - 1
  }

  nameOf(number: number): string | undefined {
    return this.#names[number]
  }

  /** A valid name as it was first spelled, or as it is given if it is new. */
  spelled(given: string): string {
    const name = groupName(given)!
    return this.spellingOf(folded(name)) ?? name
  }

  /** By a folded name. */
  spellingOf(key: string): string | undefined {
    return this.#before?.spellingOf(key) ?? this.#spellings.get(key)
  }
}

/** The first spelling stands, of the journal or of `names`; a name given twice counts once. */
export function spelledIn<G extends readonly string[] | null | undefined>(
  names: GroupNames,
  groups: G
): G | readonly string[] {
  if (!groups) return groups
  const numbers = new Set(groups.map(given => names.numberOf(names.spelled(given))))
  return [...numbers].map(number => names.nameOf(number)!)
}
