/** What a client says of the form that it wants: content codings (RFC 9110 §12.5.3), and what it has (§13.1.2). */

const MAX_FIELD_CHARACTERS = 256
const CODINGS = /([^\s,;]+)[ \t]*(?:;[ \t]*q=([\d.]*))?[^,]*/g

/** Whether an `Accept-Encoding` takes a coding: its weight, or that of `*`, is a number above 0. */
export function takesCoding(field: string | undefined, coding: string): boolean {
  const items = (field ?? '').slice(0, MAX_FIELD_CHARACTERS).toLowerCase().matchAll(CODINGS)
  const weights = new Map([...items].map(([, name = '', weight = '1']) => [name, Number(weight)]))
  return (weights.get(coding) ?? weights.get('*') ?? 0) > 0
}

/** Whether an `If-None-Match` names a tag, which is given with its quotes; weak tags count as strong ones. */
export function namesTag(field: string | undefined, tag: string): boolean {
  return field !== undefined && field.split(',').some(one => ['*', tag].includes(one.trim().replace(/^W\//, '')))
}
