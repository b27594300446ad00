/** The facts that the journal may hold about entries, and what they change. */

/** A password entry (contract §2). */
export interface Entry {
  readonly id: number
  readonly password: string
  readonly sistema: string
  readonly usuario: string
  /** 1 is active, 0 is deleted. */
  readonly status: 0 | 1
}

/** The fields of an entry that a client gives. */
export type EntryFields = Pick<Entry, 'password' | 'sistema' | 'usuario'>

/** Their names. */
export const ENTRY_FIELDS: readonly (keyof EntryFields)[] = ['password', 'sistema', 'usuario']

/** Any of them, where the others stay as they are. */
export type EntryChanges = { readonly [F in keyof EntryFields]?: EntryFields[F] | undefined }

/** The data of each type of record. */
export interface Facts {
  'entry.created': EntryFields & { readonly id: number }
  /** The id, and the fields that changed. */
  'entry.updated': EntryChanges & { readonly id: number }
  'entry.deleted': { readonly id: number }
}
