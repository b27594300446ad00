/** Completion of the command line: scripts for bash, zsh and fish, made from the table of commands. */
import { UsageError, type Command, type Option } from '../command.ts'
import { optionsOf, settingsFor } from './command-line.ts'

/** The name in `bin`: what is run by `node dist/admin.js` cannot be completed. */
const NAME = 'password-entry-admin'
const SHELLS = ['bash', 'zsh', 'fish']

interface Continuation {
  readonly before: string
  readonly words: string
  readonly flags: readonly (readonly [flag: string, option: Option])[]
}

/** `completion`. */
export function completionCommand(others: readonly Command[]): Command {
  const command: Command = {
    name: 'completion', positionals: ['SHELL'],
    help: 'prints what bash, zsh or fish need to complete commands and flags',
    run: async ({ positionals: [shell = ''], store: { settings: { journal } }, terminal }) => {
      if (!SHELLS.includes(shell)) throw new UsageError(`SHELL must be ${SHELLS.join(', ')}`)
      const all = [...others, command]
      terminal.pass(shell === 'fish' ? fish(all, journal) : bash(all, journal, shell === 'zsh'))
    }
  }
  return command
}

/** What may follow some words: the next words of commands and, after a complete one, its flags. */
function continuations(commands: readonly Command[], journal: string): readonly Continuation[] {
  const names = [...commands.map(({ name }) => name), ...SHELLS.map(shell => `completion ${shell}`)]
  const all = new Set(['', ...names.flatMap(name => name.split(' ').slice(0, -1)), ...commands.map(({ name }) => name)])
  return [...all].map(before => {
    const command = commands.find(({ name }) => name === before)
    const rest = names.filter(name => before === '' || name.startsWith(`${before} `))
      .map(name => name.slice(before.length).trimStart().split(' ')[0]!)
    const options = command === undefined ? {} : optionsOf(command, settingsFor(command, journal))
    return { before, words: [...new Set(rest)].join(' '), flags: Object.entries(options) }
  })
}

/** After a complete command the shell's own completion offers files. */
function bash(commands: readonly Command[], journal: string, isZsh: boolean): string {
  const cases = continuations(commands, journal).toSorted((a, b) => b.before.length - a.before.length)
    .map(({ before, words, flags }) => `    ${before === '' ? '" "' : `"${before} "*`}) ` +
      `words='${words}' flags='${flags.map(([flag]) => `--${flag}`).join(' ')}' ;;\n`)
  return `${isZsh ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_password_entry_admin() {
  local words flags before="\${COMP_WORDS[*]:1:$((COMP_CWORD - 1))} " word="\${COMP_WORDS[COMP_CWORD]}"
  case "$before" in
${cases.join('')}  esac
  case "$word" in -*) words=$flags ;; esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _password_entry_admin ${NAME}
`
}

function fish(commands: readonly Command[], journal: string): string {
  const hasFile = new Set(commands.filter(({ positionals = [] }) => /FILE/.test(positionals.join()))
    .map(({ name }) => name))
  const lines = continuations(commands, journal).flatMap(({ before, words, flags }) => {
    const condition = before === '' ? '__fish_use_subcommand'
      : before.split(' ').map(word => `__fish_seen_subcommand_from ${word}`).join('; and ')
    const start = `complete -c ${NAME} -n '${condition}'`
    return [
      ...words === '' ? [] : [`${start} -a '${words}'`],
      ...hasFile.has(before) ? [`${start} -F`] : [],
      ...flags.map(([flag, { value, help }]) => {
        const takesFile = value === 'FILE' || value === 'FOLDER'
        const takes = value === undefined || value.startsWith('[') ? '' : takesFile ? ' -r -F' : ' -x'
        return `${start} -l ${flag}${takes} -d '${help.replaceAll(/['`]/g, '')}'`
      })
    ]
  })
  return `complete -c ${NAME} -f\n${lines.map(line => `${line}\n`).join('')}`
}
