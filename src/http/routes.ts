/** The five operations (contract §1, §9). */
import { Buffer } from 'node:buffer'
import { TEXTS } from '../contract.ts'
import { jsonReply, messageReply, type Reply } from './reply.ts'
import type { Head } from './head.ts'
import type { Params } from './router.ts'
import { CREATE_SHAPE, entryText, UPDATE_SHAPE, type Entry } from '../store/entry.ts'
import type { Precondition, Store } from '../store/store.ts'
import { idOf, route, type Route } from './route.ts'

const NONE_ACTIVE = messageReply(404, TEXTS.noneActive)
export const UNKNOWN: Reply = messageReply(404, TEXTS.unknownId)
const CREATED = messageReply(200, TEXTS.created)
const DELETED = messageReply(200, TEXTS.deleted)

const created = (entry: number, prefix: string): Reply =>
  ({ ...CREATED, headers: ['Location', `${prefix}/api/getPassword/${entry}`], logged: { entry } })

/** What an answer has before and behind an entry. */
type Around = readonly [before: Buffer, behind: Buffer]

const AROUND_READ: Around = [Buffer.from('{"passwords":'), Buffer.from(',"status":200}')]
const UPDATED = { message: TEXTS.updated, status: 200 }
const AROUND_UPDATED: Around = [Buffer.from('{"password":'), Buffer.from(`,${JSON.stringify(UPDATED).slice(1)}`)]

/** An entry as it is; undefined for an unknown id. */
function entryReply(store: Store, id: number, [before, behind]: Around): Reply | undefined {
  const entry = store.entryBytes(id)
  if (entry === undefined) return undefined
  return { status: 200, body: [before, entry, behind], headers: ['ETag', `"${store.revisionOf(id)}"`] }
}

/** The revision goes with the entry as it was changed: where others have changed it since, it is not known here. */
function updated(store: Store, password: Entry): Reply {
  if (store.entryText(password.id) !== entryText(password)) return jsonReply(200, { password, ...UPDATED })
  return entryReply(store, password.id, AROUND_UPDATED)!
}

/**
 * What `If-Match` asks of an entry (RFC 9110 §13.1.1); undefined: nothing. Tags are compared strongly, so a weak one
 * matches none.
 */
export function preconditionIn({ 'if-match': tags }: Head): Precondition | undefined {
  if (tags === undefined) return undefined
  // Not taken apart: a change that waits holds no more than was sent, and many may be decided at once.
  return (_entry, revision) => {
    const wanted = revision === undefined ? '\\*' : `\\*|"${revision}"`
    return new RegExp(`(?:^|,)\\s*(?:${wanted})\\s*(?:,|$)`).test(tags)
  }
}

export function unknownIdIn(store: Store): (params: Params) => Reply | undefined {
  return params => store.has(idOf(params)) ? undefined : UNKNOWN
}

/** The routes of the five operations on a store; `prefix` is the path below which they are served. */
export function entryRoutes(store: Store, prefix: string = ''): readonly Route[] {
  const unknownId = unknownIdIn(store)
  return [
    {
      // contract §3, §4.1
      operation: 'listPassword', method: 'GET', path: '/api/listPassword',
      handle: () => {
        const body = store.list()
        return body === undefined ? NONE_ACTIVE : { status: 200, body }
      }
    },
    {
      // contract §3, §4.2
      operation: 'getPassword', method: 'GET', path: '/api/getPassword/{id}',
      handle: ({ params }) => entryReply(store, idOf(params), AROUND_READ) ?? UNKNOWN
    },
    route({
      // contract §4.3
      operation: 'createPassword', method: 'POST', path: '/api/createPassword',
      allowsStaleReads: true,
      shape: CREATE_SHAPE,
      storingFailed: TEXTS.createFailed,
      handle: ({ body, session }) => store.createEntry(body, session ?? null).then(({ id }) => created(id, prefix))
    }),
    route({
      // contract §4.4
      operation: 'updatePassword', method: 'POST', path: '/api/updatePassword/{id}',
      shape: UPDATE_SHAPE,
      beforeBody: unknownId,
      storingFailed: TEXTS.updateFailed,
      handle: async ({ head, params, body, session }) => {
        const password = await store.updateEntry(idOf(params), body, session ?? null, preconditionIn(head))
        return password === undefined ? UNKNOWN : updated(store, password)
      }
    }),
    {
      // contract §4.5
      operation: 'deletePassword', method: 'POST', path: '/api/deletePassword/{id}',
      beforeBody: unknownId,
      storingFailed: TEXTS.deleteFailed,
      handle: async ({ head, params, session }) =>
        await store.deleteEntry(idOf(params), session ?? null, preconditionIn(head)) ? DELETED : UNKNOWN
    }
  ]
}
