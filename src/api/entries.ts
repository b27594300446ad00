/** The five operations (contract §4), their texts word for word (§4, §7). */
import { jsonReply, said, type Reply } from '../http/reply.ts'
import type { Params } from '../http/router.ts'
import { optional, text } from '../json/shape.ts'
import type { Session } from '../store/accounts.ts'
import type { Store } from '../store/store.ts'
import { route, type Route } from './route.ts'

const NONE_ACTIVE = said(404, 'No passwords found')
const UNKNOWN = said(404, 'contraseña no encontrada')
const CREATED = said(200, 'SE CREÓ UNA NUEVA CONTRASEÑA')
const DELETED = said(200, 'contraseña borrada')

/** The names of the five operations. */
export const OPERATIONS: readonly string[] =
  ['listPassword', 'getPassword', 'createPassword', 'updatePassword', 'deletePassword']

/** The routes of the five operations on a store. */
export function entryRoutes(store: Store): readonly Route[] {
  const unknownId = (params: Params): Reply | undefined =>
    store.entryText(idOf(params)) === undefined ? UNKNOWN : undefined
  return [
    {
      operation: 'listPassword', method: 'GET', path: '/api/listPassword',
      handle: () => {
        const body = store.list()
        return body === undefined ? NONE_ACTIVE : { status: 200, body }
      }
    },
    {
      operation: 'getPassword', method: 'GET', path: '/api/getPassword/{id}',
      handle: ({ params }) => {
        const entry = store.entryText(idOf(params))
        return entry === undefined ? UNKNOWN : { status: 200, body: `{"passwords":${entry},"status":200}` }
      }
    },
    route({
      operation: 'createPassword', method: 'POST', path: '/api/createPassword',
      shape: { password: text, sistema: text, usuario: text },
      storingFailed: 'Error creating password',
      handle: async ({ body, session }) => {
        await store.createEntry(body, userOf(session))
        return CREATED
      }
    }),
    route({
      operation: 'updatePassword', method: 'POST', path: '/api/updatePassword/{id}',
      shape: { password: optional(text), sistema: optional(text), usuario: optional(text) },
      early: unknownId,
      storingFailed: 'Error updating password',
      handle: async ({ params, body, session }) => {
        const password = await store.updateEntry(idOf(params), body, userOf(session))
        return password === undefined
          ? UNKNOWN
          : jsonReply(200, { password, message: 'contraseña actualizada', status: 200 })
      }
    }),
    {
      operation: 'deletePassword', method: 'POST', path: '/api/deletePassword/{id}',
      early: unknownId,
      storingFailed: 'Error deleting password',
      handle: async ({ params, session }) =>
        await store.deleteEntry(idOf(params), userOf(session)) ? DELETED : UNKNOWN
    }
  ]
}

function userOf(session: Session | undefined): number | null { return session?.user ?? null }

/** The id of a path; 0, which no entry has, for what is not a positive integer in its canonical form. */
export function idOf({ id }: Params): number {
  return id !== undefined && /^[1-9][0-9]{0,14}$/.test(id) ? Number(id) : 0
}
