/** Content codings (RFC 9110 §12.5.3) and entity tags (§13.1.2) in request headers. */

const MAX_FIELD_CHARACTERS = 256
const CODINGS = /([^\s,;]+)[ \t]*(?:;[ \t]*q=([\d.]*))?[^,]*/g

/** A weight that is 0 or no number refuses the coding. */
export function takesCoding(field: string | undefined, coding: string): boolean {
  const items = (field ?? '').slice(0, MAX_FIELD_CHARACTERS).toLowerCase().matchAll(CODINGS)
  const weights = new Map([...items].map(([, name = '', weight = '1']) => [name, Number(weight)]))
  return (weights.get(coding) ?? weights.get('*') ?? 0) > 0
}

/** `tag` has its quotes. Weak tags count as strong. */
export function namesTag(field: string | undefined, tag: string): boolean {
  return (
    field !== undefined &&
    field.split(',').some(one => ['*', tag].includes(one.trim().replace(/^W\//, '')))
  )
}
