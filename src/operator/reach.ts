/**
 * The way to the store: through the socket of the process that holds the folder or, where there is none, by holding
 * the folder oneself; and then through one's own socket. So there is one code path, and always one writer.
 */
import { join, resolve } from 'node:path'
import { Failure } from '../errors.ts'
import { requestLocal } from '../http/client.ts'
import { knock } from '../http/local.ts'
import { JOURNAL_FILE } from '../journal/file.ts'
import { disk } from '../journal/files.ts'
import { heldSockets } from '../journal/lock.ts'
import { openStore, type OpenStore, type StoreSettings } from '../service.ts'
import { Refusal } from './command.ts'
import type { Terminal } from './terminal.ts'

/** A store within reach. */
export interface Reached {
  /** Asks for something and gives the answer's body; throws a `Refusal` with the message of an answer that is none. */
  ask(method: 'GET' | 'POST', path: string, body?: unknown): Promise<any>
  close(): Promise<void>
}

/**
 * Reaches a store; rejects with a `Failure` when the folder cannot be opened either, and with a `Refusal` when no
 * journal stands there and `mayCreate` is false: a mistyped folder should not become a new one.
 */
export async function reachStore(settings: StoreSettings, mayCreate: boolean, terminal: Terminal): Promise<Reached> {
  const folder = resolve(settings.dataDir)
  let opened: OpenStore | undefined
  let socket = await liveSocket(folder)
  if (socket === undefined) {
    if (!mayCreate && disk.facts(join(folder, JOURNAL_FILE)) === undefined) {
      throw new Refusal(`there is no journal in ${folder}; the command init makes one`)
    }
    const quiet = { info: () => {}, warn: terminal.warn, access: { write: () => {}, pendingBytes: () => 0 } }
    opened = await openStore(settings, quiet)
    socket = await liveSocket(folder)
    if (socket === undefined) throw new Failure('folder-unusable', `${folder}: its own socket does not answer`)
  }
  const path = socket
  return {
    ask: async (method, url, body) => {
      const answer = await requestLocal(path, method, url, body)
      if (answer.status === 200) return answer.body
      const { message, errors } = answer.body as { message: string, errors?: { [field: string]: string[] } }
      throw new Refusal(errors === undefined ? message : Object.values(errors).flat().join(' '))
    },
    close: async () => { await opened?.close() }
  }
}

async function liveSocket(folder: string): Promise<string | undefined> {
  if (disk.facts(folder) === undefined) return undefined
  for (const socket of heldSockets(disk, folder)) if (await knock(socket)) return socket
  return undefined
}
