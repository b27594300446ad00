/**
 * What an opened record proves of records that may be lost. The compiler asks for a row for each
 * new event.
 */
import { lastIn, type Ids } from '../../../knowledge/ids.ts'
import type { Events } from '../../../store/events.ts'

/** The record's author counts as a user, too. */
export interface Proof {
  /** Ids of entries and users up to these were given before. */
  readonly entries?: number
  readonly users?: number
  /** Without this user, the record is put aside. */
  readonly needs?: number
}

const nothing = (): Proof => ({})
const newEntries = ({ id }: { readonly id: number }): Proof => ({ entries: id - 1 })
const ofEntry = ({ id }: { readonly id: number }): Proof => ({ entries: id })
const rows = ({ first }: { readonly first: number }): Proof => ({ entries: first - 1 })
const ofUser = ({ id }: { readonly id: number }): Proof => ({ users: id })
const changesUser = ({ id }: { readonly id: number }): Proof => ({ users: id, needs: id })

function greatest(ids: readonly number[]): number {
  return ids.reduce((newest, id) => Math.max(newest, id), 0)
}

function lastOf(ids: Ids = []): number {
  return lastIn(ids)
}

export const PROOFS: { readonly [T in keyof Events]: (data: Events[T]) => Proof } = {
  'entry.created': newEntries,
  'fields.created': newEntries,
  'entry.updated': ofEntry,
  'fields.updated': ofEntry,
  'entry.deleted': ofEntry,
  'entry.restored': ofEntry,
  'entry.purged': ofEntry,
  'entries.imported': rows,
  'fields.imported': rows,
  'entries.kept': rows,
  'fields.kept': rows,
  'entries.disclosed': ({ id = 0, entryIds }) => ({ entries: Math.max(id, lastOf(entryIds)) }),
  'user.added': ({ id }) => ({ users: id - 1 }),
  'user.changed': changesUser,
  'user.removed': ofUser,
  'users.kept': ({ first }) => ({ users: first - 1 }),
  'password.changed': changesUser,
  'password.rehashed': changesUser,
  'factor.given': changesUser,
  'factor.removed': changesUser,
  'token.issued': ({ user }) => ({ users: user, needs: user }),
  'token.revoked': nothing,
  'tokens.revoked': ({ user }) => ({ users: user }),
  'tokens.kept': ({ tokens }) => ({
    users: greatest(tokens.map(({ user }) => user))
  }),
  'passwords.told': ({ entryIds, ids }) => ({ entries: lastOf(entryIds ?? ids) }),
  'recording.begun': nothing,
  'recording.ended': nothing,
  'recording.gap': nothing,
  'recording.kept': nothing,
  'knowers.kept': ({ knowers }) => ({
    users: greatest(knowers.map(({ knower }) => Number(knower) || 0)),
    entries: greatest(knowers.map(({ ids, equal }) => Math.max(lastOf(ids), lastOf(equal))))
  }),
  'knowledge.addresses': ({ users }) => ({
    users: greatest(users.map(({ id }) => id))
  }),
  'knowledge.kept': nothing,
  'knowledge.knowers': nothing,
  'knowledge.changes': nothing,
  'knowledge.pages': nothing,
  'knowledge.former': nothing,
  'journal.begun': nothing,
  'journal.continued': nothing,
  'journal.rewritten': nothing,
  'journal.whole': nothing
}
