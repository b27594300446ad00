/**
 * Runs commands of the operator's program, one after the other, in a process that started once: for each, standard
 * streams and variables of its own, and it must leave nothing that would keep a process from ending.
 */
import { PassThrough, Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'

/** The program as built; `PROGRAM` names the root of another one. */
const ROOT = process.env.PROGRAM ? `${process.env.PROGRAM}/` : new URL('../../', import.meta.url)
const { runProgram } = await import(`${ROOT}dist/parts/operator/program/program.js`)

// A quarter of a second of a core for each password, which a process of its own (`adminProcess`) takes. An older program
// has no such bound.
const { SCRYPT_COST = {} } = await import(`${ROOT}dist/limits.js`)
Object.assign(SCRYPT_COST, { ln: 4, r: 1, p: 1 })

const END_TIMEOUT_MS = 20_000

/** What keeps this process from ending. */
const active = () => process.getActiveResourcesInfo().sort().join()

/** A stream that keeps what is written to it. */
class Kept extends Writable {
  chunks = []
  _write(chunk, _encoding, done) {
    this.chunks.push(chunk)
    done()
  }
  toString() { return Buffer.concat(this.chunks).toString() }
}

async function run({ words, input, env }) {
  const before = active()
  const streams = { stdin: new PassThrough().end(input), stdout: new Kept(), stderr: new Kept() }
  for (const [name, value] of Object.entries(streams)) Object.defineProperty(process, name,
    { value, configurable: true })
  process.env = env
  let failure = ''
  const code = await runProgram(words).catch(error => {
    failure = String(error.stack)
    return 1
  })
  for (const endMs = performance.now() + END_TIMEOUT_MS; active() !== before && failure === ''; await pause(1)) {
    if (performance.now() > endMs) failure = `it does not end: ${active()}`
  }
  return { code, out: String(streams.stdout), error: `${streams.stderr}${failure}` }
}

process.on('message', async command => { process.send(await run(command)) })
process.send('ready')
