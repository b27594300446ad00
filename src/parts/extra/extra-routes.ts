/** The routes of this part, guarded and limited like the contract's. */
import { preconditionIn, UNKNOWN, unknownIdIn } from '../../http/routes.ts'
import type { Call } from '../../http/route.ts'
import { jsonReply, messageReply, type Reply } from '../../http/reply.ts'
import { MAX_OTP_PERIOD_SECONDS } from '../../limits.ts'
import { mayCall, type Session } from '../../store/users.ts'
import { ENTRY_FIELDS, FIELDS, OPEN_FIELDS, openFieldsOf } from '../../store/entry.ts'
import { EqualPasswords } from '../../store/equal-passwords.ts'
import { Exposure } from '../../store/exposure.ts'
import { listingOf, type ListForm } from '../../store/listing.ts'
import { restoreEntry } from '../../store/commands.ts'
import type { Store } from '../../store/store.ts'
import { codeAt, otpIn, secondsLeft, stepAt } from '../../store/totp.ts'
import type { PartContext } from '../../part.ts'
import { namesTag, takesCoding } from '../coding.ts'
import { EXAMPLE, object, type DescribedRoute, type RouteDescription } from '../described-route.ts'
import { deletedBelow } from './deleted.ts'
import { historyRoutes } from './history-routes.ts'
import { knowledgeRoute } from './knowledge-route.ts'
import { isPackable, packer } from './packing.ts'

const RESTORED = messageReply(200, 'contraseña restaurada')

/** Unless the first value in an answer is larger. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** A history needs a journal in a file. */
export function extraRoutes(
  { store, journal, settings }: PartContext<object>
): readonly DescribedRoute[] {
  const unknownId = unknownIdIn(store)
  const { state } = store
  const exposure = new Exposure(state, settings.abilities)
  const equals = new EqualPasswords(state.entries, exposure)
  const listing = listingOf(state.entries, equals, exposure)
  const packedOf = packer()
  const readAll = settings.abilities.get('listPassword')
  const readsAll = ({ session }: Call<unknown>): boolean => session === undefined ||
    (session.groups === undefined && mayCall(session.abilities, readAll))
  const knowledge = settings.abilities.get('whoKnows')
  const mayKnow = ({ session }: Call<unknown>): boolean =>
    session === undefined || mayCall(session.abilities, knowledge)
  const routes: DescribedRoute[] = [
    {
      operation: 'listEntries', method: 'GET', path: '/api/listEntries', description: LIST,
      handle: async call => {
        const groups = call.session?.groups
        const form = formOf(readsAll(call), mayKnow(call))
        const list = await listing(form, groups)
        const { 'accept-encoding': accept, 'if-none-match': known } = call.head
        const takesPacked = isPackable(list) && takesCoding(accept, 'gzip')
        const [plain, coded] = [taggedBy(`"${list.tag}"`), taggedBy(`"${list.tag}-gzip"`)]
        const own = takesPacked ? coded : plain
        if (namesTag(known, own[1]!)) return { status: 304, headers: own }
        const packed = takesPacked ? packedOf(list, groups === undefined ? form : 'in sight') : undefined
        if (packed === undefined) return { status: 200, body: list.bytes, headers: plain }
        return { status: 200, body: await packed, headers: ['Content-Encoding', 'gzip', ...coded] }
      }
    },
    {
      operation: 'oneTimeCode', method: 'GET', path: '/api/oneTimeCode/{id}', description: CODE,
      before: unknownId,
      handle: ({ id }) => {
        const otp = otpIn(store.state.entries.get(id)?.otp ?? '')
        if (otp === undefined) return UNKNOWN
        const nowMs = Date.now()
        return jsonReply(200, { code: codeAt(otp, stepAt(otp, nowMs)), seconds: secondsLeft(otp, nowMs), status: 200 })
      }
    },
    {
      operation: 'deletedPasswords', method: 'GET', path: '/api/deletedPasswords', description: DELETED,
      handle: ({ session }) => deletedReply(store, store.state.entries.size + 1, session)
    },
    {
      operation: 'olderDeletedPasswords', method: 'GET', path: '/api/deletedPasswords/{id}', description: OLDER,
      handle: ({ id, session }) => {
        // A purged id can be asked from too.
        return id === 0 || id > store.state.entries.size ? UNKNOWN : deletedReply(store, id, session)
      }
    },
    {
      operation: 'restorePassword', method: 'POST', path: '/api/restorePassword/{id}', description: RESTORE,
      before: unknownId, storingFailed: 'Error restoring password',
      handle: async ({ head, id, session }) =>
        await restoreEntry(store, id, session ?? null, preconditionIn(head)) ? RESTORED : UNKNOWN
    }
  ]
  routes.push(knowledgeRoute(store, equals, readsAll))
  if (journal !== undefined && journal.location().endpoints === undefined) routes.push(...historyRoutes(store, journal))
  return routes
}

