/**
 * A file that this process was started with as an open descriptor, as standard output is with `>`. Node's own stream
 * writes to it once and takes no notice where a disk that fills up has taken only a part.
 */
import { Buffer } from 'node:buffer'
import { fstatSync, fsyncSync } from 'node:fs'
import { systemCode } from '../errors.ts'
import { CANNOT_SYNC } from './durable.ts'
import { disk, type Descriptor } from './files.ts'

export function isFile(descriptor: Descriptor): boolean { return fstatSync(descriptor).isFile() }

/** Writes all of a text. Throws the system's error. */
export function writeOut(descriptor: Descriptor, text: string): void {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length;) at += disk.appendSync(descriptor, bytes.subarray(at))
}

/** Makes durable what was written, where the runtime and the file system can. Throws the system's error. */
export function syncOut(descriptor: Descriptor): void {
  try {
    fsyncSync(descriptor)
  } catch (error) {
    if (!CANNOT_SYNC.includes(systemCode(error))) throw error
  }
}
