/** Completion of the command line, as scripts for bash, zsh and fish; made of the table of commands. */
import { UsageError, type Command } from '../command.ts'
import { optionsOf } from './command-line.ts'

/** The name in `bin`: what is run by `node dist/admin.js` cannot be completed. */
const NAME = 'password-entry-admin'
const SHELLS = ['bash', 'zsh', 'fish']

/** `completion`. */
export function completionCommand(others: readonly Command[]): Command {
  const command: Command = {
    name: 'completion', positionals: ['SHELL'],
    help: 'prints what bash, zsh or fish need to complete commands and flags',
    run: async ({ positionals: [shell = ''], terminal }) => {
      if (!SHELLS.includes(shell)) throw new UsageError(`SHELL must be ${SHELLS.join(', ')}`)
      const all = [...others, command]
      terminal.pass(shell === 'fish' ? fish(all) : bash(all, shell === 'zsh'))
    }
  }
  return command
}

/** What may follow some words: the next words of commands, and, behind a whole one, its flags. */
function continuations(commands: readonly Command[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  const add = (before: string, word: string): void => {
    const words = found.get(before) ?? []
    found.set(before, words.includes(word) ? words : [...words, word])
  }
  for (const command of commands) {
    const words = command.name.split(' ')
    words.forEach((word, i) => add(words.slice(0, i).join(' '), word))
    for (const flag of Object.keys(optionsOf(command))) add(command.name, `--${flag}`)
  }
  for (const shell of SHELLS) add('completion', shell)
  return found
}

function bash(commands: readonly Command[], isZsh: boolean): string {
  const cases = [...continuations(commands)].sort(([a], [b]) => b.length - a.length)
    .map(([before, words]) => `    ${before === '' ? '" "' : `"${before} "*`}) words='${words.join(' ')}' ;;\n`)
  return `${isZsh ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_password_entry_admin() {
  local words before="\${COMP_WORDS[*]:1:COMP_CWORD-1} "
  case "$before" in
${cases.join('')}  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _password_entry_admin ${NAME}
`
}

function fish(commands: readonly Command[]): string {
  const words = [...continuations(commands)].map(([before, next]) => {
    const condition = before === '' ? '__fish_use_subcommand'
      : before.split(' ').map(word => `__fish_seen_subcommand_from ${word}`).join('; and ')
    return `complete -c ${NAME} -n '${condition}' -a '${next.join(' ')}'\n`
  })
  return `complete -c ${NAME} -f\n${words.join('')}`
}
