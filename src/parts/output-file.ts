/**
 * Standard output where that is a file, as with `>`. Node's own stream writes to it once and takes no notice where a
 * disk that fills up has taken only a part.
 */
import { Buffer } from 'node:buffer'
import { CANNOT_SYNC } from '../disk/durable.ts'
import { disk, syncOpen, type Descriptor } from '../disk/files.ts'
import { systemCode } from '../errors.ts'

/** Writes all of a text. Throws the system's error. */
export function writeOut(descriptor: Descriptor, text: string): void {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length;) at += disk.appendSync(descriptor, bytes.subarray(at))
}

/** Makes durable what was written, where the runtime and the file system can. Throws the system's error. */
export function syncOut(descriptor: Descriptor): void {
  try {
    syncOpen(descriptor)
  } catch (error) {
    if (!CANNOT_SYNC.includes(systemCode(error))) throw error
  }
}
