/** The five operations (contract §1, §9). */
import { Buffer } from 'node:buffer'
import { TEXTS } from '../contract.ts'
import { messageReply, type Reply } from './reply.ts'
import type { Head } from './head.ts'
import type { Params } from './router.ts'
import { createEntry, deleteEntry, updateEntry, type Precondition } from '../store/commands.ts'
import { CREATE_SHAPE, entryText, UPDATE_SHAPE } from '../store/entry.ts'
import type { Commits } from '../store/store.ts'
import { idOf, route, type Route } from './route.ts'

const NONE_ACTIVE = messageReply(404, TEXTS.noneActive)
export const UNKNOWN: Reply = messageReply(404, TEXTS.unknownId)
const CREATED = messageReply(200, TEXTS.created)
const DELETED = messageReply(200, TEXTS.deleted)

const created = (entry: number, prefix: string): Reply =>
  ({ ...CREATED, headers: ['Location', `${prefix}/api/getPassword/${entry}`], logged: { entry } })

/** An entry's text with what an answer has before and behind it. A long text is in pieces of its own. */
function entryReply(text: string | Buffer, tag: string, before: string, behind: string): Reply {
  const body = typeof text === 'string' ? `${before}${text}${behind}` : [Buffer.from(before), text, Buffer.from(behind)]
  return { status: 200, body, headers: ['ETag', `"${tag}"`] }
}

const BEHIND_READ = ',"status":200}'
const BEHIND_UPDATED = `,${JSON.stringify({ message: TEXTS.updated, status: 200 }).slice(1)}`

/**
 * What `If-Match` asks of an entry (RFC 9110 §13.1.1); undefined: nothing. Tags are compared strongly, so a weak one
 * matches none.
 */
export function preconditionIn({ 'if-match': tags }: Head): Precondition | undefined {
  if (tags === undefined) return undefined
  // Not taken apart: a change that waits holds no more than was sent, and many may be decided at once.
  return (_entry, tag) => new RegExp(`(?:^|,)\\s*(?:\\*|"${tag()}")\\s*(?:,|$)`).test(tags)
}

export function unknownIdIn({ state }: Commits): (params: Params) => Reply | undefined {
  return params => state.entries.has(idOf(params)) ? undefined : UNKNOWN
}

/** The routes of the five operations on a store; `prefix` is the path below which they are served. */
export function entryRoutes(store: Commits, prefix: string = ''): readonly Route[] {
  const { state } = store
  const unknownId = unknownIdIn(store)
  return [
    {
      // contract §3, §4.1
      operation: 'listPassword', method: 'GET', path: '/api/listPassword',
      handle: () => {
        const body = state.entries.list()
        return body === undefined ? NONE_ACTIVE : { status: 200, body, logged: { entry: 'all' } }
      }
    },
    {
      // contract §3, §4.2
      operation: 'getPassword', method: 'GET', path: '/api/getPassword/{id}',
      handle: ({ params }) => {
        const id = idOf(params)
        const text = state.entries.text(id)
        if (text === undefined) return UNKNOWN
        return entryReply(text, state.entries.tag(id)!, '{"passwords":', BEHIND_READ)
      }
    },
    route({
      // contract §4.3
      operation: 'createPassword', method: 'POST', path: '/api/createPassword',
      allowsStaleReads: true,
      shape: CREATE_SHAPE,
      storingFailed: TEXTS.createFailed,
      handle: ({ body, session }) => createEntry(store, body, session ?? null).then(({ id }) => created(id, prefix))
    }),
    route({
      // contract §4.4
      operation: 'updatePassword', method: 'POST', path: '/api/updatePassword/{id}',
      shape: UPDATE_SHAPE,
      beforeBody: unknownId,
      storingFailed: TEXTS.updateFailed,
      handle: async ({ head, params, body, session }) => {
        const entry = await updateEntry(store, idOf(params), body, session ?? null, preconditionIn(head))
        if (entry === undefined) return UNKNOWN
        const text = entryText(entry) // as this change has left it: another one may have followed in the same write
        return entryReply(text, state.entries.tagOf(text), '{"password":', BEHIND_UPDATED)
      }
    }),
    {
      // contract §4.5
      operation: 'deletePassword', method: 'POST', path: '/api/deletePassword/{id}',
      beforeBody: unknownId,
      storingFailed: TEXTS.deleteFailed,
      handle: async ({ head, params, session }) =>
        await deleteEntry(store, idOf(params), session ?? null, preconditionIn(head)) ? DELETED : UNKNOWN
    }
  ]
}
