/** The running service seals with the new key from then on. */
import type { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { Failure, systemCode } from '../../../errors.ts'
import { FileJournal } from '../../../journal/file-journal.ts'
import type { DurableJournal } from '../../../journal/journal.ts'
import { OperatorError } from '../../commands/command.ts'
import { addKey } from '../../commands/new-keys.ts'
import type { Rotated } from '../../commands/operation.ts'
import { ofFile } from '../system-error.ts'

/** A shared journal uses the key once all instances have it. */
export async function rotateKey(
  journal: DurableJournal,
  random: (bytes: number) => Buffer = randomBytes
): Promise<Rotated> {
  if (!(journal instanceof FileJournal)) return journal.rotateKey!()
  const { files, keyFile } = journal
  if (journal.areKeysGiven) {
    throw new OperatorError('the program that embeds the service gives its keys, and rotates them')
  }
  journal.assertWritable() // or lock, file or keys are another's
  try {
    // The key is durable in its file before anything is sealed with it.
    const keys = await addKey(files, keyFile, random)
    journal.sealWith(keys)
    return { key: keys.newest.name, seals: true }
  } catch (error) {
    if (systemCode(error) !== 'ESTALE') throw ofFile(error, keyFile)
    throw new Failure(
      'write-failed',
      `${keyFile} was changed meanwhile, perhaps by another rotation; look (key list)`
    )
  }
}
