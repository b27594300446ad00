/** What a service whose journal has failed still holds: for `journal rescue`, and at the stop. */
import { dirname, join } from 'node:path'
import { FileJournal } from '../../../journal/file-journal.ts'
import type { DurableJournal } from '../../../journal/journal.ts'
import { readKeyFile } from '../../../journal/keys.ts'
import type { State } from '../../../store/state.ts'
import { OperatorError } from '../../commands/command.ts'
import { Lines } from '../../commands/operation.ts'
import { makeWhole } from '../../commands/whole-file.ts'
import { ENTERED_AGAIN } from '../commands/who-knows.ts'
import { checkpointAt, firstOf } from './rewrite.ts'
import { contentOf, sealedPieces, writeJournal, type Content } from './write-journal.ts'

/** A command has written everything up to this head to a file, and synced it. */
export interface Rescue {
  head: string | undefined
}

export const WHOLE_JOURNAL = 'the journal is whole: journal backup FILE copies it'

/** `damage`: why the file is lost, if the service has not noticed. The journal then fails. */
export function rescuedLines(
  journal: DurableJournal,
  state: State,
  damage: string | undefined
): Lines {
  const file = assertFailed(journal, damage)
  const { head } = file.end
  return new Lines(
    (function* () {
      yield* sealedPieces(contentAt(file, state), { key: file.keys.newest, nonce: file.nonce })
      // A key file that was put back ends the fault.
      if (file.end.head !== head) throw new Error('the journal has changed meanwhile')
    })()
  )
}

export function rescuedKeys(journal: DurableJournal): { readonly keys: readonly string[] } {
  return { keys: secretsOf(assertFailed(journal)) }
}

export function confirmRescue(journal: DurableJournal, rescue: Rescue, head: string): {} {
  if (assertFailed(journal).end.head !== head)
    throw new OperatorError('this head is not the newest one')
  rescue.head = head
  return {}
}

/** `say` takes a line for the operator. */
export async function rescueAtStop(
  journal: DurableJournal,
  state: State,
  rescue: Rescue,
  say: (line: string) => void
): Promise<void> {
  if (!(journal instanceof FileJournal) || journal.status().fault === undefined) return
  // Another head: the key file came back, and records were appended after the rescue.
  if (journal.end.head === rescue.head)
    say('the journal had failed; journal rescue has written all of it')
  else await keepState(journal, state, say)
  await keepKeys(journal, say)
}

async function keepState(
  journal: FileJournal,
  state: State,
  say: (line: string) => void
): Promise<void> {
  const {
    files,
    path,
    keys: { newest: key },
    nonce
  } = journal
  const folder = dirname(path)
  const target = join(folder, `journal.rescued-${timeOf(journal)}.jsonl`)
  files.makeFolder(folder)
  const { head } = await makeWhole(files, target, part =>
    writeJournal(part, contentAt(journal, state), { files, key, nonce })
  )
  say(
    `the journal had failed: all that was in memory is in ${target}; take it back with the ` +
      `operator's command journal restore ${target} --head ${head}`
  )
  if (state.knowledge.recording !== undefined) say(ENTERED_AGAIN)
}

/** Without its keys, nobody could read the file. */
async function keepKeys(journal: FileJournal, say: (line: string) => void): Promise<void> {
  const { files, keyFile } = journal
  if (lackingKeys(journal).length === 0) return
  // A key file that is there stays: it may open what this process never read.
  const path = files.stat(keyFile) === undefined ? keyFile : `${keyFile}.rescued-${timeOf(journal)}`
  files.makeFolder(dirname(path))
  await makeWhole(files, path, part => part.write(keyText(secretsOf(journal))))
  say(`the key file lacked keys: those of the service are in ${path}`)
}

export function keyText(keys: readonly string[]): string {
  return keys.map(key => `${key}\n`).join('')
}

function secretsOf({ keys }: FileJournal): readonly string[] {
  return keys.names.map(name => keys.find(name)!.secret.export().toString('hex'))
}

function lackingKeys({ files, keyFile, usedKeys, areKeysGiven }: FileJournal): readonly string[] {
  if (areKeysGiven) return []
  try {
    const found = readKeyFile(files, keyFile)
    return [...usedKeys].filter(name => found?.find(name) === undefined)
  } catch {
    return [...usedKeys]
  }
}

/** Not compared with the state: the service's heap may have no room for a second one. */
function contentAt(file: FileJournal, state: State): Content {
  const { checkpoint: _, ...content } = contentOf(
    firstOf(file, 'repaired'),
    checkpointAt(state, file)
  )
  return content
}

function timeOf(file: FileJournal): string {
  return file.time().replaceAll(':', '')
}

function assertFailed(journal: DurableJournal, damage?: string): FileJournal {
  if (!(journal instanceof FileJournal)) {
    throw new OperatorError(
      'a journal in etcd has its records there; journal close, then journal backup'
    )
  }
  if (damage !== undefined) journal.fail(damage) // no change may come after the rescue
  if (journal.status().fault === undefined) throw new OperatorError(WHOLE_JOURNAL)
  return journal
}
