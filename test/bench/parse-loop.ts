/** The measure of a start: each line of a file through `JSON.parse` into a Map, nothing verified. Prints its time. */
import { closeSync, openSync, readSync } from 'node:fs'
import { Buffer } from 'node:buffer'

const startMs = performance.now()
const file = openSync(process.argv[2]!, 'r')
const chunk = Buffer.allocUnsafe(1024 * 1024)
const found = new Map<number, unknown>()
let rest = ''
for (let length = 0; (length = readSync(file, chunk)) > 0;) {
  const lines = (rest + chunk.toString('latin1', 0, length)).split('\n')
  rest = lines.pop()!
  for (const line of lines) {
    const record = JSON.parse(line) as { readonly seq: number }
    found.set(record.seq, record)
  }
}
closeSync(file)
console.log(JSON.stringify({ records: found.size, ms: performance.now() - startMs }))
