/** Whether a state agrees with itself: for the operator, and after every test. */
import { createHash } from 'node:crypto'
import type { EntryTable } from './entry-pages.ts'
import { tokenId } from './session.ts'
import type { CommittedState } from './state.ts'

/** Throws unless the whole state agrees with itself. */
export function checkState({ entries, users, tokens }: CommittedState): void {
  checkEntries(entries)
  for (const [hash, { user }] of tokens.entries()) {
    if (users.get(user)?.passwordHash === undefined) throw new Error(`token ${tokenId(hash)} belongs to no user`)
  }
}

/** Each entry is whole, the counts are right, and the list is that of the active ones. */
function checkEntries(entries: EntryTable): void {
  const expected = createHash('sha256')
  let count = 0
  let active = 0
  for (const [id, entry] of entries.entries()) {
    count++
    const { password, sistema, usuario, status } = entry
    const text = JSON.stringify({ id, password, sistema, usuario, status })
    const hasTexts = [password, sistema, usuario].every(field => typeof field === 'string' && field !== '')
    if (!hasTexts || entries.text(id) !== text) throw new Error(`entry ${id} is not whole`)
    if (status === 1) expected.update(`${active++ === 0 ? '[' : ','}${text}`)
  }
  if (count !== entries.count) throw new Error(`there are ${count} entries, and not ${entries.count}`)
  if (active !== entries.active) throw new Error(`${active} entries are active, and not ${entries.active}`)
  const list = createHash('sha256')
  for (const piece of entries.list() ?? []) list.update(piece)
  if (active > 0) expected.update(']')
  if (list.digest('hex') !== expected.digest('hex')) throw new Error('the list is out of date')
}
