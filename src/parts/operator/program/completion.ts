/** Completion for shells: each asks this program what may follow. If nothing may, the shell offers files. */
import { eitherOf } from '../../../core-settings.ts'
import { UsageError, type Command } from '../../../command.ts'
import { optionsOf, SCRIPT, settingsFor } from './command-line.ts'

const NAME = 'password-entry-admin'

const SCRIPTS: { readonly [shell: string]: string } = {
  bash: `_password_entry_admin() {
  local typed="\${COMP_WORDS[*]:1:$COMP_CWORD}" IFS=$'\\n'
  COMPREPLY=($(${NAME} completion bash --typed="$typed" 2>/dev/null | cut -f1))
}
complete -o default -F _password_entry_admin ${NAME}
`,
  zsh: `_password_entry_admin() {
  local -a found
  found=(\${(f)"$(${NAME} completion zsh --typed="\${(j: :)words[2,CURRENT]}" 2>/dev/null | tr '\\t' ':')"})
  if (( $#found )); then _describe -t commands ${NAME} found; else _files; fi
}
if [ "$funcstack[1]" = _password_entry_admin ]; then _password_entry_admin
else compdef _password_entry_admin ${NAME}; fi
`,
  fish: `function __password_entry_admin
  set -l typed (string join -- ' ' (commandline -opc)[2..] (commandline -ct))
  set -l found (${NAME} completion fish --typed="$typed" 2>/dev/null)
  if test -n "$found"; printf '%s\\n' $found; else; __fish_complete_path (commandline -ct); end
end
complete -c ${NAME} -f -a '(__password_entry_admin)'
`
}

/** If the program is not installed, a function has its name. zsh needs the first line for a file in its `fpath`. */
function scriptOf(shell: string): string {
  const quoted = `'${SCRIPT.replaceAll("'", shell === 'fish' ? "\\'" : "'\\''")}'`
  const call = shell === 'fish' ? `function ${NAME}; node ${quoted} $argv; end` : `${NAME}() { node ${quoted} "$@"; }`
  const isInstalled = SCRIPT.endsWith(`/${NAME}`)
  return (shell === 'zsh' ? `#compdef ${NAME}\n` : '') + (isInstalled ? '' : `${call}\n`) + SCRIPTS[shell]!
}

export function completionCommand(others: readonly Command[]): Command {
  const command: Command = {
    name: 'completion', positionals: ['SHELL'],
    options: { typed: { value: 'WORDS', help: 'print what may follow; the last of the words is not complete' } },
    help: 'prints what bash, zsh or fish need to complete commands and flags',
    run: async ({ positionals: [shell = ''], flags: { typed }, store: { settings: { journal } }, terminal }) => {
      if (!Object.hasOwn(SCRIPTS, shell)) throw new UsageError(`SHELL must be ${eitherOf(Object.keys(SCRIPTS))}`)
      terminal.pass(typeof typed === 'string' ? following([...others, command], typed, journal) : scriptOf(shell))
    }
  }
  return command
}

function following(commands: readonly Command[], typed: string, journal: string): string {
  const last = typed.split(' ').at(-1)!
  const before = typed.slice(0, typed.length - last.length)
  const command = commands.find(({ name }) => before.startsWith(`${name} `))
  const names = [...commands.map(({ name }) => name), ...Object.keys(SCRIPTS).map(shell => `completion ${shell}`)]
  const words = names.filter(name => name.startsWith(before)).map(name => name.slice(before.length).split(' ')[0]!)
  const flags = command === undefined || !last.startsWith('-') ? []
    : Object.entries(optionsOf(command, settingsFor(command, journal))).map(([flag, { help }]) => `--${flag}\t${help}`)
  return [...new Set([...words, ...flags])].filter(line => line.startsWith(last)).map(line => `${line}\n`).join('')
}
