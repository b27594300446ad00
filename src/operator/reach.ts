/**
 * The way to the store: through the socket of the process that holds the folder or, where there is none, by holding
 * the folder oneself; and then through one's own socket. So there is one code path, and always one writer.
 */
import { join, resolve } from 'node:path'
import { Failure, systemCode } from '../errors.ts'
import { requestLocal, type LocalAnswer } from '../http/client.ts'
import { knock } from '../http/local.ts'
import { JOURNAL_FILE } from '../journal/file.ts'
import { disk } from '../journal/files.ts'
import { heldSockets } from '../journal/lock.ts'
import { sentenceOf } from '../json/shape.ts'
import { openStore, type OpenStore } from '../open-store.ts'
import type { PlaceSettings } from '../place.ts'
import { Refusal } from './refusal.ts'
import type { Terminal } from './terminal.ts'

/** A store within reach, once it is asked for something. */
export interface Reached {
  readonly settings: PlaceSettings
  /** Asks for something and gives the answer's body; throws a `Refusal` with the message of an answer that is none. */
  ask(method: 'GET' | 'POST', path: string, body?: unknown): Promise<any>
  /** Asks whoever holds the folder, once, and never opens it; undefined when nobody answers. */
  look(path: string): Promise<any>
  close(): Promise<void>
}

/** How often, and how long apart, somebody is asked anew who is just about to open or to close. */
const TRIES = 50
const PAUSE_MS = 100

/**
 * Reaches a store. Asking rejects with a `Failure` when the folder cannot be opened either, and with a `Refusal` when
 * no journal stands there and `mayCreate` is false (a mistyped folder should not become a new one), or when the
 * folder is another's than `user`'s, whose number is undefined where the system has none.
 */
export function reachStore(
  settings: PlaceSettings, mayCreate: boolean, user: number | undefined, terminal: Terminal
): Reached {
  const folder = resolve(settings.dataDir)
  let opened: OpenStore | undefined

  /** A socket that is listened on: somebody's, or one's own. */
  const socket = async (): Promise<string | undefined> => {
    const live = await liveSocket(folder)
    if (live !== undefined || opened !== undefined) return live
    if (!mayCreate && settings.journal === 'file' && disk.stat(join(folder, JOURNAL_FILE)) === undefined) {
      throw new Refusal(`there is no journal in ${folder}; the command init makes one`)
    }
    const owner = disk.stat(folder)?.owner
    if (user !== undefined && owner !== undefined && owner !== user) {
      throw new Refusal(`${folder} belongs to user ${owner}; what user ${user} makes in it, that one could not read`)
    }
    opened = await openStore(settings, {
      info: () => {}, warn: terminal.warn, progress: (what, share) => terminal.progress(what, share)
    })
    return liveSocket(folder)
  }

  return {
    settings,
    ask: async (method, path, body) => {
      for (let tries = 1; ; tries++) {
        let asked = folder
        try {
          asked = await socket() ?? folder
          const answer = await requestLocal(asked, method, path, body)
          if (answer.status === 200) return answer.body
          if (answer.status !== 503 || tries === TRIES) throw refusalOf(answer)
        } catch (error) {
          if (!isMoment(error, asked) || tries === TRIES) throw error
        }
        await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
      }
    },
    look: async path => {
      try {
        const live = await liveSocket(folder)
        return live && (await requestLocal(live, 'GET', path)).body
      } catch {
        return undefined
      }
    },
    close: async () => { await opened?.close() }
  }
}

/**
 * Whether an error says that nobody has heard the request: whoever held the folder has just let go of it. Who lets go
 * in order answers all that was heard, then removes its socket, then cuts what is left; who crashes leaves it.
 */
function isMoment(error: unknown, socket: string): boolean {
  if (error instanceof Failure) return error.code === 'folder-held'
  if (['ECONNRESET', 'EPIPE'].includes(systemCode(error))) return disk.stat(socket) === undefined
  return ['ECONNREFUSED', 'ENOENT'].includes(systemCode(error))
}

function refusalOf({ body }: LocalAnswer): Refusal {
  const { message, errors } = body as { message: string, errors?: { [field: string]: string[] } }
  return new Refusal(errors === undefined ? message : sentenceOf(errors))
}

async function liveSocket(folder: string): Promise<string | undefined> {
  if (disk.stat(folder) === undefined) return undefined
  for (const socket of heldSockets(disk, folder)) if (await knock(socket)) return socket
  return undefined
}
