/** Messages name settings by their variables; a host reads the names of its options. */
import { SETTINGS } from '../settings.ts'
import { Failure } from '../errors.ts'
import type { Log } from '../log.ts'

const OPTIONS = new Map([
  ...Object.entries(SETTINGS).map(([name, { variable }]) => [variable, name] as const),
  ['NODE_ENV', 'production'] as const
])
/** Not within a path or another word. Without a value, one word may be any word. */
const VARIABLE = /(?<![\w/.-])([A-Z]+(?:_[A-Z]+)+|[A-Z]+(?==))(?:=(\w+))?(?![\w/-])/g

function inOptions(text: string): string {
  return text.replace(VARIABLE, (found, variable: string, value: string | undefined) => {
    const name = OPTIONS.get(variable)
    if (name === undefined || value === undefined) return name ?? found
    return `${name}: ${valueOf(name, value)}`
  })
}

function valueOf(name: string, value: string): string {
  if (name === 'production' || value === 'on') return 'true'
  return /^\d+$/.test(value) ? value : `'${value}'`
}

/** Gives lines with the names of options. */
export function logInOptions(log: Log): Log {
  const { access } = log
  return {
    info: line => log.info(inOptions(line)),
    warn: line => log.warn(inOptions(line)),
    progress: (what, share) => log.progress?.(what, share),
    access
  }
}

/** A `Failure` with the names of options; another error as it is. */
export function failureInOptions(error: unknown): unknown {
  if (!(error instanceof Failure)) return error
  const detail = inOptions(error.detail)
  return detail === error.detail ? error : new Failure(error.code, detail, { cause: error })
}
