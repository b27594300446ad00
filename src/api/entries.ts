/** The five operations (contract §4), their texts word for word (§4, §7). */
import { jsonReply, said, type Reply } from '../http/reply.ts'
import type { Params } from '../http/router.ts'
import { optional, text, type Rule, type Schema } from '../json/shape.ts'
import type { Session } from '../store/accounts.ts'
import type { Entry, EntryFields } from '../store/record.ts'
import type { Store } from '../store/store.ts'
import { answerSchema, route, type Route } from './route.ts'

const NONE_ACTIVE = said(404, 'No passwords found')
const UNKNOWN = said(404, 'contraseña no encontrada')
const CREATED = said(200, 'SE CREÓ UNA NUEVA CONTRASEÑA')
const DELETED = said(200, 'contraseña borrada')

const found = (entry: string): Reply => ({ status: 200, body: `{"passwords":${entry},"status":200}` })
const updated = (password: Entry): Reply =>
  jsonReply(200, { password, message: 'contraseña actualizada', status: 200 })

const EXAMPLE_FIELDS: EntryFields = { password: 'S3cr3ta', sistema: 'correo', usuario: 'ana' }
const EXAMPLE: Entry = { id: 1, ...EXAMPLE_FIELDS, status: 1 }
const EXAMPLE_UNKNOWN = { params: { id: 999_999_999 }, reply: UNKNOWN }

const ENTRY: Schema = answerSchema({
  id: { type: 'integer', minimum: 1 }, password: text.schema, sistema: text.schema, usuario: text.schema,
  status: { enum: [0, 1], description: '1 is active, 0 is deleted.' }
})

/** The fields of a new entry (§4.3). */
export const CREATE_SHAPE: { readonly [F in keyof EntryFields]: Rule<string> } = {
  password: text, sistema: text, usuario: text
}
/** The fields of a change (§4.4). */
export const UPDATE_SHAPE: { readonly [F in keyof EntryFields]: Rule<string | undefined> } = {
  password: optional(text), sistema: optional(text), usuario: optional(text)
}

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
      documentation: {
        summary: 'The active entries, ascending by id.',
        examples: {
          entries: { reply: jsonReply(200, [EXAMPLE]), schema: { type: 'array', minItems: 1, items: ENTRY } },
          none: { reply: NONE_ACTIVE }
        }
      },
      handle: () => {
        const body = store.list()
        return body === undefined ? NONE_ACTIVE : { status: 200, body }
      }
    },
    {
      operation: 'getPassword', method: 'GET', path: '/api/getPassword/{id}',
      documentation: {
        summary: 'One entry, deleted ones too.',
        examples: {
          found: {
            params: { id: 1 }, reply: found(JSON.stringify(EXAMPLE)),
            schema: answerSchema({ passwords: ENTRY, status: { const: 200 } })
          },
          unknown: EXAMPLE_UNKNOWN
        }
      },
      handle: ({ params }) => {
        const entry = store.entryText(idOf(params))
        return entry === undefined ? UNKNOWN : found(entry)
      }
    },
    route({
      operation: 'createPassword', method: 'POST', path: '/api/createPassword',
      mayBeStale: true,
      shape: CREATE_SHAPE,
      storingFailed: 'Error creating password',
      documentation: {
        summary: 'Creates an active entry.',
        examples: { created: { body: EXAMPLE_FIELDS, reply: CREATED } }
      },
      handle: ({ body, session }) => store.createEntry(body, userOf(session)).then(() => CREATED)
    }),
    route({
      operation: 'updatePassword', method: 'POST', path: '/api/updatePassword/{id}',
      shape: UPDATE_SHAPE,
      beforeBody: unknownId,
      storingFailed: 'Error updating password',
      documentation: {
        summary: 'Changes the fields that are given.',
        examples: {
          updated: {
            params: { id: 1 }, body: { password: 'N0va' }, reply: updated({ ...EXAMPLE, password: 'N0va' }),
            schema: answerSchema({
              password: ENTRY, message: { const: 'contraseña actualizada' }, status: { const: 200 }
            })
          },
          unknown: { ...EXAMPLE_UNKNOWN, body: { password: 'N0va' } }
        }
      },
      handle: async ({ params, body, session }) => {
        const password = await store.updateEntry(idOf(params), body, userOf(session))
        return password === undefined ? UNKNOWN : updated(password)
      }
    }),
    {
      operation: 'deletePassword', method: 'POST', path: '/api/deletePassword/{id}',
      beforeBody: unknownId,
      storingFailed: 'Error deleting password',
      documentation: {
        summary: 'Marks an entry as deleted; nothing is ever removed.',
        examples: { deleted: { params: { id: 1 }, reply: DELETED }, unknown: EXAMPLE_UNKNOWN }
      },
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
