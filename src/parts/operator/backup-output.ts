/** A backup to standard output, for another program to keep. */
import { UsageError, type Context } from '../command.ts'
import { counted } from '../../log.ts'
import { copyLines } from '../saved-journal.ts'

/**
 * Writes the journal's lines as they are verified. What is wrong may be found after some of them are out, so only the
 * exit code says that a copy is good, and on the device where it is in a file; its head goes to standard error, to be
 * noted.
 */
export async function backupToOutput({ store, terminal }: Context): Promise<void> {
  if (terminal.showsResults) throw new UsageError('standard output is a terminal; name a FILE, or send it to a program')
  const { records, head } = await copyLines(store, await store.status(), text => terminal.pass(text))
  terminal.sync()
  terminal.note(`${counted(records, 'record')}, head ${head}`)
}
