/** Settings from flags and variables; flags win. */
import { parseArgs } from 'node:util'
import { Failure } from './errors.ts'
import type { Setting, SettingsTable } from './core-settings.ts'
import { parseUtf8 } from './setting-values.ts'

export type Variables = { readonly [name: string]: string | undefined }

export function readFlags<S>(table: SettingsTable<S>, args: readonly string[]): Variables {
  const flags = Object.values<Setting<unknown>>(table).map(({ flag }) => flag)
  const options = Object.fromEntries(flags.map(flag => [flag, { type: 'string' as const }]))
  const { values, tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  const seen = new Set<string>()
  for (const token of tokens) {
    if (token.kind !== 'option' || !Object.hasOwn(options, token.name)) {
      const given = args[token.index]!.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?').split('=')[0]!
      const meant = nearest(given, flags.map(flag => `--${flag}`))
      const hint = meant === undefined ? '--help lists them' : `did you mean ${meant}?`
      throw new Failure('setting-invalid', `there is no flag '${given}'; ${hint}`)
    }
    const { name, value, inlineValue } = token
    if (seen.has(name)) throw new Failure('setting-invalid', `--${name} is given twice`)
    seen.add(name)
    if (value === undefined || (!inlineValue && value.startsWith('-'))) {
      throw new Failure('setting-invalid', `--${name} needs a value`)
    }
  }
  return values as Variables
}

/** The known word within a slip: a letter changed, added, left out, or swapped. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const slips = withoutOne(word)
  return known.find(one => withoutOne(one).some(rest => slips.includes(rest)))
}

/** Two words that share a result differ by a slip. */
function withoutOne(word: string): readonly string[] {
  return [word, ...Array.from(word, (_, i) => word.slice(0, i) + word.slice(i + 1))]
}

/** The name for the help: of an installed program, or the file that Node runs. */
export function calledAs(script: string = '', folder: string = '/'): string {
  if (!/\.[cm]?[jt]s$/.test(script)) return script.split('/').at(-1)!
  return `node ${script.startsWith(`${folder}/`) ? script.slice(folder.length + 1) : script}`
}

/** Gives the parsed settings; `nameOf` is how an error calls one. Throws `setting-invalid`. */
export function readValues<S>(
  table: SettingsTable<S>, flags: Variables, env: Variables,
  nameOf: (name: string, flag: string) => string = (_, flag) => `--${flag}`
): S {
  const read = ([name, setting]: [string, Setting<unknown>]): [string, unknown] => {
    const flag = flags[setting.flag]
    const text = flag ?? (env[setting.variable] || undefined)
    if (text === undefined) return [name, setting.fallback]
    try {
      return [name, setting.parse(parseUtf8(text))]
    } catch (error) {
      const source = flag === undefined ? setting.variable : nameOf(name, setting.flag)
      throw new Failure('setting-invalid', `${source} must be ${(error as Error).message}`)
    }
  }
  return Object.fromEntries(Object.entries(table as { [name: string]: Setting<unknown> }).map(read)) as S
}

export function settingsHelp<S>(table: SettingsTable<S>): string {
  return Object.values<Setting<unknown>>(table)
    .map(({ flag, value, variable, shown, help }) =>
      `  ${`--${flag} ${value}`.padEnd(28)} ${help} ${variable}, default ${shown}.`.replaceAll('`', ''))
    .join('\n')
}
