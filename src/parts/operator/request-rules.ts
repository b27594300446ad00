/** Rules for fields that only the operator's requests have. */
import { check, rule, type Given, type Rule, type Shape } from '../../store/validate.ts'

/** One of some numbers. */
export function oneOf<N extends number>(...numbers: readonly N[]): Rule<N> {
  return rule(value => numbers.includes(value as N), `be ${numbers.join(' or ')}`)
}

/** A list of objects that each have a shape, which `check` takes out of them. */
export function listOf<S extends Shape>(shape: S): Rule<readonly Given[]> {
  const isItem = (item: unknown): boolean =>
    typeof item === 'object' && item !== null && check(shape, item as Given).ok
  const list = rule<readonly Given[]>(value => Array.isArray(value) && value.every(isItem),
    `be a list of objects with ${Object.keys(shape).join(', ')}`)
  return { ...list, isList: true }
}
