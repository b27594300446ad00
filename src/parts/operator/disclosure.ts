/** What an operator is shown is recorded beforehand. */
import type { Events } from '../../store/events.ts'
import type { Context } from '../command.ts'

/** Where nothing can be written, a warning says that nothing was recorded; reading must stay possible there. */
export async function recordDisclosure(
  { store, terminal }: Context, disclosure: Events['entries.disclosed'], isCopy: boolean = false
): Promise<void> {
  try {
    if (isCopy) throw new Error('this is a copy of the journal')
    await store.ask('POST', '/operator/disclosures', disclosure)
  } catch (error) {
    terminal.warn(`this disclosure of passwords was not recorded: ${(error as Error).message}`)
  } finally {
    await store.close() // and so gives the lock back, where no service runs
  }
}
