/**
 * The way to the store. Changes go through the socket of the process that has the lock; where there is none, this
 * process takes the lock and uses a socket of its own: one code path, and always one writer. Reads go to the journal's
 * file, and ask the service only how far it is acknowledged; without a service they need neither the lock nor a
 * writable file system.
 */
import { join } from 'node:path'
import { localPipeline } from '../../http/local.ts'
import type { CoreSettings, StorageSettings } from '../../core-settings.ts'
import { disk, type Files } from '../../journal/files.ts'
import { heldSockets, lockFolder, probe } from '../../journal/lock.ts'
import { Failure, systemCode } from '../../errors.ts'
import type { JournalRecord } from '../../journal/journal.ts'
import { readKeyFile } from '../../journal/keys.ts'
import { JOURNAL_FILE, locationOf } from '../../journal/folder.ts'
import { readJournal } from '../../journal/recover.ts'
import { sentenceOf } from '../../store/validate.ts'
import { SHUTDOWN_TIMEOUT_MS } from '../../limits.ts'
import { JOURNALS } from '../../settings.ts'
import { openStorage, type Storage } from '../../storage.ts'
import { State } from '../../store/state.ts'
import { OperatorError, type JournalRead, type JournalStatus, type OnRecord, type Reached } from '../command.ts'
import { requestLocal, type LocalAnswer } from './local-client.ts'
import { operatorRoutes } from './operator-routes.ts'
import { readSameFile, statusWithFile } from './same-file.ts'
import type { Terminal } from '../terminal.ts'

const STATUS = '/operator/status'
/** How often, and how long apart, a process is asked again that is just opening or closing, and gives no answer. */
const TRIES = 50
const PAUSE_MS = 100
/** The same of one that says that it is busy, or closes, which may take as long as its slowest client. */
const BUSY_TRIES = TRIES + SHUTDOWN_TIMEOUT_MS / PAUSE_MS
/** An answer of another process that takes longer is waited for aloud. */
const SILENT_MS = 2_000
const WAITING = 'the service has not answered yet, and may be busy with the journal: waiting; ' +
  'after Ctrl+C it may still do what was asked for'
const NO_ANSWER = 'the service took no request, and nothing was changed; it may have no file descriptors left: look ' +
  'into its log, raise its limit (LimitNOFILE), or restart it'
const MAX_NAME_CHARACTERS = 64
/** What a service answers that does not have a route. */
const NO_ROUTE = 'Not Found'

type StoreSettings = StorageSettings & Pick<CoreSettings, 'abilities'>

/**
 * Reaches a store. Asking rejects with a `Failure` when the folder cannot be opened either, and with an `OperatorError`
 * when no journal is there and `mayCreate` is false (a mistyped folder should not become a new one), or when the
 * folder is another user's and this one is not root.
 */
export class StoreAccess implements Reached {
  readonly settings: StoreSettings
  readonly #mayCreate: boolean
  readonly #terminal: Terminal
  readonly #keyFile: string
  readonly #folder: string
  /** The storage that this process has opened, since no other had. */
  #opened: Storage | undefined
  #saysThatItWaits = false

  constructor(settings: StoreSettings, mayCreate: boolean, terminal: Terminal) {
    const { keyFile, folder } = locationOf(settings)
    this.settings = settings
    this.#mayCreate = mayCreate
    this.#terminal = terminal
    this.#keyFile = keyFile
    this.#folder = folder
  }

  readonly files: Files = disk

