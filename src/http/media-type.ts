/**
 * The media type of a body (RFC 9110 §8.3.1): `type/subtype`, then parameters `;name=value`. White space may stand
 * around each semicolon, but not around `=`; a value is a token or a quoted string; names are the same in any case.
 */
import type { Head } from './head.ts'

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const QUOTED = '"(?:[\\t !#-[\\]-~\\x80-\\xff]|\\\\[\\t -~\\x80-\\xff])*"'
const PARAMETER = new RegExp(`[ \\t]*;[ \\t]*(?:(${TOKEN})=(${TOKEN}|${QUOTED}))?`, 'y')
const ESSENCE = new RegExp(`${TOKEN}/${TOKEN}`, 'y')

/** A media type, in lower case, and its parameters by names in lower case. */
interface MediaType {
  readonly essence: string
  readonly parameters: ReadonlyMap<string, string>
}

/** Parses a media type; undefined where it is malformed, or names a parameter twice. */
function parseMediaType(text: string): MediaType | undefined {
  ESSENCE.lastIndex = 0
  const essence = ESSENCE.exec(text)?.[0]
  if (essence === undefined) return undefined
  const parameters = new Map<string, string>()
  PARAMETER.lastIndex = essence.length
  for (let end = essence.length; end < text.length; end = PARAMETER.lastIndex) {
    const found = PARAMETER.exec(text)
    if (found === null) return undefined
    const name = found[1]?.toLowerCase()
    if (name === undefined) continue
    if (parameters.has(name)) return undefined
    parameters.set(name, unquoted(found[2]!))
  }
  return { essence: essence.toLowerCase(), parameters }
}

function unquoted(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value
}

/** What body follows a head (RFC 9112 §6.3): none, JSON in UTF-8 without a content coding, or another. */
export function bodyKind(head: Head): 'none' | 'json' | 'other' {
  if (head['transfer-encoding'] === undefined && Number(head['content-length'] ?? 0) === 0) return 'none'
  return isPlainJson(head) ? 'json' : 'other'
}

function isPlainJson({ 'content-type': type, 'content-encoding': coding }: Head): boolean {
  if (coding !== undefined && coding.toLowerCase() !== 'identity') return false
  if (type === 'application/json') return true
  const parsed = type === undefined ? undefined : parseMediaType(type)
  const charset = parsed?.parameters.get('charset')
  return parsed?.essence === 'application/json' && (charset === undefined || charset.toLowerCase() === 'utf-8')
}
