import { PARTS, readValues, SETTINGS, validateCombinations } from '../../../settings.ts'
import { systemCode } from '../../../errors.ts'
import { VERSION } from '../../../version.ts'
import type { Arguments, OperatorCommand, IfMissing } from '../../commands/command.ts'
import {
  asksForHelp,
  findCommand,
  flagsLast,
  describe,
  helpOf,
  asksForJson,
  overview,
  parse,
  STORAGE_SETTINGS
} from './command-line.ts'
import { explained } from '../system-error.ts'
import { EXIT, exitCodeOf } from '../../commands/exit-codes.ts'
import { Terminal, visible } from '../../commands/terminal.ts'

export async function runProgram(words: readonly string[]): Promise<number> {
  process.stdout.on('error', error => {
    const code = systemCode(error)
    if (code !== 'EPIPE') process.stderr.write(`error: the output could not be written: ${code}\n`)
    process.exit(EXIT.refused) // safe: the change is done, or a second try is refused
  })
  try {
    return await main(words)
  } catch (error) {
    const code = exitCodeOf(error)
    if (code === undefined) throw error
    const { message } = explained(error) as Error
    const asJson = visible(JSON.stringify({ error: message, exitCode: code }))
    process.stderr.write(`${asksForJson(words) ? asJson : `error: ${visible(message)}`}\n`)
    return code
  }
}

async function main(words: readonly string[]): Promise<number> {
  const commands = (await Promise.all(PARTS.map(part => part.commands?.() ?? []))).flat()
  const journal = process.env[SETTINGS.journal.variable] || undefined
  const asJson = asksForJson(words)
  const all = flagsLast(commands, words)
  const plain = all.filter(word => word !== '--json')
  const isHelp = plain[0] === 'help'
  const asked = isHelp ? plain.slice(1) : all
  const mayAskForHelp = isHelp || words.includes('--help') || words.includes('-h')
  const print = (data: object, text: string): void => {
    if (asJson) new Terminal(process, true).show(data, [])
    else new Terminal(process, false).pass(text)
  }
  if (plain[0] === '--version' || plain[0] === '-V') {
    print({ version: VERSION }, `${VERSION}\n`)
    return EXIT.done
  }
  const [group, ...others] =
    asked[0]?.startsWith('-') === true ? [] : asked.filter(word => !word.startsWith('-'))
  const isGroup = others.length === 0 && commands.some(({ name }) => name.startsWith(`${group} `))
  if (asked.length === 0 || (mayAskForHelp && (group === undefined || isGroup))) {
    print(...overview(commands, group, journal))
    return mayAskForHelp ? EXIT.done : EXIT.usage
  }
  const command = findCommand(commands, asked)
  const rest = asked.slice(command.name.split(' ').length)
  if (isHelp || asksForHelp(rest)) {
    print(describe(command), helpOf(command, journal))
    return EXIT.done
  }
  return (await run(command, parse(command, rest))) ?? EXIT.done
}

async function run(command: OperatorCommand, given: Arguments): Promise<number | void> {
  const { StoreAccess } = await import('./connect.ts')
  const terminal = new Terminal(process, given.flags['json'] === true)
  const storage = readValues(
    STORAGE_SETTINGS,
    given.flags as { [name: string]: string },
    process.env
  )
  const abilities = readValues({ abilities: SETTINGS.abilities }, {}, process.env)
  const journal = command.journal?.(given.flags) ?? storage.journal
  const settings = { ...storage, ...abilities, journal }
  validateCombinations(settings)
  const store = new StoreAccess(settings, ifMissing(command), terminal)
  try {
    return await command.run({ ...given, terminal, store })
  } finally {
    await store.close()
  }
}

/**
 * In production only `init` makes a journal: a folder that is not mounted must not become an empty
 * store.
 */
function ifMissing({ ifMissing: asked = 'refuse' }: { readonly ifMissing?: IfMissing }): IfMissing {
  return asked === 'begin' && process.env['NODE_ENV'] === 'production' ? 'refuse' : asked
}
