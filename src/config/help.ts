/** What `--help` says of settings, and of how a program is called. */
import type { Setting, SettingsTable } from './core-settings.ts'

/** How a program was called, to be shown in its help: by the name of an installed one, or as a file that Node runs. */
export function calledAs(script: string = '', folder: string): string {
  if (!/\.[cm]?[jt]s$/.test(script)) return script.split('/').at(-1)!
  return `node ${script.startsWith(`${folder}/`) ? script.slice(folder.length + 1) : script}`
}

export function settingsHelp<S>(table: SettingsTable<S>): string {
  return Object.values<Setting<unknown>>(table)
    .map(({ flag, value, variable, shown, help }) =>
      `  ${`--${flag} ${value}`.padEnd(28)} ${help} ${variable}, default ${shown}.`.replaceAll('`', ''))
    .join('\n')
}
