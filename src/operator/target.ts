/** Files that commands make. */
import { randomBytes } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import { disk } from '../journal/files.ts'
import { Refusal } from './refusal.ts'

/**
 * Has a file made under a name that nothing else has, durably: it gets its own once it is whole, and never another
 * file's. Throws a `Refusal` where the name is taken. When making it fails, or the runtime does not let the folder be
 * synced, nothing is left. Gives what `make` gives.
 */
export async function makeFile<T>(path: string, make: (part: string) => Promise<T>): Promise<T> {
  const target = resolve(path)
  const part = `${target}.${randomBytes(8).toString('hex')}.part`
  const refuseTaken = (): void => {
    if (disk.stat(target) !== undefined) throw new Refusal(`${target} stands already`)
  }
  refuseTaken()
  // The name must be durable as well; this throws where that is refused, before anything is made.
  disk.syncFolder(dirname(target))
  try {
    const made = await make(part)
    refuseTaken() // by what was made meanwhile
    disk.rename(part, target)
    disk.syncFolder(dirname(target))
    return made
  } catch (error) {
    if (disk.stat(part) !== undefined) disk.remove(part)
    throw error
  }
}
