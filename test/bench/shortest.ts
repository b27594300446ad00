/**
 * The shortest way to a durable change: bodies that come together are parsed, sealed and chained as the program does
 * it, and share one durable write. Nothing is checked, kept in memory, limited or counted.
 */
import type { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { Batch, nonces } from '../../src/journal/batch.ts'
import { disk } from '../../src/journal/files.ts'
import { keyring } from '../../src/journal/keys.ts'
import { FIRST_HASH } from '../../src/journal/line.ts'

interface Waiting {
  readonly body: Buffer
  readonly done: () => void
}

/** Makes a new file at a path, and gives what writes a body there and says when that is on the device. */
export function shortestWay(path: string): (body: Buffer, done: () => void) => void {
  const file = disk.createToAppend(path)
  const { newest } = keyring([randomBytes(32)])
  const nonce = nonces(randomBytes)
  let waiting: Waiting[] = []
  let isWriting = false
  let seq = 0
  let head = FIRST_HASH
  const write = (): void => {
    const taken = waiting
    waiting = []
    const batch = new Batch(seq, head, new Date().toISOString())
    for (const { body } of taken) {
      batch.add({ type: 'entry.created', by: null, data: JSON.parse(body.toString()) }, newest, nonce())
    }
    disk.append(file, batch.takeBytes(), error => {
      if (error !== null) throw error
      seq = batch.seq
      head = batch.head
      for (const { done } of taken) done()
      isWriting = waiting.length > 0
      if (isWriting) setImmediate(write)
    })
  }
  return (body, done) => {
    waiting.push({ body, done })
    if (isWriting) return
    isWriting = true
    setImmediate(write)
  }
}
