/** Checks that a journal is whole and that a state agrees with itself; the tests use it, too. */
import { createHash } from 'node:crypto'
import { Failure } from '../../errors.ts'
import type { FileJournal } from '../../journal/file-journal.ts'
import { readInSteps } from '../../journal/recover.ts'
import { ENTRY_FIELDS, entryText, FIELDS } from '../../store/entry.ts'
import type { Entries } from '../../store/entries.ts'
import { tokenId } from '../../store/session.ts'
import type { State } from '../../store/state.ts'
import { ofFile } from '../system-error.ts'

/** Throws an `Error` for a contradiction. */
export function checkState({ entries, users, tokens }: State): void {
  checkEntries(entries)
  for (const [hash, { user }] of tokens.entries()) {
    if (users.get(user)?.passwordHash === undefined) throw new Error(`token ${tokenId(hash)} belongs to no user`)
  }
}

function checkEntries(entries: Entries): void {
  const expected = createHash('sha256')
  let count = 0
  let active = 0
  for (const entry of entries.entries()) {
    const { id } = entry
    count++
    const text = JSON.stringify(entry)
    const hasTexts = ENTRY_FIELDS.every(field => !FIELDS[field].isRequired || (entry[field] ?? '') !== '')
    const isWhole = hasTexts && entries.text(id)!.toString() === text && entryText(entry) === text
    if (!isWhole) throw new Error(`entry ${id} is not whole`)
    if (entry.status === 1) expected.update(`${active++ === 0 ? '[' : ','}${text}`)
  }
  if (count !== entries.count) throw new Error(`there are ${count} entries, and not ${entries.count}`)
  if (active !== entries.active) throw new Error(`${active} entries are active, and not ${entries.active}`)
  const list = createHash('sha256')
  for (const piece of entries.list() ?? []) list.update(piece)
  if (active > 0) expected.update(']')
  if (list.digest('hex') !== expected.digest('hex')) throw new Error('the list is out of date')
}

/** Advice if a service still has the damaged journal in memory. */
export const IN_MEMORY: string =
  'the service has everything in memory: do not stop it; journal repair makes the service write the journal again'

/** Advises `journal repair` instead of a backup, which would lose newer records. */
export function damageBeside(error: Failure, more: string = ''): Failure {
  const what = error.message.replace(/^[^:]*: /, '').replace(/; restore a backup, or .*$/, '')
  return new Failure('journal-damaged', `${what}${more}; ${IN_MEMORY}`, { cause: error })
}

/** Reads in steps, so that others are served. Throws `journal-damaged`. */
export async function verifyFile({ files, path, end: { goodBytes }, keys }: FileJournal): Promise<void> {
  try {
    for (const _ of readInSteps(files, path, keys, () => {}, goodBytes)) {
      await new Promise(resolve => setTimeout(resolve, 0))
    }
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'journal-damaged') throw ofFile(error, path)
    throw damageBeside(error)
  }
}
