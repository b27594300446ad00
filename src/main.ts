/** The program. Exit codes: 0 stopped as asked, 1 failed, 2 a bad setting. */
import { readSettings, SETTINGS, settingsHelp } from './settings.ts'
import { disk, fileFault } from './journal/files.ts'
import { Failure } from './errors.ts'
import { LAST_LINE_TIMEOUT_MS } from './limits.ts'
import { showProgress, type Log } from './log.ts'
import { composeService } from './service.ts'
import { VERSION } from './version.ts'

async function main(): Promise<void> {
  // A reader that ends costs lines, not the service.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const asks = (...flags: readonly string[]): boolean =>
    process.argv.slice(2).some(word => flags.includes(word))
  if (asks('--version', '-V')) return console.log(VERSION)
  if (asks('--help', '-h')) {
    console.log(`usage: node ${process.argv[1]} [settings]\n\n${settingsHelp(SETTINGS)}`)
    return
  }
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    process.on(signal, () => stop.abort(signal))
  const settings = readSettings(process.argv.slice(2), process.env)
  const isLogged = 'accessLog' in settings && settings.accessLog === true
  if (isLogged && process.stdout.isTTY) {
    const why = 'a paused terminal would hold up requests'
    throw new Failure(
      'setting-invalid',
      `ACCESS_LOG=on needs standard output to be a file or a pipe: ${why}`
    )
  }
  // Messages must not mix with the access log's JSON.
  const output = isLogged ? process.stderr : process.stdout
  const log: Log = {
    info: line => output.write(`${line}\n`),
    warn: line => {
      process.stderr.write(`warning: ${line}\n`)
    },
    progress: (what, share) => showProgress(process.stderr, what, share)
  }
  const service = await composeService(settings, log)
  try {
    await service.listen()
  } catch (error) {
    await service.close().catch(() => {}) // the first error says more
    throw error
  }
  const onStop = async (): Promise<void> => {
    // Acknowledged changes are safe, whatever fails here.
    await service.close().catch(error => {
      log.warn(
        `the stop has left something behind: ${fileFault(disk, error, settings.dataDir)}; ` +
          'look at that disk'
      )
    })
    // The last line is awaited, but a stuck reader must not hold the end.
    output.write('stopped\n', () => end(stop.signal.reason))
    setTimeout(() => end(stop.signal.reason), LAST_LINE_TIMEOUT_MS)
  }
  if (stop.signal.aborted) return onStop()
  stop.signal.addEventListener('abort', () => void onStop())
  log.info('ready')
}

function end(signal: NodeJS.Signals): void {
  if (signal !== 'SIGHUP') process.exit(0)
  // An exit would make Node abort, since it cannot reset that terminal; the core file may hold
  // secrets.
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
}

export async function runServer(): Promise<void> {
  try {
    await main()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    process.stderr.write(`error: ${error.message}\n`)
    process.exit(error.code === 'setting-invalid' ? 2 : 1)
  }
}
