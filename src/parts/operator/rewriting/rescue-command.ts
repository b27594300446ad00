/**
 * `journal rescue`: the command writes the file, so it may be anywhere, and the service need not be
 * able to write.
 */
import { Buffer } from 'node:buffer'
import { resolve } from 'node:path'
import { Failure, systemCode } from '../../../errors.ts'
import { locationOf } from '../../../journal/folder.ts'
import { keyring, readKeyFile, type Keyring } from '../../../journal/keys.ts'
import { statesLeft } from '../../../journal/rescued-files.ts'
import { emptyState } from '../../../slices.ts'
import { OperatorError, type Context, type Reached } from '../../commands/command.ts'
import { readWithBreaths } from '../commands/same-file.ts'
import { assertKept, earlierEnd, type EarlierEnd } from '../commands/journal-files.ts'
import { ENTERED_AGAIN } from '../commands/who-knows.ts'
import type { FolderStatus } from '../../commands/operation.ts'
import { keyText, WHOLE_JOURNAL } from './rescue.ts'
import { makeFile } from './saved-journal.ts'

function noService({ files, settings }: Reached): string {
  const none =
    'restore a backup (journal restore), or save what can still be read (journal salvage)'
  return (
    'no service has the lock of this folder, so there is nobody to ask. ' +
    'If one still runs whose folder was emptied, stop it by SIGTERM, never kill -9: ' +
    'it leaves journal.rescued-TIME.jsonl for journal restore. If none runs: ' +
    `${statesLeft(files, locationOf(settings).folder) ?? none}`
  )
}

export async function rescue({
  store,
  terminal,
  flags,
  positionals: [file = '']
}: Context): Promise<void> {
  const running = await store.look()
  if (running === undefined) throw new OperatorError(noService(store))
  terminal.noteJournal(running)
  const path = resolve(file)
  const keyPath = flags['keys'] === undefined ? undefined : resolve(flags['keys'] as string)
  assertKept(store, path)
  if (path === running.path)
    throw new OperatorError(`${path} is the name of the journal itself; name another file`)
  const damage = running.fault === undefined ? await damageOf(store, running) : undefined
  // The service is told last: after that, its stop writes no rescued journal of its own.
  let secrets: readonly string[] | undefined
  const { records, head, entries, before, names } = await makeFile(
    store.ending,
    path,
    async made => {
      await store.receive('rescueJournal', { damage }, piece => made.write(piece))
      if (keyPath !== undefined) secrets = (await store.ask('rescueKeys', {})).keys
      return readBack(store, made.path, running.keyFile, secrets)
    },
    store.files
  )
  if (keyPath !== undefined)
    await makeFile(store.ending, keyPath, made => made.write(keyText(secrets!)), store.files)
  await store.ask('confirmRescue', { head: before.head })
  const forgetsFormer = names && !canHeal(running, keyPath)
  const result = {
    path,
    records,
    head,
    entries,
    keyFile: keyPath ?? running.keyFile,
    forgetsFormer
  }
  terminal.show(result, [
    `${path}: ${records} records, ${entries} entries, head ${head}`,
    ...(keyPath === undefined
      ? []
      : [`${keyPath}: the keys, which open it; keep them in another place`]),
    ...nextSteps(running, path, head, keyPath),
    ...(forgetsFormer ? [ENTERED_AGAIN] : [])
  ])
}

/**
 * What the journal still has is not lost: if the key file comes back, the service goes on with it.
 */
function canHeal(running: FolderStatus, keyPath: string | undefined): keyPath is string {
  return keyPath !== undefined && running.mayHeal === true
}

function nextSteps(
  running: FolderStatus,
  path: string,
  head: string,
  keyPath: string | undefined
): readonly string[] {
  const lacks = 'the former values of entries, and who made which change'
  if (canHeal(running, keyPath))
    return [
      `lacks    ${lacks}: ${running.path} has them`,
      `next     copy ${keyPath} to ${running.keyFile}, for the owner of its folder: ` +
        'the service goes on at once, with its own journal; see journal verify, ' +
        `and keep ${path} until then`
    ]
  const withKey = keyPath === undefined ? '' : ` with ${keyPath} in the place of ${running.keyFile}`
  return [
    `lost     ${lacks}`,
    `next     stop the service, move away what is left of ${running.path}, ` +
      `journal restore ${path} --head ${head}${withKey}, and start the service`
  ]
}

/**
 * Why the file is lost, though the service has not noticed. Throws an `OperatorError` if it is
 * whole.
 */
async function damageOf(store: Reached, running: FolderStatus): Promise<string> {
  try {
    await store.read(running)
  } catch (error) {
    if (error instanceof Failure && error.code === 'journal-damaged') return error.detail
    if ('syscall' in (error as Error)) return `${running.path}: ${systemCode(error)}`
    throw error
  }
  throw new OperatorError(WHOLE_JOURNAL)
}

interface Rescued {
  readonly records: number
  readonly head: string
  readonly entries: number
  readonly before: EarlierEnd
  /** Whether it names who knows passwords. */
  readonly names: boolean
}

async function readBack(
  store: Reached,
  path: string,
  keyFile: string,
  secrets: readonly string[] | undefined
): Promise<Rescued> {
  const keys =
    secrets === undefined
      ? keysIn(store, keyFile)
      : keyring(secrets.map(secret => Buffer.from(secret, 'hex')))
  const state = emptyState()
  let before: EarlierEnd | undefined
  try {
    // With the operator's own keys: what they do not open is not rescued.
    const { records, head } = await readWithBreaths(store.files, path, keys, record => {
      before ??= earlierEnd(record)
      state.apply(record)
    })
    const { entries } = await store.ask('status', {})
    if (state.entries.count !== entries)
      throw new OperatorError('what was written is not what the service holds')
    const names = state.knowledge.recording !== undefined
    return { records, head, entries, before: before!, names }
  } catch (error) {
    throw error instanceof Failure && error.code === 'key-unknown' ? lacksKeys(keyFile) : error
  }
}

function keysIn({ files }: Reached, keyFile: string): Keyring {
  try {
    return readKeyFile(files, keyFile) ?? lacksKeys(keyFile)
  } catch {
    throw lacksKeys(keyFile)
  }
}

function lacksKeys(keyFile: string): never {
  throw new OperatorError(
    `${keyFile} lacks the key that the service seals with, and nothing was written: add --keys ` +
      'FILE, which gets the keys of the service'
  )
}
