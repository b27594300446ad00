import { join } from 'node:path'
import { systemCode } from '../../errors.ts'
import { disk } from '../../journal/files.ts'
import { locationOf } from '../../journal/folder.ts'
import type { Part } from '../../part.ts'
import { event } from '../../store/events.ts'
import type { Store } from '../../store/store.ts'

/** Above both bounds, the log suggests a compaction. */
const LONG_READ_MS = 1_000
const MANY_RECORDS_AN_ENTRY = 10

/**
 * A build before 1.1.0 left notes if it had shown passwords that it could not record. A gap stands
 * for them.
 */
async function settleNotes(
  folder: string,
  store: Store,
  warn: (line: string) => void
): Promise<void> {
  const names = disk.stat(folder) === undefined ? [] : disk.list(folder)
  const notes = names.filter(name => /^unrecorded-.*\.json$/.test(name))
  if (notes.length === 0) return
  const warned = `${notes.join(', ')}: operators were shown passwords`
  try {
    await store.commit(({ knowledge: { recording } }) => [
      recording === 'begun' ? [event('recording.gap', null, { why: 'unrecorded' })] : [],
      undefined
    ])
  } catch (error) {
    return warn(`${warned}, and that could not be recorded: ${(error as Error).message}`)
  }
  const { recording } = store.state.knowledge
  const known = recording === 'begun' ? 'now a record says that' : 'reads are not recorded anyway'
  try {
    for (const name of notes) disk.remove(join(folder, name))
    warn(`${warned}; ${known}, and these files are removed`)
  } catch (error) {
    const why = 'these files could not all be removed: delete them, or each start says this again'
    warn(`${warned}; ${known}, but ${why}: ${systemCode(error)}`)
  }
}

export const operator: Part = {
  settings: {},
  open: async ({ settings, store, accounts, journal, lock, readMs, log }) => {
    if (journal === undefined || lock === undefined) return {}
    const { entries } = store.state
    if (
      readMs > LONG_READ_MS &&
      journal.status().records > MANY_RECORDS_AN_ENTRY * Math.max(1, entries.count)
    ) {
      const how =
        journal.location().endpoints === undefined
          ? 'the operator’s command journal compact'
          : 'compacting a copy of the journal in a file, and copying that back to another place,'
      log.info(`hint           most records are history; ${how} shortens a start`)
    }
    if (accounts?.users().length === 0)
      log.warn('nobody can log in yet: the operator’s command user add EMAIL adds somebody')
    const { serveOperations } = await import('./socket/local-server.ts')
    const { rescueAtStop } = await import('./rewriting/rescue.ts')
    const warn = (line: string): void => log.warn(line)
    const rescue = { head: undefined }
    const { folder } = locationOf(settings)
    await settleNotes(folder, store, warn)
    const operated = {
      store,
      journal,
      abilities: settings.abilities,
      readMs,
      warn,
      rescue,
      folder,
      files: disk
    }
    const end = serveOperations(lock.server, operated)
    return {
      close: async () => {
        await end()
        await rescueAtStop(journal, store.state, rescue, warn).catch(error =>
          warn(
            `what the service held of its failed journal could not be written: ${systemCode(error)}`
          )
        )
      }
    }
  },
  commands: async () =>
    (
      await Promise.all([
        import('./commands/entries-commands.ts'),
        import('./transfer/transfer-commands.ts'),
        import('./commands/account-commands.ts'),
        import('./commands/audit.ts'),
        import('./commands/journal-commands.ts'),
        import('./rewriting/rewrite-commands.ts'),
        import('./salvage/salvage.ts')
      ])
    ).flatMap(({ COMMANDS }) => COMMANDS)
}
