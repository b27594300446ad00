/**
 * The operations of a service for its own process: as the routes have them, without HTTP and
 * tokens.
 */
import { Failure } from '../errors.ts'
import { BUSY, isReply, type Reply } from '../http/reply.ts'
import type { Call, Route } from '../http/router.ts'
import { createEntry, updateEntry } from '../entries/entry-commands.ts'
import { disclosed, isRecorded, type Reader } from '../knowledge/disclosure.ts'
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
  askedFor,
  HOST,
  mayCall,
  sessionFor,
  type NeededByOperation,
  type Session
} from '../rights/rights.ts'
import { shaped } from '../rights/validate.ts'

/**
 * The last argument of every operation: the e-mail of the user for whom it is done, with that
 * user's abilities and groups, and recorded as that user's. Left out, the host itself does it, and
 * may do everything.
 */
export interface By {
  readonly by: string
}

/** The last argument of a change: a change by others since the entry was read prevents it. */
export interface IfUnchanged {
  readonly ifUnchanged: Entry
}

/**
 * An absent name would stand for the host, so the number of arguments decides: strict TypeScript
 * refuses an argument that may be undefined.
 */
interface Operation<Given extends readonly unknown[], T> {
  (...given: Given): Promise<T>
  (...given: [...Given, options: By]): Promise<T>
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
 * `input-invalid`, another last argument than `By` with `setting-invalid`.
 */
export interface Operations {
  /** The active entries, ascending by id. */
  readonly listPassword: Operation<[], Entry[]>
  /** Gives deleted entries too; undefined for an unknown id. */
  readonly getPassword: Operation<[id: number], Entry | undefined>
  /** Resolves once the entry is durable. */
  readonly createPassword: Operation<[fields: EntryFields], Entry>
  /**
   * Undefined for an unknown id. Rejects with `entry-changed` if the entry is not `ifUnchanged`.
   */
  readonly updatePassword: Operation<[id: number, changes: EntryChanges], Entry | undefined> & {
    (id: number, changes: EntryChanges, options: IfUnchanged): Promise<Entry | undefined>
    (id: number, changes: EntryChanges, options: By & IfUnchanged): Promise<Entry | undefined>
  }
  /** False for an unknown id. */
  readonly deletePassword: Operation<[id: number], boolean>
  /** Makes a deleted entry active again. False for an unknown id. */
  readonly restorePassword: Operation<[id: number], boolean>
  /**
   * The active entries without their secrets, ascending by id. Nobody gets to know a password by
   * it.
   */
  readonly listEntries: Operation<[], EntryWithoutSecrets[]>
  /**
   * At most 500 changes, newest first; undefined for an unknown id. The journal must be in a file.
   */
  readonly historyPassword: Operation<[id: number], PastChange[] | undefined>
  /** Undefined for an unknown id. */
  readonly whoKnows: Operation<[id: number], Knowing | undefined>
  /**
   * The one-time code at this moment, and for how many seconds it is valid; undefined if the entry
   * has none.
   */
  readonly oneTimeCode: Operation<[id: number], OneTimeCode | undefined>
}

interface OneTimeCode {
  readonly code: string
  readonly seconds: number
}

interface OperationsContext {
  readonly store: Store
  readonly abilities: NeededByOperation
  readonly isOpen: boolean
  readonly catchUp: () => Promise<void>
  /** By operation, served or not. */
  readonly routes: () => Promise<ReadonlyMap<string, Route>>
}

/** Reads, deletions and restorations are what the route of their name answers. */
export function operationsOf(context: OperationsContext): Operations {
  return { ...answers(context), ...changes(context) }
}

type Changes = Pick<Operations, 'createPassword' | 'updatePassword'>

function answers(context: OperationsContext): Omit<Operations, keyof Changes> {
  const ask = (operation: string, given: readonly unknown[]): Promise<Reply | undefined> =>
    asked(context, operation, given[0], optionsIn(operation, given.slice(1)))
  const valueOf = async <T>(
    operation: string,
    given: readonly unknown[]
  ): Promise<T | undefined> => {
    const reply = await ask(operation, given)
    return reply && (JSON.parse(String(reply.body)) as T)
  }
  return {
    listPassword: async (...given) => (await valueOf<Entry[]>('listPassword', [0, ...given])) ?? [],
    getPassword: async (...given) =>
      (await valueOf<{ readonly passwords: Entry }>('getPassword', given))?.passwords,
    deletePassword: async (...given) => (await ask('deletePassword', given)) !== undefined,
    restorePassword: async (...given) => (await ask('restorePassword', given)) !== undefined,
    listEntries: async (...given) =>
      (await valueOf<EntryWithoutSecrets[]>('listEntries', [0, ...given]))!,
    historyPassword: async (...given) =>
      (await valueOf<{ readonly history: PastChange[] }>('historyPassword', given))?.history,
    whoKnows: async (...given) =>
      withoutStatus(await valueOf<Knowing & WithStatus>('whoKnows', given)),
    oneTimeCode: async (...given) =>
      withoutStatus(await valueOf<OneTimeCode & WithStatus>('oneTimeCode', given))
  }
}

function changes(context: OperationsContext): Changes {
  const { store, abilities } = context
  return {
    createPassword: async (fields: EntryFields, ...given: unknown[]) => {
      const { by } = optionsIn('createPassword', given)
      const wanted = shaped(CREATE_SHAPE, fields)
      const session = by === undefined ? undefined : await sessionBy(context, 'createPassword', by)
      return answered(await createEntry(store, wanted, session ?? null))
    },
    updatePassword: async (id: number, changes: EntryChanges, ...given: unknown[]) => {
      const { by, ifUnchanged } = optionsIn('updatePassword', given, ['by', 'ifUnchanged'])
      const wanted = shaped(UPDATE_SHAPE, changes) // the caller may change it during the wait
      const known =
        ifUnchanged && entryText(entryOf(ifUnchanged.id, ifUnchanged, ifUnchanged.status))
      const isExpected = (entry: Entry): boolean =>
        known === undefined || entryText(entry) === known
      // An outdated copy would refuse it.
      const session =
        known === undefined && by === undefined
          ? undefined
          : await sessionBy(context, 'updatePassword', by)
      const deletes = askedFor(abilities, 'deletePassword')
      const entry = await updateEntry(store, idOf(id), wanted, session ?? null, {
        isExpected,
        mayMove: session === undefined || mayCall(session.abilities, deletes),
        tells: { reader: readerOf(context, session), operation: 'updatePassword' }
      })
      return entry && answered(entry)
    }
  }
}

const FORMS = { by: "by: 'ana@example.org'", ifUnchanged: 'ifUnchanged: entry' }

function optionsIn(
  operation: string,
  given: readonly unknown[],
  names: readonly (keyof typeof FORMS)[] = ['by']
): Partial<By & IfUnchanged> {
  if (given.length === 0) return {}
  const [options] = given
  const isKept = ([name, value]: [string, unknown]): boolean =>
    names.some(one => one === name) &&
    (name === 'by' ? typeof value === 'string' : typeof value === 'object' && value !== null)
  const found = typeof options === 'object' && options !== null ? Object.entries(options) : []
  if (given.length === 1 && found.length > 0 && found.every(isKept)) {
    return options as Partial<By & IfUnchanged>
  }
  const form = names.map(name => FORMS[name]).join(', ')
  const or = names.length === 1 ? 'or nothing' : 'one of the two, or nothing'
  throw new Failure(
    'setting-invalid',
    `the last argument of ${operation} is { ${form} }, ${or}; an undefined in its place is ` +
      'not nothing'
  )
}

/**
 * For whom it is done; undefined: the host itself. Rejects with `setting-invalid`, `user-unknown`
 * or `forbidden`.
 */
async function sessionBy(
  { store, abilities, isOpen, catchUp }: OperationsContext,
  operation: string,
  by: string | undefined
): Promise<Session | undefined> {
  await catchUp()
  if (by === undefined) return undefined
  if (isOpen) throw new Failure('setting-invalid', "by needs users, so it needs auth: 'bearer'")
  const user = vouchedUser(store.state, by)
  if (user === undefined) throw new Failure('user-unknown', by)
  if (user.isLocked === true) throw new Failure('user-unknown', `${by} was locked by a salvage`)
  const session = sessionFor(user)
  const asked = askedFor(abilities, operation)
  if (mayCall(session.abilities, asked)) return session
  throw new Failure('forbidden', `${by} lacks ${asked!.join(' or ')}`)
}

function readerOf({ isOpen }: OperationsContext, session: Session | undefined): Reader {
  return session ?? (isOpen ? undefined : HOST)
}

/** Undefined for an unknown id. */
async function asked(
  context: OperationsContext,
  operation: string,
  given: unknown,
  { by }: Partial<By>
): Promise<Reply | undefined> {
  const id = idOf(given)
  const session = await sessionBy(context, operation, by)
  const route = (await context.routes()).get(operation)
  if (route === undefined) {
    throw new Failure('operation-missing', `${operation}; a history needs a journal in a file`)
  }
  const reply = await answerOf(context, route, id, session)
  if (reply === BUSY)
    throw new Failure('journal-busy', `${operation} is under way for somebody else, or takes long`)
  return reply.status === 200 ? reply : undefined
}

interface WithStatus {
  readonly status?: number
}

function withoutStatus<T extends WithStatus>(answer: T | undefined): Omit<T, 'status'> | undefined {
  if (answer === undefined) return undefined
  const { status: _, ...value } = answer
  return value
}

async function answerOf(
  context: OperationsContext,
  route: Route,
  id: number,
  session: Session | undefined
): Promise<Reply> {
  const head = { method: route.method, path: route.path }
  const call: Call<undefined> = {
    route,
    head,
    id,
    version: 0,
    body: undefined,
    client: '',
    session
  }
  const answer = (): Reply | Promise<Reply> => route.before?.(id, session) ?? route.handle(call)
  const reader = readerOf(context, session)
  try {
    const first = await answer()
    if (first.tells === undefined || isRecorded(context.store, reader, first.tells)) return first
    const again = first.again ?? ((): Reply => answer() as Reply)
    return await disclosed(context.store, reader, route.operation, again)
  } catch (thrown) {
    if (isReply(thrown)) return thrown
    throw thrown
  }
}

/** Throws `input-invalid` unless it is a safe integer or its decimal text. */
function idOf(given: unknown): number {
  const id = typeof given === 'string' ? Number(given) : given
  if (Number.isSafeInteger(id) && String(given) === String(id)) return id as number
  const why = 'The id field must be a safe integer or its decimal text.'
  throw new Failure('input-invalid', why, { errors: { id: [why] } })
}
