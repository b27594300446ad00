/**
 * The operations of a service for its own process: as the routes have them, without HTTP and
 * tokens.
 */
import { Failure } from '../errors.ts'
import { BUSY, isReply, type Reply } from '../http/reply.ts'
import type { Call, Route } from '../http/router.ts'
import { createEntry, deleteEntry, updateEntry } from '../entries/entry-commands.ts'
import { disclosed, type Answer, type Reader } from '../knowledge/disclosure.ts'
import {
  answered,
  entryOf,
  entryText,
  type AnsweredEntry as Entry,
  type EntryChanges,
  type EntryField,
  type EntryFields
} from '../entries/entry.ts'
import { CREATE_SHAPE, UPDATE_SHAPE } from '../entries/entry-shapes.ts'
import type { Knowing } from '../knowledge/exposure.ts'
import { vouchedUser } from '../accounts/logins.ts'
import type { Store } from '../store/store.ts'
import {
  HOST,
  mayCall,
  sees,
  sessionFor,
  type AskedAbilities,
  type Session
} from '../rights/rights.ts'
import { shaped } from '../rights/validate.ts'

/** Options of every operation. */
export interface By {
  /**
   * The e-mail of the user for whom it is done: with that user's abilities and groups, and recorded
   * as that user's. Without it, the host itself does it, and may do everything.
   */
  readonly by?: string | undefined
}

/** Options of a change. */
export interface UpdateOptions extends By {
  /** The entry as it was read; a change by others since then prevents this change. */
  readonly ifUnchanged?: Entry | undefined
}

/** An active entry without its secrets; an optional secret that is set is `true`. */
export type EntryWithoutSecrets = Pick<Entry, 'id' | 'sistema' | 'usuario' | 'url' | 'grupo'> & {
  readonly status: 1
  /** ISO 8601: when the password was set. */
  readonly changed?: string
  /** How many other entries have the same password. */
  readonly reused?: number
  /** How many know the password and may not be told it any more. */
  readonly exposed?: number
  readonly notas?: true
  readonly otp?: true
}

/** A change of an entry, without secrets. */
export interface PastChange {
  readonly version: number
  /** ISO 8601. */
  readonly time: string
  readonly change: 'created' | 'updated' | 'deleted' | 'restored' | 'kept' | 'unseen'
  /** Those that it set; absent if `change` is `unseen`. */
  readonly fields?: readonly EntryField[]
  /** What it set, of the fields that are no secret; `''` if it cleared one. */
  readonly values?: Partial<Pick<Entry, 'sistema' | 'usuario' | 'url' | 'grupo'>>
  /** A user's address, `#ID` for a removed user, an operator's name, or null. */
  readonly by: string | null
}

/**
 * Operations on entries. An id that is no integer, or the text of one, rejects with
 * `input-invalid`.
 */
export interface Operations {
  /** The active entries, ascending by id. */
  listPassword(options?: By): Promise<Entry[]>
  /** Gives deleted entries too; undefined for an unknown id. */
  getPassword(id: number, options?: By): Promise<Entry | undefined>
  /** Resolves once the entry is durable. */
  createPassword(fields: EntryFields, options?: By): Promise<Entry>
  /**
   * Undefined for an unknown id. Rejects with `entry-changed` if the entry is not `ifUnchanged`.
   */
  updatePassword(
    id: number,
    changes: EntryChanges,
    options?: UpdateOptions
  ): Promise<Entry | undefined>
  /** False for an unknown id. */
  deletePassword(id: number, options?: By): Promise<boolean>
  /** Makes a deleted entry active again. False for an unknown id. */
  restorePassword(id: number, options?: By): Promise<boolean>
  /**
   * The active entries without their secrets, ascending by id. Nobody gets to know a password by
   * it.
   */
  listEntries(options?: By): Promise<EntryWithoutSecrets[]>
  /**
   * At most 500 changes, newest first; undefined for an unknown id. The journal must be in a file.
   */
  historyPassword(id: number, options?: By): Promise<PastChange[] | undefined>
  /** Undefined for an unknown id. */
  whoKnows(id: number, options?: By): Promise<Knowing | undefined>
  /**
   * The one-time code at this moment, and for how many seconds it is valid; undefined if the entry
   * has none.
   */
  oneTimeCode(
    id: number,
    options?: By
  ): Promise<{ readonly code: string; readonly seconds: number } | undefined>
}