function formOf(reused: boolean, exposed: boolean): ListForm {
  if (reused) return exposed ? 'reused exposed' : 'reused'
  return exposed ? 'exposed' : 'plain'
}

function taggedBy(tag: string): readonly string[] { return ['ETag', tag, 'Vary', 'Accept-Encoding'] }

function deletedReply(store: Store, id: number, session: Session | undefined): Reply {
  const entries = deletedBelow(store.state, id, MAX_ANSWER_BYTES, session?.groups)
  return { status: 200, body: `{"passwords":${entries},"status":200}`, logged: { entry: 'all' } }
}

const IDS = { unknown: 999_999_999 }
const TEXT = { type: 'string' }
/** Of the list without secrets. */
const OPEN = Object.fromEntries(OPEN_FIELDS.map(field => [field, TEXT]))
const SET = Object.fromEntries(ENTRY_FIELDS.filter(field => FIELDS[field].isSecret && !FIELDS[field].isRequired)
  .map(field => [field, { const: true }]))

const LIST: RouteDescription = {
  tag: 'extra', summary: 'The active entries without their secrets.',
  description: 'An empty array if there is none. `changed` is when the password was last set, if that is known. For ' +
    'callers who may also list the passwords, `reused` says how many other entries have the same one. For ' +
    'callers who may ask who knows a password, `exposed` says how many know this one who may not be told it any ' +
    'more. `notas` and `otp` are true if they are set. With `If-None-Match`, 304 if nothing has changed. Served if ' +
    '`EXTRA_ROUTES=on`, or with a page.',
  answers: { entries: jsonReply(200, [{ id: 1, sistema: 'correo', usuario: 'ana', status: 1 }], ['ETag', '"tag"']) },
  schemas: { entries: { type: 'array', items: {
    type: 'object', required: ['id', 'sistema', 'usuario', 'status'], additionalProperties: false,
    properties: {
      id: { type: 'integer', minimum: 1 }, ...OPEN, status: { const: 1 }, changed: TEXT,
      reused: { type: 'integer', minimum: 1 }, exposed: { type: 'integer', minimum: 1 }, ...SET
    }
  } } }
}
const CODE: RouteDescription = {
  tag: 'extra', summary: 'The one-time code of an entry at this moment.',
  description: '`seconds` says how long it is valid. An entry without `otp` is answered as an unknown id. ' +
    'Served if `EXTRA_ROUTES=on`, or with a page.',
  ids: { code: 1, ...IDS },
  answers: { code: jsonReply(200, { code: '123456', seconds: 30, status: 200 }), unknown: UNKNOWN },
  schemas: { code: object({
    code: { type: 'string', pattern: '^[0-9]{6,8}$' },
    seconds: { type: 'integer', minimum: 1, maximum: MAX_OTP_PERIOD_SECONDS }, status: { const: 200 }
  }) }
}
const GONE = {
  ...openFieldsOf(EXAMPLE), status: 0, deleted: '2026-01-31T12:00:00.000Z', deletedBy: 'ana@example.org'
}
const DELETED_SCHEMA = object({
  passwords: { type: 'array', items: {
    type: 'object', required: ['id', 'sistema', 'usuario', 'status'], additionalProperties: false,
    properties: { id: { type: 'integer', minimum: 1 }, ...OPEN, status: { const: 0 }, deleted: TEXT, deletedBy: TEXT }
  } },
  status: { const: 200 }
})
const DELETED: RouteDescription = {
  tag: 'extra', summary: 'The deleted entries without their secrets, newest first.',
  description: '`deleted` and `deletedBy` say when and by whom, if that is known. A mebibyte of them at ' +
    'most; `/api/deletedPasswords/{id}` with the id of the last one gives more, ' +
    'until there is none. Served where `EXTRA_ROUTES=on`, or a page.',
  answers: { deleted: jsonReply(200, { passwords: [{ id: 2, ...GONE }], status: 200 }) },
  schemas: { deleted: DELETED_SCHEMA }
}
const OLDER: RouteDescription = {
  tag: 'extra', summary: 'The deleted entries whose ids are below this one, newest first.',
  description: 'A mebibyte of them at most. Served where `EXTRA_ROUTES=on`, or a page.',
  ids: { deleted: 2, ...IDS },
  answers: {
    deleted: jsonReply(200, { passwords: [{ id: 1, ...GONE }], status: 200 }), unknown: UNKNOWN
  },
  schemas: { deleted: DELETED_SCHEMA }
}
const RESTORE: RouteDescription = {
  tag: 'extra', summary: 'Makes a deleted entry active again.',
  description: 'An active entry stays as it is. Served where `EXTRA_ROUTES=on`, or a page.',
  ids: { restored: 1, ...IDS }, honoursIfMatch: true,
  answers: { restored: RESTORED, unknown: UNKNOWN }
}
