/**
 * What a record that was opened proves of records that may be lost. The compiler asks for a row for
 * each new event.
 */
import type { Events } from '../../../store/events.ts'

/** The record's author counts as a user that was given, too. */
export interface Proof {
  /** Ids of entries and of users up to these were given before. */
  readonly entries?: number
  readonly users?: number
  /** This user must be there, or the record is put aside. */
  readonly needs?: number
}

const nothing = (): Proof => ({})
const newEntries = ({ id }: { readonly id: number }): Proof => ({ entries: id - 1 })
const ofEntry = ({ id = 0 }: { readonly id?: number | undefined }): Proof => ({ entries: id })
const rows = ({ first }: { readonly first: number }): Proof => ({ entries: first - 1 })
const ofUser = ({ id }: { readonly id: number }): Proof => ({ users: id })
const changesUser = ({ id }: { readonly id: number }): Proof => ({ users: id, needs: id })

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
  'entries.disclosed': ofEntry,
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
    users: tokens.reduce((newest, { user }) => Math.max(newest, user), 0)
  }),
  'passwords.told': ({ ids = [] }) => ({ entries: Math.max(0, ...ids) }),
  'recording.begun': nothing,
  'recording.ended': nothing,
  'recording.gap': nothing,
  'knowledge.kept': nothing,
  'knowledge.knowers': ({ knowers }) => ({
    users: knowers.reduce((newest, { knower }) => Math.max(newest, Number(knower) || 0), 0)
  }),
  'knowledge.changes': ({ first, changes }) => ({ entries: first - 1 + changes.length }),
  'knowledge.pages': nothing,
  'knowledge.former': ({ passwords }) => ({
    users: passwords.reduce(
      (newest, [, ...knowers]) => Math.max(newest, ...knowers.map(one => Number(one) || 0)),
      0
    )
  }),
  'knowledge.addresses': ({ users }) => ({
    users: users.reduce((newest, { id }) => Math.max(newest, id), 0)
  }),
  'journal.begun': nothing,
  'journal.continued': nothing,
  'journal.rewritten': nothing,
  'journal.whole': nothing
}