interface OperationsContext {
  readonly store: Store
  readonly abilities: AskedAbilities
  /** The open configuration. */
  readonly isOpen: boolean
  /** Resolves once what others wrote is here; rejects if the service is closed. */
  readonly catchUp: () => Promise<void>
  /** Of the parts. */
  readonly routes: () => Promise<readonly Route[]>
}

/** Each checks the user, then does what the route of its name does. */
export function operationsOf(context: OperationsContext): Operations {
  return { ...reads(context), ...changes(context), ...operationsOfParts(context) }
}

function reads(context: OperationsContext): Pick<Operations, 'listPassword' | 'getPassword'> {
  const { entries } = context.store.state
  return {
    listPassword: async (options = {}) =>
      (
        await read(context, 'listPassword', options, session => ({
          found: [...entries.entries()]
            .filter(({ status, grupo }) => status === 1 && sees(session?.groups, grupo))
            .map(entry => answered(entry)),
          tells: { list: session?.groups ?? 'active' }
        }))
      ).found,
    getPassword: async (given, options = {}) => {
      const id = idOf(given)
      return (
        await read(context, 'getPassword', options, session => {
          const entry = entries.get(id)
          const isSeen = entry !== undefined && sees(session?.groups, entry.grupo)
          return isSeen
            ? { found: answered(entry), tells: id }
            : { found: undefined, tells: undefined }
        })
      ).found
    }
  }
}

function changes(
  context: OperationsContext
): Pick<Operations, 'createPassword' | 'updatePassword' | 'deletePassword'> {
  const { store, abilities } = context
  return {
    createPassword: async (fields, { by } = {}) => {
      const wanted = shaped(CREATE_SHAPE, fields)
      const session = by === undefined ? undefined : await begin(context, 'createPassword', by)
      return answered(await createEntry(store, wanted, session ?? null))
    },
    updatePassword: async (id, changes, { ifUnchanged, by } = {}) => {
      const wanted = shaped(UPDATE_SHAPE, changes) // the caller may change it during the wait
      const known =
        ifUnchanged && entryText(entryOf(ifUnchanged.id, ifUnchanged, ifUnchanged.status))
      const isExpected = (entry: Entry): boolean =>
        known === undefined || entryText(entry) === known
      // An outdated copy would refuse it.
      const session =
        known === undefined && by === undefined
          ? undefined
          : await begin(context, 'updatePassword', by)
      const deletes = abilities.get('deletePassword')
      const entry = await updateEntry(store, idOf(id), wanted, session ?? null, {
        isExpected,
        mayMove: session === undefined || mayCall(session.abilities, deletes),
        tells: { reader: readerOf(context, session), operation: 'updatePassword' }
      })
      return entry && answered(entry)
    },
    deletePassword: async (id, { by } = {}) => {
      const session = by === undefined ? undefined : await begin(context, 'deletePassword', by)
      return deleteEntry(store, idOf(id), session ?? null)
    }
  }
}

function operationsOfParts(
  context: OperationsContext
): Pick<
  Operations,
  'restorePassword' | 'listEntries' | 'historyPassword' | 'whoKnows' | 'oneTimeCode'
