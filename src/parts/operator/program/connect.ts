/**
 * Reaches the store by the socket of the process that has the lock. If none has it, this process
 * takes it: there is always one writer.
 */
import { join } from 'node:path'
import type { CoreSettings, StorageSettings } from '../../../core-settings.ts'
import { disk, type Files } from '../../../journal/files.ts'
import { JOURNAL_FILE, locationOf } from '../../../journal/folder.ts'
import { statesLeft } from '../../../journal/rescued-files.ts'
import { heldSockets, lockFolder, probe, type Lock } from '../../../journal/lock.ts'
import { Failure, systemCode } from '../../../errors.ts'
import type { JournalRecord } from '../../../journal/journal.ts'
import { neededKeys } from '../../../journal/keys.ts'
import { SHUTDOWN_TIMEOUT_MS } from '../../../limits.ts'
import { JOURNALS } from '../../../settings.ts'
import { openStorage } from '../../../storage.ts'
import { emptyState } from '../../../slices.ts'
import {
  OperatorError,
  type IfMissing,
  type JournalRead,
  type JournalStatus,
  type OnRecord,
  type Reached
} from '../../commands/command.ts'
import { refusalOf } from '../../commands/exit-codes.ts'
import type { Ending } from '../../commands/signals.ts'
import type { Terminal } from '../../commands/terminal.ts'
import { readSameFile, readWithBreaths } from '../commands/same-file.ts'
import { requestLocal } from '../socket/local-client.ts'
import { runOperation, serveOperations } from '../socket/local-server.ts'
import type { RequestBody, FolderStatus, OperationName, Result } from '../../commands/operation.ts'
import { callOf, type Operated } from '../socket/operation-table.ts'

/** If the other process opens or closes, and does not answer. */
const TRIES = 50
const PAUSE_MS = 100
/** If it answers that it is busy, or closes, which takes as long as its slowest client. */
const BUSY_TRIES = TRIES + SHUTDOWN_TIMEOUT_MS / PAUSE_MS
/** A longer wait is reported. */
const SILENT_MS = 2_000
const WAITING =
  'the service has not answered yet, and may be busy with the journal: waiting; ' +
  'after Ctrl+C it may still carry out the command'
const NO_ANSWER =
  'the service took no request, and nothing was changed; it may have no file descriptors left: ' +
  'look into its log, raise its limit (LimitNOFILE), or restart it'
const MAX_NAME_CHARACTERS = 64
const SET_GROUP = 0o2000

type StoreSettings = StorageSettings & Pick<CoreSettings, 'abilities'>

const NEW_STORE = 'new, empty store'

interface Opened {
  readonly operated: Operated
  close(): Promise<void>
}

/**
 * Rejects with a `Failure` if the folder cannot be opened; with an `OperatorError` if it is another
 * user's, or has no journal and may not get one.
 */
export class StoreAccess implements Reached {
  readonly settings: StoreSettings
  readonly files: Files = disk
  readonly ending: Ending
  readonly #ifMissing: IfMissing
  readonly #terminal: Terminal
  readonly #keyFile: string
  readonly #folder: string
  #opened: Opened | undefined
  #saysThatItWaits = false

  constructor(settings: StoreSettings, ifMissing: IfMissing, terminal: Terminal) {
    const { keyFile, folder } = locationOf(settings)
    this.settings = settings
    this.#ifMissing = ifMissing
    this.#terminal = terminal
    this.ending = terminal.ending
    this.#keyFile = keyFile
    this.#folder = folder
  }

  get hasLock(): boolean {
    return this.#opened !== undefined
  }