  get hasLock(): boolean { return this.#opened !== undefined }

  async ask(method: 'GET' | 'POST', path: string, body?: unknown): Promise<any> {
    let timer: NodeJS.Timeout | undefined
    try {
      for (let tries = 1, answered = 0; ; tries++) {
        try {
          const asked = await this.#socket() ?? this.#folder
          timer ??= this.#noteLater()
          const answer = await requestLocal(asked, method, path, body, operatorName(process.env))
          if (answer.status === 200) return answer.body
          if (answer.status !== 503 || tries >= BUSY_TRIES) throw errorOf(answer)
          answered = tries
        } catch (error) {
          if (!isTransition(error)) throw error
          const isOver = tries - answered >= TRIES
          if (isOver) throw error instanceof Failure ? error : new OperatorError(NO_ANSWER, { cause: error })
        }
        await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async look(): Promise<JournalStatus | undefined> {
    let timer: NodeJS.Timeout | undefined
    try {
      const found = await this.#liveSocket()
      timer = this.#noteLater()
      const answer = found === undefined ? undefined : await requestLocal(found, 'GET', STATUS)
      return answer?.body as JournalStatus | undefined
    } catch {
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }

  async status(): Promise<JournalStatus> {
    if (this.settings.journal !== 'file' || await this.#liveSocket() !== undefined) {
      return statusWithFile(this.files, () => this.ask('GET', STATUS))
    }
    this.#assertJournal()
    const path = disk.real(join(this.#folder, JOURNAL_FILE))
    const file = disk.stat(path)!
    return { path, keyFile: this.#keyFile, bytes: file.bytes, file }
  }

  async alone<T>(work: () => Promise<T>): Promise<T> {
    if (disk.stat(this.#folder) === undefined) throw new OperatorError(`there is no folder ${this.#folder}`)
    this.assertOwner()
    try {
      const lock = await lockFolder(this.files, this.#folder)
      try {
        return await work()
      } finally {
        await lock.release()
      }
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'folder-held') throw error
      throw new OperatorError(`${error.message}; if that is the service, stop it first`)
    }
  }

  async read(status: JournalStatus, onRecord: OnRecord = () => {}): Promise<JournalRead> {
    const keys = readKeyFile(this.files, status.keyFile)
    if (keys === undefined) throw new OperatorError(`there is no key file ${status.keyFile}; is KEY_FILE right?`)
    const state = new State()
    const each = (record: JournalRecord, text: string): void => {
      onRecord(record, state, text)
      state.apply(record)
    }
    const onProgress = (share: number): void => this.#terminal.progress('reading the journal', share)
    if (status.endpoints === undefined) {
      const found = readSameFile(this.files, status,
        endBytes => readJournal(this.files, status.path, keys, each, { onProgress, endBytes }))
      return { ...found, state }
    }
    const { path, records = Infinity } = status
    const kind = JOURNALS[this.settings.journal] ?? Object.values(JOURNALS)[0]
    const found = await kind!.read!(this.settings, { path, records, keys, apply: each, onProgress })
    onProgress(1)
    if (found.records < (status.records ?? 0)) throw new OperatorError(`${path} ends before its last record`)
    return { ...found, goodBytes: 0, tornBytes: 0, state }
  }

  async close(): Promise<void> {
    const closing = this.#opened
    this.#opened = undefined
    await closing?.close()
  }

  /** Says, once and in a while, that another process is waited for. */
  #noteLater(): NodeJS.Timeout | undefined {
    if (this.#opened !== undefined || this.#saysThatItWaits) return undefined
    return setTimeout(() => {
      if (!this.#saysThatItWaits) this.#terminal.note(WAITING)
      this.#saysThatItWaits = true
    }, SILENT_MS)
  }

  /** The socket of the process that has the lock, which may be this one. */
  async #socket(): Promise<string | undefined> {
    const found = await this.#liveSocket()
    if (found !== undefined || this.#opened !== undefined) return found
    if (this.settings.journal === 'file' && !this.#mayCreate) this.#assertJournal()
    this.assertOwner()
    await this.#open()
    return this.#liveSocket()
  }

  async #open(): Promise<void> {
    const { settings } = this
    const terminal = this.#terminal
    const opened = await openStorage({ ...settings, dataDir: this.#folder, keyFile: this.#keyFile }, JOURNALS, {
      info: () => {}, warn: line => terminal.warn(line), progress: (what, share) => terminal.progress(what, share)
    }, { mayCreate: this.#mayCreate, files: this.files })
    this.#opened = opened
    const routes = operatorRoutes(opened.store, settings, opened.journal!, new AbortController().signal)
    opened.gate!.open(localPipeline(routes, opened.journal!.catchUp, line => terminal.warn(line)))
  }

  #liveSocket(): Promise<string | undefined> { return liveSocket(this.files, this.#folder) }

  #assertJournal(): void {
    if (disk.stat(join(this.#folder, JOURNAL_FILE)) !== undefined) return
    throw new OperatorError(`there is no journal in ${this.#folder}; is that folder right (--data, DATA_DIR)? if ` +
      'nothing was ever stored there, the command init makes one; if something was, restore it')
  }

  /** Throws if the folder is another user's: what is made there the service could not read. */
  assertOwner(): void {
    const user = process.geteuid?.()
    const owner = disk.stat(this.#folder)?.owner
    if (user !== undefined && owner !== undefined && owner !== user) throw notOwner(this.#folder)
  }
}

/** Who runs the program: behind sudo the account that called it. What a header cannot hold becomes an underscore. */
function operatorName({ SUDO_USER, LOGNAME, USER }: NodeJS.ProcessEnv): string {
  return (SUDO_USER || LOGNAME || USER || '').replace(/[^\w.@-]/g, '_').slice(0, MAX_NAME_CHARACTERS)
}

/** Whether an error shows that nothing was done, since the process that had the lock ends or has ended. */
function isTransition(error: unknown): boolean {
  if (error instanceof Failure) return error.code === 'folder-held'
  return ['ECONNRESET', 'EPIPE', 'ECONNREFUSED', 'ENOENT'].includes(systemCode(error))
}

function errorOf({ body }: LocalAnswer): OperatorError {
  const { message, errors } = body as { message: string, errors?: { [field: string]: string[] } }
  if (message === NO_ROUTE) return new OperatorError('the service that runs is of another version; restart it first')
  return new OperatorError(errors === undefined ? message : sentenceOf(errors))
}

async function liveSocket(files: Files, folder: string): Promise<string | undefined> {
  if (files.stat(folder) === undefined) return undefined
  try {
    for (const socket of heldSockets(files, folder)) {
      if (!await probe(socket)) continue
      assertOwner(files, folder, socket)
      return socket
    }
  } catch (error) {
    throw systemCode(error) === 'EACCES' ? notOwner(folder) : error
  }
  return undefined
}

/**
 * Throws where a socket is another user's, which would be told passwords. Root may use that of the user who owns the
 * folder or the journal.
 */
function assertOwner(files: Files, folder: string, socket: string): void {
  const user = process.geteuid?.()
  const owner = files.stat(socket)?.owner
  if (user === undefined || owner === undefined || owner === user) return
  if (user === 0 && [folder, join(folder, JOURNAL_FILE)].some(path => files.stat(path)?.owner === owner)) return
  const how = 'run the command as that user if its service is meant; if not, stop what listens there'
  throw new OperatorError(`${socket} is listened on by user ${owner}: ${how}`)
}

function notOwner(folder: string): OperatorError {
  const { owner, group } = disk.stat(folder)!
  return new OperatorError(`${folder} belongs to user ${owner}: run the command as that user, such as setpriv ` +
    `--reuid=${owner} --regid=${group} --clear-groups COMMAND, sudo -u '#${owner}' COMMAND, or docker exec -u ${owner}`)
}
