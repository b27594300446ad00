/** The access log in a file. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { disk } from '../../src/journal/files.ts'
import { lineAppender } from '../../src/parts/access-log/standard-output.ts'
import { freshFolder } from '../support/service.ts'

test('lines follow each other; if one was cut off, the next begins on a line of its own', t => {
  const path = join(freshFolder(t), 'lines')
  const descriptor = disk.createToAppend(path)
  let room = Infinity
  const append = lineAppender(bytes => {
    if (room === 0) throw Object.assign(new Error('full'), { code: 'ENOSPC' })
    const written = disk.appendSync(descriptor, bytes.subarray(0, room))
    room -= written
    return written
  })
  append('a\n')
  append('b\n')
  room = 4
  assert.throws(() => append('half and half\n'), { code: 'ENOSPC' })
  room = Infinity
  append('c\n')
  append('d\n')
  disk.close(descriptor)
  assert.equal(readFileSync(path, 'utf8'), 'a\nb\nhalf\nc\nd\n')
})
