/** Ways to run the programs with less than everything, and what they must still do then. */
import { strict as assert } from 'node:assert'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runProgram, startProgram, type Program, type ProgramOptions } from './program.ts'
import { PYTHON } from './programs.ts'
import { freshFolder } from './service.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A Node, the folder with `dist` and `package.json`, and the folder `data` in it. */
export interface Place {
  readonly node: string
  readonly version: readonly [major: number, minor: number]
  readonly program: string
  readonly data: string
}

/** How something is run under a restriction, and by which paths it then knows program and data. */
interface Confined extends Pick<Place, 'program' | 'data'> {
  /** The command up to and with the flags of Node. */
  readonly command: readonly string[]
}

export interface Restriction {
  readonly name: string
  /** Why it cannot be tried with a Node; false if it can. */
  missing?(place: Pick<Place, 'node' | 'version'>): string | false
  confine(place: Place): Confined
  /** A script that throws under the restriction, and only there. */
  readonly forbidden: string
  refusesSync?(place: Place): boolean
}

/** Node's own restrictions but the permission model. */
const FROZEN = ['--disallow-code-generation-from-strings', '--disable-proto=throw', '--frozen-intrinsics']

/**
 * The flags of the permission model: to read program and data, to write data alone. Node 20.12 finds `package.json`
 * only if it may read the whole folder, and loses its way among paths one of which begins as another.
 */
function permissionFlags({ version: [major], program, data }: Pick<Place, 'version' | 'program' | 'data'>): string[] {
  const readable = major < 22 ? [`${program}/`] : [`${program}/dist/`, `${program}/package.json`, `${data}/`]
  return [
    major < 22 ? '--experimental-permission' : '--permission', ...major < 25 ? [] : ['--allow-net'],
    ...readable.map(path => `--allow-fs-read=${path}`), `--allow-fs-write=${data}/`
  ]
}

/** The command lines of SECURITY.md, one for each version of Node. */
export function documentedLines(): string {
  const lines = [20, 22, 24, 26].map(major => {
    const flags = permissionFlags({ version: [major, 99], program: '$PWD', data: '$PWD/data' })
    const quoted = [...flags, ...FROZEN].map(flag => flag.replace(/=(\$.*)/, '="$1"'))
    return `# Node ${major}\nnode ${quoted.join(' ')} dist/server.js`
  })
  return ['```', ...lines, '```'].join('\n')
}

/** A root with nothing but the system's libraries, Node and the program, none of which can be written, and the data. */
const BARE_ROOT = `set -eu
mount -t tmpfs -o mode=755 tmpfs "$1"
chown 65534:65534 "$4"
cd "$1"
mkdir program data; touch node
mount --bind "$2" node; mount --bind "$3" program; mount --bind "$4" data
for name in usr lib lib64; do [ ! -d /$name ] || { mkdir $name; mount --rbind /$name $name; }; done
for name in usr lib lib64 node program .; do [ ! -e $name ] || mount -o remount,bind,ro $name; done
root=$1; shift 4
exec chroot "$root" "$@"`

const NOBODY = ['--reuid=65534', '--regid=65534', '--clear-groups', '--no-new-privs', '--bounding-set=-all']

/** What systemd's MemoryDenyWriteExecute does where the kernel can: PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN. */
const NO_WRITABLE_CODE = `import ctypes, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) != 0: sys.exit('this kernel has no PR_SET_MDWE')
os.execv(sys.argv[1], sys.argv[1:])`

/** Node 22 compiles WebAssembly for its node:http, which does without; --jitless has none, and nobody catches that. */
const SURVIVING = ['--unhandled-rejections=warn']

/** Calls that systemd's `@system-service` leaves out: the only one that Node was ever seen to make, and some more. */
const FILTERED = 'pkey_alloc,mount,umount2,pivot_root,chroot,ptrace,bpf,unshare,setns,reboot,swapon,init_module'

function ends(...command: readonly string[]): boolean {
  const [file = '', ...args] = command
  return spawnSync(file, args, { stdio: 'ignore' }).status === 0
}

/** All of Node's own at once, as SECURITY.md has them, with little memory. */
export const NODES_OWN: Restriction = {
  name: "all of Node's own",
  confine: place => ({ ...place, command: [
    place.node, ...permissionFlags(place), ...FROZEN, '--max-old-space-size=64'
  ] }),
  forbidden: "fs.readFileSync('/proc/self/status')",
  // The oldest ones do not look at it.
  refusesSync: ({ version: [major, minor] }) => major > 20 || minor > 12
}

/** Nothing of the system's but what Node needs; nobody's rights. */
export const BARE: Restriction = {
  name: 'a bare, read-only root without /tmp, an unprivileged user, no capabilities',
  missing: () => !ends('unshare', '-m', 'setpriv', '--no-new-privs', 'true') && 'that needs root, unshare and setpriv',
  confine: ({ node, program, data }) => {
    const root = join(program, '..', 'root')
    mkdirSync(root, { recursive: true })
    return {
      command: [
        'unshare', '-m', 'sh', '-c', BARE_ROOT, 'sh', root, node, program, data, 'setpriv', ...NOBODY, '/node'
      ],
      program: '/program', data: '/data'
    }
  },
  forbidden: "fs.readdirSync('/proc')"
}

