/** The commands of the operator's program, but for those that other parts add. */
import type { Command } from '../command.ts'
import { ACCOUNT_COMMANDS } from './account-commands.ts'
import { ENTRY_COMMANDS } from './entry-commands.ts'
import { JOURNAL_COMMANDS } from './journal-commands.ts'
import { TRANSFER_COMMANDS } from './transfer-commands.ts'

export const COMMANDS: readonly Command[] = [
  ...ACCOUNT_COMMANDS, ...ENTRY_COMMANDS, ...JOURNAL_COMMANDS, ...TRANSFER_COMMANDS
]
