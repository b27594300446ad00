#!/usr/bin/env node
/**
 * The operator's program. Exit codes: 0 done; 1 refused or failed (no such user, an address that is taken, a folder
 * that cannot be used); 2 called in a wrong way; 3 the journal or its keys are damaged.
 */
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { readTable, settingsHelp } from './config.ts'
import { Failure, systemCode, type FailureCode } from './errors.ts'
import { assertLimits } from './limits.ts'
import { ACCOUNT_COMMANDS } from './operator/accounts.ts'
import type { Command, Context } from './operator/command.ts'
import { Misuse, Refusal } from './operator/refusal.ts'
import { COPY_COMMANDS } from './operator/copy.ts'
import { JOURNAL_COMMANDS } from './operator/journal.ts'
import { reachStore } from './operator/reach.ts'
import { Terminal } from './operator/terminal.ts'
import { TRANSFER_COMMANDS } from './operator/transfer.ts'
import { checkPlace } from './place.ts'
import { ETCD_SETTINGS, SETTINGS } from './settings.ts'

const COMMANDS = [...ACCOUNT_COMMANDS, ...JOURNAL_COMMANDS, ...COPY_COMMANDS, ...TRANSFER_COMMANDS]
const { staleReads: _, ...etcd } = ETCD_SETTINGS
const PLACE = { dataDir: SETTINGS.dataDir, keyFile: SETTINGS.keyFile, journal: SETTINGS.journal, ...etcd }
const PROGRAM = 'node dist/admin.js'

const EXIT_CODES: { readonly [C in FailureCode]?: number } = {
  'setting-invalid': 2, 'journal-damaged': 3, 'key-missing': 3, 'key-invalid': 3, 'key-unknown': 3
}

async function main(args: readonly string[]): Promise<void> {
  const terminal = new Terminal({ input: process.stdin, output: process.stdout, error: process.stderr })
  assertLimits()
  process.stdout.on('error', error => {
    const code = systemCode(error)
    if (code !== 'EPIPE') process.stderr.write(`error: the output could not be written: ${code}\n`)
    process.exit(1) // what was asked for is done, or will be refused a second time
  })
  const command = COMMANDS.find(({ name }) => name.split(' ').every((word, i) => args[i] === word))
  const asksForHelp = args.includes('--help')
  if (command === undefined) {
    if (!asksForHelp && args.length > 0) throw new Misuse(`there is no such command; ${PROGRAM} --help lists them`)
    process.stdout.write(overview())
    if (!asksForHelp) process.exitCode = 2
    return
  }
  if (asksForHelp) { process.stdout.write(helpOf(command)); return }
  await run(command, args.slice(command.name.split(' ').length), terminal)
}

async function run(command: Command, args: readonly string[], terminal: Terminal): Promise<void> {
  const { positionals, flags } = parse(command, args)
  const given = readTable(PLACE, flags as { [name: string]: string }, process.env)
  const kept = command.journal?.(flags) ?? (given.journal === 'etcd' ? 'etcd' : 'file')
  const settings = { ...given, journal: kept, staleReads: false }
  checkPlace(settings)
  const store = reachStore(settings, command.mayCreate === true, process.geteuid?.(), terminal)
  try {
    await command.run({ positionals, flags, terminal, store })
  } finally {
    await store.close()
  }
}

function parse(command: Command, args: readonly string[]): Pick<Context, 'positionals' | 'flags'> {
  const options: ParseArgsConfig['options'] = {}
  for (const { flag } of Object.values(PLACE)) options[flag] = { type: 'string' }
  for (const [flag, { value }] of Object.entries(command.options ?? {})) {
    options[flag] = { type: value === undefined ? 'boolean' : 'string' }
  }
  const expected = command.positionals ?? []
  const least = expected.filter(one => !one.startsWith('[')).length
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, strict: true, allowPositionals: true })
    if (positionals.length >= least && positionals.length <= expected.length) {
      return { positionals, flags: values as Context['flags'] }
    }
  } catch (error) {
    throw new Misuse((error as Error).message.split('\n')[0]!.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?'))
  }
  throw new Misuse(usage(command))
}

function usage({ name, positionals = [], options }: Command): string {
  return ['usage:', PROGRAM, name, ...positionals, ...options === undefined ? [] : ['[options]']].join(' ')
}

function helpOf(command: Command): string {
  const options = Object.entries(command.options ?? {})
    .map(([flag, { value, help }]) => `  ${`--${flag}${value === undefined ? '' : ` ${value}`}`.padEnd(28)} ${help}\n`)
  return `${usage(command)}\n\n${command.help}\n\n${options.join('')}${settingsHelp(PLACE)}\n`
}

function overview(): string {
  const lines = COMMANDS.map(({ name, help }) => `  ${name.padEnd(16)} ${help}\n`)
  return `usage: ${PROGRAM} COMMAND\n\n${lines.join('')}\n${PROGRAM} COMMAND --help tells more.\n`
}

/** What the program ends with after an error; undefined for one that nobody has foreseen. */
function exitCodeOf(error: unknown): number | undefined {
  if (error instanceof Misuse) return 2
  if (error instanceof Failure) return EXIT_CODES[error.code] ?? 1
  const isForeseen = error instanceof Refusal || systemCode(error) !== (error as Error).message
  return isForeseen ? 1 : undefined
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  const code = exitCodeOf(error)
  if (code === undefined) throw error
  process.stderr.write(`error: ${(error as Error).message}\n`)
  process.exitCode = code
}
