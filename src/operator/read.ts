/** Reading the journal for the operator. */
import type { EtcdPlace } from '../etcd/copy.ts'
import { disk } from '../journal/files.ts'
import type { JournalRecord, JournalLocation } from '../journal/journal.ts'
import { readKeyFile } from '../journal/keys.ts'
import { readJournal, type Recovered } from '../journal/recover.ts'
import { etcdAccess } from '../place.ts'
import { apply, emptyState, type CommittedState } from '../store/state.ts'
import type { Context } from './command.ts'
import { Refusal } from './refusal.ts'

/** What the service tells of itself. */
export interface Status extends JournalLocation {
  /** Why the service takes no more changes. */
  readonly fault?: string
  /** Whether it may take some again without a restart. */
  readonly mayHeal?: boolean
  readonly records: number
  readonly head: string
  readonly progress: number
}

/**
 * Reads the journal as it stands now, verifying all of it, and hands on every record with the state before it. The
 * file is read here and not by the service, which has others to serve; what the service has acknowledged is in it.
 */
export async function readAll(
  context: Context, onRecord: (record: JournalRecord, state: CommittedState, text: string) => void, status?: Status
): Promise<Pick<Recovered, 'records' | 'head'> & { readonly state: CommittedState }> {
  const { bytes, path, keyFile, endpoints, records } = status ?? await statusOf(context)
  const keys = readKeyFile(disk, keyFile)
  if (keys === undefined) throw new Refusal(`there is no key file ${keyFile}`)
  const state = emptyState()
  const each = (record: JournalRecord, text: string): void => {
    onRecord(record, state, text)
    apply(state, record.type, record.data)
  }
  const onProgress = (share: number): void => context.terminal.progress('reading the journal', share)
  if (endpoints !== undefined) {
    const { readEtcd } = await import('../etcd/copy.ts')
    const place = { ...etcdPlaceOf(context), prefix: path } // of who was asked, whatever the settings say here
    const found = await readEtcd(place, keys, each, records, read => onProgress(read / records))
    onProgress(1)
    if (found.records !== records) throw new Refusal(`${path} ends before its last record`)
    return { ...found, state }
  }
  const found = readJournal(disk, path, keys, each, { onProgress, endBytes: bytes })
  if (found.goodBytes !== bytes) throw new Refusal(`${path} ends before its last record`)
  return { ...found, state }
}

/** Where in etcd the settings say. */
export function etcdPlaceOf({ store: { settings } }: Context): EtcdPlace {
  if (settings.etcdEndpoints.length === 0) throw new Refusal('ETCD_ENDPOINTS must be set, as for the service')
  return { access: etcdAccess(settings, disk), prefix: settings.etcdPrefix }
}

/** Asks the service, or the folder opened for this command. */
export async function statusOf(context: Context): Promise<Status> {
  return await context.store.ask('GET', '/operator/status')
}
