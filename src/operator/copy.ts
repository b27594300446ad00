/** Moving a journal between a folder and etcd, so that one host becomes several, and several one. */
import { join, resolve } from 'node:path'
import { Failure } from '../errors.ts'
import { JOURNAL_FILE } from '../journal/file.ts'
import { createWriter, disk } from '../journal/files.ts'
import { readKeyFile } from '../journal/keys.ts'
import { readInSteps, readJournal } from '../journal/recover.ts'
import { REWRITE_SLICE_BYTES } from '../limits.ts'
import type { Command, Context } from './command.ts'
import { Misuse, Refusal } from './refusal.ts'
import { etcdPlaceOf, readAll, statusOf, type Status } from './read.ts'
import { makeFile } from './target.ts'

/**
 * Writes the lines of the journal in etcd into a new file, durably, and verifies what stands there then. Throws a
 * `Refusal` where the journal may have gone on elsewhere.
 */
export async function saveLines(context: Context, part: string, status: Status): Promise<void> {
  if (status.fault !== undefined && status.mayHeal !== true) {
    throw new Refusal(`what is here may not be the newest: ${status.fault}`)
  }
  const writer = createWriter(disk, part)
  try {
    let slice = ''
    await readAll(context, (_record, _state, text) => {
      slice += `${text}\n`
      if (slice.length < REWRITE_SLICE_BYTES) return
      writer.write(slice)
      slice = ''
    }, status)
    writer.write(slice)
  } finally {
    writer.close()
  }
  const made = readJournal(disk, part, readKeyFile(disk, status.keyFile)!, () => {})
  if (made.records !== status.records || made.tornBytes > 0) throw new Refusal('what was written reads otherwise')
}

async function copyToFile(context: Context): Promise<void> {
  const status = await statusOf(context)
  const target = join(resolve(context.store.settings.dataDir), JOURNAL_FILE)
  await makeFile(target, part => saveLines(context, part, status))
  context.terminal.print(`${target}: ${status.records} records, head ${status.head}`)
}

async function copyToEtcd(context: Context): Promise<void> {
  const { store, terminal } = context
  if (await store.look('/operator/status') !== undefined) {
    throw new Refusal('the service runs on this folder, and what it changes meanwhile would be lost; stop it first')
  }
  const { path, keyFile, bytes, records, head } = await statusOf(context) // and holds the folder from now on
  const keys = readKeyFile(disk, keyFile)!
  const { fillEtcd, readEtcd } = await import('../etcd/copy.ts')
  const place = etcdPlaceOf(context)
  const lines = function * (): Generator<string, void, void> {
    let line = ''
    const steps = readInSteps(disk, path, keys, (_record, text) => { line = text }, bytes)
    for (const reached of steps) {
      terminal.progress('copying', reached / bytes)
      yield line
    }
  }
  try {
    await fillEtcd(place, keys.newest.name, lines(), async () => {
      const made = await readEtcd(place, keys, () => {})
      if (made.records !== records || made.head !== head) throw new Refusal('what was written reads otherwise')
    })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    throw new Refusal(`${error.message}; the copy is not whole, and the folder is as it was`)
  } finally {
    terminal.progress('', 1)
  }
  terminal.print(`${place.prefix}: ${records} records, head ${head}`)
}

function sourceOf(to: string | boolean | undefined): 'file' | 'etcd' {
  if (to !== 'etcd' && to !== 'file') throw new Misuse('--to must be etcd or file')
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
