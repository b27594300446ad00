/** The operator's program, `node dist/admin.js`: its commands in processes that run many, or in one of their own. */
import assert from 'node:assert/strict'
import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { freshFolder } from './service.ts'
import { PYTHON } from './programs.ts'
import { HELD } from './slow-disk.ts'

export const ADMIN: string = fileURLToPath(new URL('../../dist/admin.js', import.meta.url))

const HOST = fileURLToPath(new URL('admin-host.js', import.meta.url))

/** A command that has not ended by then hangs, and must not hold up all other tests. */
const LIMITS = { timeout: 60_000, killSignal: 'SIGKILL' } as const

/** Waits for the end of a command and gives its exit code; throws where it had to be killed. */
async function ended(child: ChildProcess, words: string): Promise<number | null> {
  const [code, signal] = await once(child, 'close')
  assert.notEqual(signal, LIMITS.killSignal, `${words}: no end within ${LIMITS.timeout} ms`)
  return code
}

export interface Done { readonly code: number | null, readonly out: string, readonly error: string }

/** Processes that run commands and have nothing to do; as many as commands ever ran at once. */
const idle: ChildProcess[] = []

/** A process that runs commands; it ends with this one. */
async function host(): Promise<ChildProcess> {
  const known = idle.pop()
  if (known !== undefined) {
    known.ref()
    known.channel!.ref()
    return known
  }
  const child = fork(HOST, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], execArgv: [] })
  await once(child, 'message')
  return child
}

const IT_WAITS = /^the service has not answered yet[^\n]+\n/m

/** Runs a command on a folder; `input` is its standard input, `env` what it sees besides the folder's name. */
export async function admin(folder: string, words: string, input = '', env: NodeJS.ProcessEnv = {}): Promise<Done> {
  const child = await host()
  child.send({ words: words.split(' '), input, env: { DATA_DIR: folder, ...env } })
  const [left] = await once(child, 'message', { signal: AbortSignal.timeout(LIMITS.timeout) }).catch(() => {
    child.kill('SIGKILL')
    return assert.fail(`${words}: no end within ${LIMITS.timeout} ms`)
  })
  child.unref()
  child.channel!.unref()
  idle.push(child)
  return { ...left, error: left.error.replace(IT_WAITS, '') }
}

/**
 * The same in a process that starts and ends with the command, as its user has it. `holds`: the folder through which
 * `hold` holds a call of its disk.
 */
export async function adminProcess(folder: string, words: string, input: string | Buffer = '',
  holds?: string): Promise<Done> {
  const [held, env] = holds === undefined ? [[], {}] : [['--import', HELD], { HOLD: holds }]
  const child = spawn(process.execPath, [...held, ADMIN, ...words.split(' ')],
    { env: { DATA_DIR: folder, ...env }, ...LIMITS })
  let out = ''
  let error = ''
  child.stdout.setEncoding('utf8').on('data', text => { out += text })
  child.stderr.setEncoding('utf8').on('data', text => { error += text })
  child.stdin.on('error', () => {}).end(input)
  return { code: await ended(child, words), out, error: error.replace(IT_WAITS, '') }
}

/** What commands say first that change a journal as a whole: which one. */
const NAMED_JOURNAL = /^journal \/[^\n]+\n/

/** Runs a command that must succeed, and say no more on standard error than that; gives what it prints. */
export async function done(folder: string, words: string, input?: string): Promise<string> {
  const { code, out, error } = await admin(folder, words, input)
  assert.deepEqual([code, error.replace(NAMED_JOURNAL, '')], [0, ''], `${words}: ${error}`)
  return out
}

/** Runs a command that must end with a code and one line that matches. */
export async function refused(folder: string, words: string, code: number, line: RegExp,
  input?: string): Promise<void> {
  const left = await admin(folder, words, input)
  assert.deepEqual([left.code, left.out], [code, ''], `${words}: ${left.error}`)
  const said = left.error.replace(NAMED_JOURNAL, '')
  const json = said.startsWith('{') ? JSON.parse(said) : undefined
  if (json !== undefined) assert.deepEqual(json, { error: json.error, exitCode: code })
  const error = json === undefined ? said : `error: ${json.error}\n`
  assert.match(error, /^error: [^\n]+\n$/)
  assert.match(error, line)
}

export async function initialized(t: TestContext): Promise<string> {
  const folder = join(freshFolder(t), 'data')
  await done(folder, 'init')
  return folder
}

/**
 * A command at a terminal, and somebody who types there. The last bytes of a terminal are lost if its last writer
 * ends before they are read. So this process holds an end until it has taken the command's exit, and then writes a byte
 * which no text has: behind that nothing is left to read.
 */
const TYPIST = [
  'import fcntl, json, os, pty, signal, struct, sys, termios, threading',
  'LAST = b"\\xff"',
  'fd, held = pty.openpty()',
  'fcntl.ioctl(held, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))', // before the program can look
  'pid = os.fork()',
  'if pid == 0:',
  '  os.setsid()',
  '  fcntl.ioctl(held, termios.TIOCSCTTY, 0)',
  '  for stream in (0, 1, 2): os.dup2(held, stream)',
  '  os.closerange(3, 256)',
  '  os.execv(sys.argv[2], sys.argv[2:])',
  'status = None',
  'def take_exit():',
  '  global status',
  '  status = os.waitpid(pid, 0)[1]',
  '  os.write(held, LAST)',
  'threading.Thread(target=take_exit, daemon=True).start()',
  'seen = b""',
  'def read():',
  '  global seen',
  '  some = os.read(fd, 1024)',
  '  shown = some.replace(LAST, b"")',
  '  seen += shown; sys.stdout.buffer.write(shown); sys.stdout.flush()',
  '  if LAST in some: sys.exit(os.waitstatus_to_exitcode(status))',
  'for prompt, answer in json.loads(sys.argv[1]):',
  '  while prompt.encode() not in seen: read()',
  '  if answer == "SIGUSR1": os.kill(pid, signal.SIGUSR1)',
  '  elif answer == "MEANWHILE": sys.stdin.readline()',
  '  else: os.write(fd, answer.encode() + b"\\r")',
  'while True: read()'
].join('\n')

/**
 * Runs a command at a terminal of its own and types an answer, or sends that signal, after each prompt; gives what
 * could be seen there. Where the answer is MEANWHILE, something is done while the command waits.
 */
export async function atTerminal(
  folder: string, words: string, typed: readonly (readonly [prompt: string, answer: string])[] = [],
  program: string = ADMIN, meanwhile: () => Promise<void> = async () => {}
): Promise<{ readonly code: number | null, readonly seen: string }> {
  const args = ['-c', TYPIST, JSON.stringify(typed), process.execPath, program, ...words.split(' ')]
  const child = spawn(PYTHON, args, { env: { ...process.env, DATA_DIR: folder }, ...LIMITS })
  let seen = ''
  const prompt = typed.find(([, answer]) => answer === 'MEANWHILE')?.[0]
  let act: Promise<void> | undefined
  child.stdout.setEncoding('utf8').on('data', text => {
    seen += text
    if (prompt !== undefined && seen.includes(prompt)) act ??= meanwhile().finally(() => child.stdin.write('\n'))
  })
  const code = await ended(child, words)
  await act
  return { code, seen }
}
