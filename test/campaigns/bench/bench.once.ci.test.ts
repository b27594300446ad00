/** The benchmark runs; the program starts on the journal that it makes. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import test from 'node:test'
import { fileURLToPath } from 'node:url'

test('the benchmark runs, and prints a table', () => {
  const args = ['--import', 'tsx', fileURLToPath(new URL('bench.ts', import.meta.url)), '--only=c16,start']
  const text = execFileSync(process.execPath, [...args, '--rounds=1', '--seconds=0.5', '--records=100'], {
    encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']
  })
  assert.match(text, /^\| durable create, 16 connections \| [\d,]+ \| [\d,]+ \| \d+\.\d\d \(/m)
  assert.match(text, /^\| memory an entry,/m)
})