> {
  const valueOf = async <T>(
    operation: string,
    id: unknown,
    options?: By
  ): Promise<T | undefined> => {
    const reply = await ask(context, operation, id, options)
    return reply && (JSON.parse(String(reply.body)) as T)
  }
  return {
    restorePassword: async (id, options) =>
      (await ask(context, 'restorePassword', id, options)) !== undefined,
    listEntries: async options =>
      (await valueOf<EntryWithoutSecrets[]>('listEntries', 0, options))!,
    historyPassword: async (id, options) =>
      (await valueOf<{ readonly history: PastChange[] }>('historyPassword', id, options))?.history,
    whoKnows: async (id, options) =>
      withoutStatus(await valueOf<Knowing & Status>('whoKnows', id, options)),
    oneTimeCode: async (id, options) =>
      withoutStatus(await valueOf<OneTimeCode & Status>('oneTimeCode', id, options))
  }
}

/**
 * For whom it is done; undefined: the host itself. Rejects with `setting-invalid`, `user-unknown`
 * or `forbidden`.
 */
async function begin(
  { store, abilities, isOpen, catchUp }: OperationsContext,
  operation: string,
  by: string | undefined
): Promise<Session | undefined> {
  await catchUp()
  if (by === undefined) return undefined
  if (isOpen) throw new Failure('setting-invalid', "by needs users, so it needs auth: 'bearer'")
  const user = typeof by === 'string' ? vouchedUser(store.state, by) : undefined
  if (user === undefined) throw new Failure('user-unknown', String(by))
  if (user.isLocked === true) throw new Failure('user-unknown', `${by} was locked by a salvage`)
  const session = sessionFor(user)
  const asked = abilities.get(operation)
  if (mayCall(session.abilities, asked)) return session
  throw new Failure('forbidden', `${by} lacks ${asked!.join(' or ')}`)
}

function readerOf({ isOpen }: OperationsContext, session: Session | undefined): Reader {
  return session ?? (isOpen ? undefined : HOST)
}

async function read<A extends Answer>(
  context: OperationsContext,
  operation: string,
  { by }: By,
  answer: (session: Session | undefined) => A | Promise<A>
): Promise<A> {
  const session = await begin(context, operation, by)
  return disclosed(context.store, readerOf(context, session), operation, () => answer(session))
}

/** An operation of a part, by its route; undefined for an unknown id. */
async function ask(
  context: OperationsContext,
  operation: string,
  id: unknown,
  options: By = {}
): Promise<Reply | undefined> {
  const route = (await context.routes()).find(one => one.operation === operation)
  if (route === undefined) {
    throw new Failure('operation-missing', `${operation}; a history needs a journal in a file`)
  }
  const reply = await read<Reply>(context, operation, options, session =>
    answerOf(route, idOf(id), session)
  )
  if (reply === BUSY)
    throw new Failure('journal-busy', `${operation} is under way for somebody else, or takes long`)
  return reply.status === 200 ? reply : undefined
}

interface Status {
  readonly status?: number
}
interface OneTimeCode {
  readonly code: string
  readonly seconds: number
}

function withoutStatus<T extends Status>(answer: T | undefined): Omit<T, 'status'> | undefined {
  if (answer === undefined) return undefined
  const { status: _, ...value } = answer
  return value
}

/** What a request would be answered, without a limit. */
async function answerOf(route: Route, id: number, session: Session | undefined): Promise<Reply> {
  const head = { method: route.method, path: route.path }
  const call: Call<undefined> = { head, id, version: 0, body: undefined, client: '', session }
  try {
    return route.before?.(id, session) ?? (await route.handle(call))
  } catch (thrown) {
    if (isReply(thrown)) return thrown
    throw thrown
  }
}

/** A safe integer or its decimal text; anything else throws `input-invalid`. */
function idOf(given: unknown): number {
  const id = typeof given === 'string' ? Number(given) : given
  if (Number.isSafeInteger(id) && String(given) === String(id)) return id as number
  const why = 'The id field must be a safe integer or its decimal text.'
  throw new Failure('input-invalid', why, { errors: { id: [why] } })
}
