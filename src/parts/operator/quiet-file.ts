/** The file of a journal while nothing is appended to it: for what replaces it by a whole new one, or adds a key. */
import type { Buffer } from 'node:buffer'
import { Failure, systemCode } from '../../errors.ts'
import type { FileJournal } from '../../journal/file-journal.ts'
import type { DurableJournal, End, JournalRecord, Rotated } from '../../journal/journal.ts'
import { addKey } from '../new-keys.ts'

export interface QuietFile extends Pick<FileJournal, 'files' | 'path' | 'end' | 'keys' | 'nonce'> {
  /** The time now, as a line has it. */
  readonly time: string
  /** Throws where the file of the keys lacks one that seals: what replaces the journal could not be read again. */
  readonly confirm: () => void
}

/** The journal that a file was replaced by: where it ends, and its first record, which says so. */
export interface Replacement {
  readonly end: End
  readonly first: JournalRecord
}

/** Has the file of a journal replaced; if that fails, it is as it was. Only while nothing is appended. */
export async function replaceFile(
  { file }: DurableJournal, make: (file: QuietFile) => Promise<Replacement>
): Promise<void> {
  if (file === undefined) {
    const how = 'stop all instances, copy it to a file, do it there, and copy that to another ETCD_PREFIX'
    throw new Failure('input-invalid', `a journal in etcd is not written again where it is; ${how}`)
  }
  file.assertWritable()
  const { files, path, end, keys, nonce } = file
  const quiet = { files, path, end, keys, nonce, time: file.time(), confirm: () => file.assertKeys() }
  const made = await make(quiet).catch((cause: unknown) => {
    const fault = file.fault()
    if (fault === undefined) throw cause
    throw new Failure('journal-failed', `${fault}, and then: ${systemCode(cause)}`, { cause })
  })
  file.adopt(made.end, keys, [], made.first)
}

/**
 * Makes a new key, with which everything is sealed from now on, or from when all who share the journal have it. Only
 * while nothing is appended.
 */
export async function rotateKey(journal: DurableJournal, random: (bytes: number) => Buffer): Promise<Rotated> {
  const { file } = journal
  if (file === undefined) return journal.rotateKey!()
  file.assertWritable()
  const keys = await addKey(file.files, file.keyFile, random)
  file.adopt(file.end, keys, file.usedKeys)
  return { key: keys.newest.name, seals: true }
}
