/** The five operations (contract §1, §9). */
import { OPERATIONS, TEXTS } from '../contract.ts'
import { createEntry, deleteEntry, updateEntry, type Precondition } from './entry-commands.ts'
import { entryText } from './entry.ts'
import { CREATE_SHAPE, UPDATE_SHAPE } from './entry-shapes.ts'
import type { Commits } from '../store/store.ts'
import { mayCall, sees, type NeededAbilities } from '../rights/rights.ts'
import type { Head } from '../http/head.ts'
import { messageReply, type Reply } from '../http/reply.ts'
import { route, type Route } from '../http/router.ts'

const NONE_ACTIVE = messageReply(404, TEXTS.noneActive)
export const UNKNOWN: Reply = messageReply(404, TEXTS.unknownId)
const CREATED = messageReply(200, TEXTS.created)
const DELETED = messageReply(200, TEXTS.deleted)

const createdReply = (entry: number, prefix: string): Reply => ({
  ...CREATED,
  headers: ['Location', `${prefix}/api/getPassword/${entry}`],
  logged: { entry }
})

function entryReply(id: number, text: string, tag: string, before: string, behind: string): Reply {
  return {
    status: 200,
    body: `${before}${text}${behind}`,
    headers: ['ETag', `"${tag}"`],
    tells: id
  }
}

const BEHIND_READ = ',"status":200}'
const BEHIND_UPDATED = `,${JSON.stringify({ message: TEXTS.updated, status: 200 }).slice(1)}`

/** Entity tags (RFC 9110 §8.8.3); quotes may hold commas and asterisks. */
const TAGS = /^[ \t,]*(?:(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"[ \t]*(?:,[ \t,]*|$))*$/

/**
 * Undefined without `If-Match` (RFC 9110 §13.1.1). Comparison is strong: weak tags and malformed
 * lists match no entry.
 */
export function preconditionIn({ 'if-match': tags }: Head): Precondition | undefined {
  if (tags === undefined) return undefined
  // A waiting change holds no more than was sent.
  return (_entry, tag) =>
    tags.trim() === '*' || (TAGS.test(tags) && new RegExp(`(?<!W/)"${tag()}"`).test(tags))
}

/** An entry out of sight is answered as an id that no entry has. */
export function unknownIdIn({ state }: Commits): NonNullable<Route['before']> {
  return (id, session) =>
    state.entries.has(id) && sees(session?.groups, state.entries.grupo(id)) ? undefined : UNKNOWN
}

/** `prefix` is an embedder's path. A move to another group needs one of `deletes`, too. */
export function entryRoutes(
  store: Commits,
  prefix: string = '',
  deletes: NeededAbilities = [OPERATIONS.deletePassword]
): readonly Route[] {
  const { state } = store
  const unknownId = unknownIdIn(store)
  return [
    {
      // contract §3, §4.1
      operation: 'listPassword',
      method: 'GET',
      path: '/api/listPassword',
      handle: ({ session }) => {
        const body = state.entries.list(session?.groups)
        if (body === undefined) return NONE_ACTIVE
        return {
          status: 200,
          body,
          tells: 'list',
          logged: { entry: 'all' }
        }
      }
    },
    {
      // contract §3, §4.2
      operation: 'getPassword',
      method: 'GET',
      path: '/api/getPassword/{id}',
      // Not in `before`: a read that is recorded is handled once more, without it.
      handle: ({ id, session }) => {
        const text = state.entries.text(id)
        if (text === undefined || unknownId(id, session) !== undefined) return UNKNOWN
        return entryReply(id, text, state.entries.tag(id)!, '{"passwords":', BEHIND_READ)
      }
    },
    route({
      // contract §4.3
      operation: 'createPassword',
      method: 'POST',
      path: '/api/createPassword',
      shape: CREATE_SHAPE,
      storingFailed: TEXTS.createFailed,
      handle: ({ body, session }) =>
        createEntry(store, body, session ?? null).then(({ id }) => createdReply(id, prefix))
    }),
    route({
      // contract §4.4
      operation: 'updatePassword',
      method: 'POST',
      path: '/api/updatePassword/{id}',
      shape: UPDATE_SHAPE,
      before: unknownId,
      storingFailed: TEXTS.updateFailed,
      handle: async ({ head, id, body, session }) => {
        const mayMove = session === undefined || mayCall(session.abilities, deletes)
        const entry = await updateEntry(store, id, body, session ?? null, {
          isExpected: preconditionIn(head),
          mayMove,
          tells: { reader: session, operation: 'updatePassword' }
        })
        if (entry === undefined) return UNKNOWN
        const text = entryText(entry) // as of this change, not of another in the same write
        return entryReply(id, text, state.entries.tagOf(entry), '{"password":', BEHIND_UPDATED)
      }
    }),
    {
      // contract §4.5
      operation: 'deletePassword',
      method: 'POST',
      path: '/api/deletePassword/{id}',
      before: unknownId,
      storingFailed: TEXTS.deleteFailed,
      handle: async ({ head, id, session }) =>
        (await deleteEntry(store, id, session ?? null, preconditionIn(head))) ? DELETED : UNKNOWN
    }
  ]
}
