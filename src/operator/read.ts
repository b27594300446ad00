/** Reading the journal for the operator. */
import { disk } from '../journal/files.ts'
import type { JournalLocation } from '../journal/file.ts'
import type { Committed } from '../journal/journal.ts'
import { readKeyFile } from '../journal/keys.ts'
import { readJournal, type Recovered } from '../journal/recover.ts'
import { apply, emptyState, type CommittedState } from '../store/state.ts'
import { Refusal, type Context } from './command.ts'

/** What the service tells of itself. */
export interface Status extends JournalLocation {
  /** Why the service takes no more changes. */
  readonly fault?: string
  readonly records: number
  readonly head: string
  readonly progress: number
}

/**
 * Reads the journal as it stands now, verifying all of it, and hands on every record with the state before it. The
 * file is read here and not by the service, which has others to serve; what the service has acknowledged is in it.
 */
export async function readAll(
  context: Context, onRecord: (record: Committed, state: CommittedState) => void, status?: Status
): Promise<Recovered & { readonly state: CommittedState }> {
  const { bytes, path, keyFile } = status ?? await statusOf(context)
  const keys = readKeyFile(disk, keyFile)
  if (keys === undefined) throw new Refusal(`there is no key file ${keyFile}`)
  const state = emptyState()
  const each = (record: Committed): void => {
    onRecord(record, state)
    apply(state, record.type, record.data)
  }
  const onProgress = (share: number): void => context.terminal.progress('reading the journal', share)
  const found = readJournal(disk, path, keys, each, { onProgress, endBytes: bytes })
  if (found.goodBytes !== bytes) throw new Refusal(`${path} ends before its last record`)
  return { ...found, state }
}

/** Asks the service, or the folder opened for this command. */
export async function statusOf(context: Context): Promise<Status> {
  return await context.store.ask('GET', '/operator/status')
}
