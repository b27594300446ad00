#!/usr/bin/env node
/** The program: settings in, a service out, signals, exit codes (0: stopped as asked, 1: failed, 2: a bad setting). */
import { readSettings, settingsHelp } from './config.ts'
import { Failure } from './errors.ts'
import { assertLimits, LAST_LINE_TIMEOUT_MS } from './limits.ts'
import { showProgress } from './operator/terminal.ts'
import { openService } from './service.ts'
import type { Log } from './serving.ts'

const log: Log = {
  info: line => console.log(line),
  warn: line => console.error(`warning: ${line}`),
  progress: (what, share) => showProgress(process.stderr, what, share),
  access: { write: line => process.stdout.write(line), pendingBytes: () => process.stdout.writableLength }
}

async function main(): Promise<void> {
  // A reader of the output that goes away costs lines, not the service.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  if (process.argv.includes('--help')) {
    console.log(`usage: node dist/server.js [settings]\n\n${settingsHelp()}`)
    return
  }
  assertLimits()
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop.abort())
  const settings = readSettings(process.argv.slice(2), process.env)
  if (settings.accessLog && process.stdout.isTTY) {
    const why = 'a paused terminal would hold up requests'
    throw new Failure('setting-invalid', `ACCESS_LOG=on needs standard output to be a file or a pipe: ${why}`)
  }
  const service = await openService(settings, log)
  try {
    await service.listen()
  } catch (error) {
    await service.close()
    throw error
  }
  const onStop = async (): Promise<void> => {
    await service.close()
    // Not before the last line is out, but not after a reader either who takes none.
    process.stdout.write('stopped\n', () => process.exit(0))
    setTimeout(() => process.exit(0), LAST_LINE_TIMEOUT_MS)
  }
  if (stop.signal.aborted) return onStop()
  stop.signal.addEventListener('abort', () => void onStop())
  console.log('ready')
}

try {
  await main()
} catch (error) {
  if (!(error instanceof Failure)) throw error
  console.error(`error: ${error.message}`)
  process.exit(error.code === 'setting-invalid' ? 2 : 1)
}