export const RESTRICTIONS: readonly Restriction[] = [
  NODES_OWN,
  BARE,
  {
    name: 'no memory that is written and run (MemoryDenyWriteExecute), with --jitless',
    missing: ({ node }) =>
      !ends(PYTHON, '-c', NO_WRITABLE_CODE, node, '--jitless', '-e', '0') && 'that needs python3 and Linux 6.3',
    confine: ({ node, version: [major], program, data }) => ({
      command: [PYTHON, '-c', NO_WRITABLE_CODE, node, '--jitless', ...major === 22 ? SURVIVING : []], program, data
    }),
    forbidden: "if (typeof WebAssembly === 'undefined') throw 1"
  },
  {
    name: 'system calls filtered (SystemCallFilter=@system-service, SystemCallErrorNumber=EPERM)',
    missing: () => !ends('strace', '-D', '-f', '-o', '/dev/null', 'true') && 'that needs strace',
    confine: ({ node, program, data }) => ({
      command: [
        'strace', '-D', '-f', '-o', '/dev/null', '-e', `trace=${FILTERED}`, '-e', `inject=${FILTERED}:error=EPERM`, node
      ],
      program, data
    }),
    forbidden: "if (require('child_process').spawnSync('unshare', ['-m', 'true']).status !== 0) throw 1"
  }
]

const PASSWORD = 'correct horse'

/** Makes an account and an entry, restarts, reads, and works as the operator, all of it under a restriction. */
export async function tryRestriction(
  t: TestContext, restriction: Restriction, node: Pick<Place, 'node' | 'version'>
): Promise<void> {
  // What is installed, and nothing else: no node_modules, no sources.
  const program = join(freshFolder(t), 'program')
  const data = join(program, 'data')
  for (const name of ['dist', 'package.json']) cpSync(join(ROOT, name), join(program, name), { recursive: true })
  mkdirSync(data, { mode: 0o700 })
  const place = { ...node, program, data }
  const confined = restriction.confine(place)
  const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }
  const run = (command: readonly string[], ...args: readonly string[]): ReturnType<typeof runProgram> =>
    runProgram(t, { command, args, env, input: `${PASSWORD}\n` })
  assert.notEqual((await run(confined.command, '-e', restriction.forbidden)).code, 0, 'the restriction is in force')
  const free = await run([place.node], '-e', restriction.forbidden)
  assert.equal(free.code, 0, `without the restriction that goes: ${free.stderr}`)

  // Where a folder cannot be synced, the journal is made beforehand.
  const refusesSync = restriction.refusesSync?.(place) === true
  let isFree = refusesSync
  const admin = async (code: number, ...words: readonly string[]): Promise<string> => {
    const { command, program, data } = isFree ? { ...place, command: [place.node] } : confined
    const ended = await run([...command, `${program}/dist/admin.js`], ...words, `--data=${data}`)
    assert.equal(ended.code, code, `${words.join(' ')}: ${ended.stderr}${ended.stdout}`)
    if (code === 1) assert.match(ended.stderr,
      /^error: Node's permission model refuses this \(\w.+\), and nothing was changed; run .+\n$/m)
    return ended.stdout
  }
  await admin(0, 'init')
  isFree = false
  await admin(0, 'user', 'add', 'ana@example.org', '--password-stdin')

  const options: ProgramOptions = {
    command: [...confined.command, `${confined.program}/dist/server.js`], env,
    args: [`--data=${confined.data}`, '--port=0', '--auth=bearer']
  }
  const stop = async (program: Program): Promise<void> => {
    const { code, stderr } = await program.stop()
    assert.equal(code, 0)
    assert.doesNotMatch(stderr, /^(warning|error): /m)
  }
  const first = await startProgram(t, options)
  const { token } = await ask(first, 'login', undefined, { email: 'ana@example.org', password: PASSWORD })
  const entry = { password: 'ñ 😀', sistema: 's', usuario: 'u' }
  await ask(first, 'createPassword', token, entry)
  assert.match(await admin(0, 'entry', 'history', '1'), /entry\.created/)
  await stop(first)

  const second = await startProgram(t, options)
  assert.deepEqual(await ask(second, 'listPassword', token), [{ id: 1, ...entry, status: 1 }])
  await stop(second)
  const before = readdirSync(data)
  const copy = join(confined.data, 'copy')
  const afterwards = ['key rotate', 'key rewrite', 'journal compact']
  for (const words of [...afterwards, `journal backup ${copy}`, `export --output ${copy}.csv --yes`,
    `journal salvage ${confined.data}/journal.jsonl --to ${copy}.jsonl`]) {
    await admin(refusesSync ? 1 : 0, ...words.split(' '))
  }
  if (refusesSync) {
    assert.deepEqual(readdirSync(data), before, 'what is refused leaves nothing')
    isFree = true
    const third = await startProgram(t, options)
    await admin(1, 'key', 'rotate')
    await stop(third)
  }
  assert.match(await admin(0, 'journal', 'verify'), refusesSync ? /^records +6$/m : /^records/m)
}

async function ask({ url }: Program, operation: string, token?: string, body?: object): Promise<any> {
  const headers = {
    'Content-Type': 'application/json', ...token === undefined ? {} : { Authorization: `Bearer ${token}` }
  }
  const request = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
  const response = await fetch(`${url}/api/${operation}`, request)
  assert.equal(response.status, 200)
  return response.json()
}
