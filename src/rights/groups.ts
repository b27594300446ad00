/** Names of groups: what a name is, and how the journal spells it. */
import { MAX_GROUP_CHARACTERS } from '../limits.ts'
import { invalid } from './rights.ts'

/** Commas part names in lists, `@` is for addresses, `*` for all; the others are not seen. */
const OUTSIDE_OF_NAMES = /[,@*\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u
/** Two names with these would look alike. Names that a journal has already may have them. */
const UNSEEN =
  /[\p{Default_Ignorable_Code_Point}\u2800\u{1d159}\u{13441}\u{13442}\u{16fe4}]|(?! )\p{Zs}/u
export const GROUP_RULE: string =
  `1 to ${MAX_GROUP_CHARACTERS} characters on one line, ` +
  'without commas, @, * and invisible characters'

/** Trimmed, in Unicode's form NFC. Undefined if it cannot be a name. */
export function groupName(given: string): string | undefined {
  const name = given.trim().normalize('NFC')
  const isName =
    name !== '' && [...name].length <= MAX_GROUP_CHARACTERS && !OUTSIDE_OF_NAMES.test(name)
  return isName ? name : undefined
}

export function hasUnseen(name: string): boolean {
  return UNSEEN.test(name)
}

/** Names that differ only in case are one. */
function foldedName(name: string): string {
  return name.toUpperCase().toLowerCase()
}

/**
 * The names that a journal has, each with a small number; 0: no group. `before` has further names.
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
    const key = foldedName(name)
    if (!this.#spellings.has(key)) this.#spellings.set(key, name)
    this.#numbers.set(name, this.#names.length)
    return this.#names.push(name) - 1
  }

  nameOf(number: number): string | undefined {
    return this.#names[number]
  }

  /**
   * The first spelling of a known name, otherwise as given. Throws `input-invalid` for `field` if a
   * new name has invisible characters.
   */
  spelled(given: string, field?: string): string {
    const name = groupName(given)!
    const known = this.spellingOf(foldedName(name))
    if (known === undefined && field !== undefined && hasUnseen(name)) {
      throw invalid(field, `The ${field} field must have new names of ${GROUP_RULE}.`)
    }
    return known ?? name
  }

  /** By a folded name. */
  spellingOf(key: string): string | undefined {
    return this.#before?.spellingOf(key) ?? this.#spellings.get(key)
  }
}

/** By the first spelling, of the journal or of `names`; a name given twice counts once. */
export function spelledIn<G extends readonly string[] | null | undefined>(
  names: GroupNames,
  groups: G
): G | readonly string[] {
  if (!groups) return groups
  const numbers = new Set(groups.map(given => names.numberOf(names.spelled(given, 'groups'))))
  return [...numbers].map(number => names.nameOf(number)!)
}