  async ask<N extends OperationName>(name: N, body: RequestBody<N>): Promise<Result<N>> {
    let timer: NodeJS.Timeout | undefined
    try {
      for (let tries = 1, answered = 0; ; tries++) {
        try {
          // At each try: if the process that had the lock has ended, this one takes it.
          const socket =
            this.#opened === undefined ? await liveSocket(this.files, this.#folder) : undefined
          if (socket === undefined) return await this.#run(name, body)
          timer ??= this.#noteLater()
          const answer = await requestLocal(socket, name, body, operatorName(process.env))
          if (answer.status === 200) return answer.body as Result<N>
          // Only 503 says for certain that nothing was done.
          if (answer.status !== 503 || tries >= BUSY_TRIES) throw refused(answer.body)
          answered = tries
        } catch (error) {
          if (!isTransition(error)) throw error
          const isOver = tries - answered >= TRIES
          if (isOver)
            throw error instanceof Failure ? error : new OperatorError(NO_ANSWER, { cause: error })
        }
        await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async look(): Promise<FolderStatus | undefined> {
    try {
      if (this.#opened !== undefined) return this.#withKeyFile(await this.#run('status', {}))
      const found = await liveSocket(this.files, this.#folder)
      const answer = found === undefined ? undefined : await requestLocal(found, 'status', {})
      return answer?.status === 200 ? this.#withKeyFile(answer.body as FolderStatus) : undefined
    } catch (error) {
      if (error instanceof OperatorError) throw error
      return undefined
    }
  }

  /** A host that gives its keys has no key file: then the command's own holds. */
  #withKeyFile(status: FolderStatus): FolderStatus {
    return status.areKeysGiven === true ? { ...status, keyFile: this.#keyFile } : status
  }

  async status(): Promise<JournalStatus> {
    const isReached =
      this.settings.journal !== 'file' ||
      this.#opened !== undefined ||
      (await liveSocket(this.files, this.#folder)) !== undefined
    if (isReached) return this.#withKeyFile(await this.ask('status', {}))
    this.#assertJournal()
    const path = join(this.#folder, JOURNAL_FILE)
    const file = disk.stat(path)!
    return { path, keyFile: this.#keyFile, bytes: file.size, file }
  }

  async receive(
    name: 'rescueJournal',
    body: RequestBody<'rescueJournal'>,
    take: (piece: string) => void
  ): Promise<void> {
    const socket = await liveSocket(this.files, this.#folder)
    if (socket === undefined) throw new OperatorError('the service has ended meanwhile')
    const { status, body: answer } = await requestLocal(
      socket,
      name,
      body,
      operatorName(process.env),
      take
    )
    if (status !== 200) throw refused(answer)
  }

  async alone<T>(work: (lock: Lock) => Promise<T>): Promise<T> {
    if (disk.stat(this.#folder) === undefined)
      throw new OperatorError(`there is no folder ${this.#folder}`)
    this.assertOwner()
    try {
      const lock = await lockFolder(this.files, this.#folder)
      try {
        return await work(lock)
      } finally {
        await lock.release()
      }
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'folder-held') throw error
      throw new OperatorError(`${error.message}; if that is the service, stop it first`)
    }
  }

  async read(status: JournalStatus, onRecord: OnRecord = () => {}): Promise<JournalRead> {
    const keys = neededKeys(this.files, status.keyFile, status.path)
    const state = emptyState()
    const each = (record: JournalRecord, text: string): void => {
      onRecord(record, state, text)
      state.apply(record)
    }
    const onProgress = (share: number): void =>
      this.#terminal.progress('reading the journal', share)
    if (status.endpoints === undefined) {
      const found = await readSameFile(this.files, status, endBytes =>
        readWithBreaths(this.files, status.path, keys, each, { onProgress, endBytes })
      )
      return { ...found, state }
    }
    const { path, records = Infinity } = status
    const kind = JOURNALS[this.settings.journal] ?? Object.values(JOURNALS)[0]
    const found = await kind!.read!(this.settings, { path, records, keys, apply: each, onProgress })
    onProgress(1)
    // Fewer than were acknowledged before the reading: records were removed.
    if (found.records < (status.records ?? 0)) {
      throw new Failure('journal-damaged', `${path} ends before its last record`)
    }
    return { ...found, goodBytes: 0, tornBytes: 0, state }
  }

  /**
   * Gives the lock back. A later question takes it again, or asks the service that has it by then.
   */
  async close(): Promise<void> {
    const closing = this.#opened
    this.#opened = undefined
    await closing?.close()
  }

  /**
   * Throws an `OperatorError` if the service could not read what another user makes in its folder.
   */
  assertOwner(): void {
    const user = process.geteuid?.()
    const folder = disk.stat(this.#folder)
    // A folder with the set-group-ID bit, as by Kubernetes' fsGroup, is shared on purpose: the
    // journal's owner counts.
    const isShared = folder !== undefined && (folder.mode & SET_GROUP) !== 0
    const owned = isShared ? join(this.#folder, JOURNAL_FILE) : this.#folder
    const owner = disk.stat(owned)?.uid
    if (user !== undefined && owner !== undefined && owner !== user) throw notOwner(owned)
  }

  #noteLater(): NodeJS.Timeout | undefined {
    if (this.#saysThatItWaits) return undefined
    return setTimeout(() => {
      if (!this.#saysThatItWaits) this.#terminal.note(WAITING)
      this.#saysThatItWaits = true
    }, SILENT_MS)
  }

  async #run<N extends OperationName>(name: N, body: RequestBody<N>): Promise<Result<N>> {
    if (this.#opened === undefined) {
      if (this.settings.journal === 'file' && this.#ifMissing === 'refuse') this.#assertJournal()
      this.assertOwner()
      this.#opened = await this.#open()
    }
    const call = callOf(this.#opened.operated, operatorName(process.env))
    return (await runOperation(call, name, { ...body })) as Result<N>
  }

  async #open(): Promise<Opened> {
    const { settings } = this
    const terminal = this.#terminal
    const warn = (line: string): void => terminal.warn(line)
    const { store, journal, lock, readMs, close } = await openStorage(
      { ...settings, dataDir: this.#folder, keyFile: this.#keyFile },
      {
        info: line => this.#onInfo(line),
        warn,
        progress: (what, share) => terminal.progress(what, share)
      },
      // Not for `begin`: it would make a journal in etcd, or beside a key whose journal is lost.
      { mayCreate: this.#ifMissing === 'create', files: this.files }
    )
    const operated: Operated = {
      store,
      journal: journal!,
      abilities: settings.abilities,
      readMs,
      warn,
      rescue: { head: undefined },
      folder: this.#folder,
      files: this.files
    }
    const end = serveOperations(lock!.server, operated) // other commands need not wait
    return {
      operated,
      close: async () => {
        await end()
        await close()
      }
    } // the lock goes last
  }

  /** `init` itself says what it has made. */
  #onInfo(line: string): void {
    if (this.#ifMissing === 'begin' && line.startsWith(NEW_STORE)) this.#terminal.note(line)
  }

  #assertJournal(): void {
    if (disk.stat(join(this.#folder, JOURNAL_FILE)) !== undefined) return
    const left = statesLeft(this.files, this.#folder)
    const how =
      left ??
      'if nothing was ever stored there, make a journal with the command init; if entries were, ' +
        'restore a backup'
    throw new OperatorError(
      `there is no journal in ${this.#folder}; is that folder right (--data, DATA_DIR)? ${how}`
    )
  }
}

/** The account that called sudo. A header cannot hold every character. */
function operatorName({ SUDO_USER, LOGNAME, USER }: NodeJS.ProcessEnv): string {
  return (SUDO_USER || LOGNAME || USER || '')
    .replace(/[^\w.@-]/g, '_')
    .slice(0, MAX_NAME_CHARACTERS)
}

function refused(answer: unknown): Error {
  const { message, code } = answer as { readonly message: string; readonly code?: number }
  return refusalOf(message, code)
}

/** Whether nothing was done, since the process that had the lock ends. */
function isTransition(error: unknown): boolean {
  if (error instanceof Failure) return error.code === 'folder-held'
  return ['ECONNRESET', 'EPIPE', 'ECONNREFUSED', 'ENOENT'].includes(systemCode(error))
}

async function liveSocket(files: Files, folder: string): Promise<string | undefined> {
  if (files.stat(folder) === undefined) return undefined
  try {
    for (const socket of heldSockets(files, folder)) {
      if (!(await probe(socket))) continue
      assertOwnSocket(files, folder, socket)
      return socket
    }
  } catch (error) {
    throw systemCode(error) === 'EACCES' ? notOwner(folder) : error
  }
  return undefined
}

/**
 * Another user's socket would be told passwords. Root may use that of the owner of folder or
 * journal.
 */
function assertOwnSocket(files: Files, folder: string, socket: string): void {
  const user = process.geteuid?.()
  const owner = files.stat(socket)?.uid
  if (user === undefined || owner === undefined || owner === user) return
  if (
    user === 0 &&
    [folder, join(folder, JOURNAL_FILE)].some(path => files.stat(path)?.uid === owner)
  )
    return
  const how =
    'if that is the service, run the command as that user; if not, stop the process ' +
    'that listens there'
  throw new OperatorError(`user ${owner} listens on ${socket}: ${how}`)
}

function notOwner(path: string): OperatorError {
  const { uid: owner, gid: group } = disk.stat(path)!
  return new OperatorError(
    `${path} belongs to user ${owner}: run the command as that user, such as setpriv ` +
      `--reuid=${owner} --regid=${group} --clear-groups COMMAND, sudo -u '#${owner}' COMMAND, ` +
      `or docker exec -u ${owner}`
  )
}
