/** Moving a journal between a folder and etcd, so that one host becomes several, and several one. */
import { join, resolve } from 'node:path'
import type { StorageSettings } from '../../config/core-settings.ts'
import { disk } from '../../disk/files.ts'
import { Failure } from '../../errors.ts'
import { readKeyFile } from '../../journal/keys.ts'
import { JOURNAL_FILE } from '../../journal/open-file.ts'
import { readInSteps } from '../../journal/recover.ts'
import { OperatorError, UsageError, type Command, type Context } from '../command.ts'
import type { JournalSource } from '../part.ts'
import { saveJournal } from '../saved-journal.ts'
import { etcdAccess } from './access.ts'
import { fillEtcd, readEtcd, type EtcdPlace } from './copy.ts'
import type { EtcdSettings } from './etcd-settings.ts'

/** The place in etcd that the settings name. */
function placeOf(settings: StorageSettings): EtcdPlace {
  const etcd = settings as StorageSettings & EtcdSettings
  if (etcd.etcdEndpoints.length === 0) throw new OperatorError('ETCD_ENDPOINTS must be set, as for the service')
  return { access: etcdAccess(etcd, disk), prefix: etcd.etcdPrefix }
}

/** Reads the journal at the prefix that the service has reported, whatever the settings name. */
export async function readEtcdJournal(
  settings: StorageSettings, { path, keys, apply, records, onProgress }: JournalSource
): Promise<{ readonly records: number, readonly head: string }> {
  return readEtcd({ ...placeOf(settings), prefix: path }, keys, apply, records, read => onProgress(read / records))
}

async function copyToFile({ store, terminal }: Context): Promise<void> {
  const target = join(resolve(store.settings.dataDir), JOURNAL_FILE)
  const { records, head } = await saveJournal(store, target, await store.status())
  terminal.show({ path: target, records, head }, `${target}: ${records} records, head ${head}`)
}

async function copyToEtcd({ store, terminal }: Context): Promise<void> {
  if (await store.look('/operator/status') !== undefined) {
    const why = 'what it changes meanwhile would be lost'
    throw new OperatorError(`the service runs on this folder, and ${why}; stop it first`)
  }
  // Asked for and not just looked at: this takes the lock, and keeps it until the copy is made.
  const { path, keyFile, bytes, records, head } = await store.ask('GET', '/operator/status')
  const keys = readKeyFile(disk, keyFile)!
  const place = placeOf(store.settings)
  const lines = function * (): Generator<string, void, void> {
    let read: string[] = []
    for (const { goodBytes } of readInSteps(disk, path, keys, (_record, text) => { read.push(text) }, bytes)) {
      terminal.progress('copying', goodBytes / bytes)
      yield * read
      read = []
    }
  }
  try {
    await fillEtcd(place, keys.newest.name, lines(), async () => {
      const made = await readEtcd(place, keys, () => {})
      if (made.records !== records || made.head !== head) throw new OperatorError('the copy differs from the journal')
    })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    throw new OperatorError(`${error.message}; the copy is not whole, and the folder is as it was`)
  } finally {
    terminal.progress('', 1)
  }
  terminal.show({ path: place.prefix, records, head }, `${place.prefix}: ${records} records, head ${head}`)
}

function sourceOf(to: Context['flags'][string]): 'file' | 'etcd' {
  if (to !== 'etcd' && to !== 'file') throw new UsageError('--to must be etcd or file')
  return to === 'etcd' ? 'file' : 'etcd'
}

/** `journal copy`. */
export const COPY_COMMANDS: readonly Command[] = [
  {
    name: 'journal copy', options: { to: { value: 'WHERE', help: 'etcd, from the folder; file, into it from etcd' } },
    help: 'copies the whole journal, verified, to where none is yet; no instance may run meanwhile',
    journal: ({ to }) => sourceOf(to),
    run: context => sourceOf(context.flags['to']) === 'file' ? copyToEtcd(context) : copyToFile(context)
  }
]
