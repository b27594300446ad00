/** The routes of this part, guarded and limited like the contract's. */
import { Buffer } from 'node:buffer'
import { preconditionIn, UNKNOWN, unknownIdIn } from '../../http/routes.ts'
import { RateLimit } from '../../http/rate-limit.ts'
import { route, type Call } from '../../http/route.ts'
import type { CoreSettings } from '../../core-settings.ts'
import { BUSY, invalid, jsonReply, messageReply, type Reply } from '../../http/reply.ts'
import { textUpTo } from '../../store/validate.ts'
import { MAX_LOGIN_PASSWORD_LENGTH, MAX_OTP_PERIOD_SECONDS } from '../../limits.ts'
import { passwordFault } from '../../store/password-rules.ts'
import { covers, PASSWORD_SHAPE, type Session } from '../../store/users.ts'
import type { Accounts } from '../../store/accounts.ts'
import { ANSWERED_FIELDS, ENTRY_FIELDS, EXAMPLE, FIELDS } from '../../store/entry.ts'
import { listingOf } from '../../store/listing.ts'
import { restoreEntry } from '../../store/commands.ts'
import type { Store } from '../../store/store.ts'
import { codeAt, otpIn, secondsLeft, stepAt } from '../../store/totp.ts'
import type { PartContext } from '../../part.ts'
import { namesTag, takesCoding } from '../coding.ts'
import type { DescribedRoute, RouteDescription, Schema } from '../described-route.ts'
import { deletedBelow } from './deleted.ts'
import { historyReader, type Change } from './history.ts'
import { isPackable, packer } from './packing.ts'

const RESTORED = messageReply(200, 'contraseña restaurada')
const CHANGED = messageReply(200, 'contraseña cambiada')
const WRONG = invalid({ password: ['The current password is not correct.'] })

/** Unless the first value in an answer is larger. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** A history needs a journal in a file, a change of password needs logins. */
export function extraRoutes(
  { store, accounts, journal, settings }: PartContext<object>
): readonly DescribedRoute[] {
  const unknownId = unknownIdIn(store)
  const listing = listingOf(store.state.entries)
  const packedOf = packer()
  const readAll = settings.abilities.get('listPassword')
  const readsAll = ({ session }: Call<unknown>): boolean => session === undefined ||
    (session.groups === undefined && (readAll === undefined || covers(session.abilities, readAll)))
  const routes: DescribedRoute[] = [
    {
      operation: 'listEntries', method: 'GET', path: '/api/listEntries', description: LIST,
      handle: async call => {
        const groups = call.session?.groups
        const form = readsAll(call) ? 'reused' : 'plain'
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
  if (journal !== undefined && journal.location().endpoints === undefined) {
    const historyOf = historyReader(journal)
    routes.push({
      operation: 'historyPassword', method: 'GET', path: '/api/historyPassword/{id}', description: HISTORY,
      before: unknownId,
      handle: async ({ id, session }) => {
        const changes = await historyOf(id, session?.groups)
        return changes === undefined ? BUSY : historyReply(bounded(changes.map(change => named(store, change))))
      }
    })
  }
  if (accounts !== undefined) routes.push({ ...ownPasswordRoute(store, accounts, settings), description: OWN_PASSWORD })
  return routes
}

function taggedBy(tag: string): readonly string[] { return ['ETag', tag, 'Vary', 'Accept-Encoding'] }

function deletedReply(store: Store, id: number, session: Session | undefined): Reply {
  const entries = deletedBelow(store.state.entries, id, MAX_ANSWER_BYTES, session?.groups)
  return { status: 200, body: `{"passwords":${entries},"status":200}`, logged: { entry: 'all' } }
}

function bounded(texts: readonly string[]): readonly string[] {
  let bytes = 0
  const end = texts.findIndex((text, i) => {
    bytes += Buffer.byteLength(text)
    return bytes > MAX_ANSWER_BYTES && i > 0
  })
  return end < 0 ? texts : texts.slice(0, end)
}

function historyReply(changes: readonly string[]): Reply {
  return { status: 200, body: `{"history":[${changes.join()}],"status":200}` }
}

function named({ state }: Store, { by, ...change }: Change): string {
  if (typeof by !== 'number') return JSON.stringify({ ...change, by })
  const user = state.users.get(by)
  return JSON.stringify({ ...change, by: user?.passwordHash === undefined ? `#${by}` : user.email })
}

function ownPasswordRoute(store: Store, accounts: Accounts, { loginLimit }: CoreSettings): DescribedRoute {
  return route({
    operation: 'changeOwnPassword', method: 'POST', path: '/api/changeOwnPassword',
    // As for a login: the holder of a token must not find the password by trying.
    limit: loginLimit === 0 ? undefined : new RateLimit(loginLimit),
    shape: { password: textUpTo(MAX_LOGIN_PASSWORD_LENGTH), newPassword: PASSWORD_SHAPE.password },
    storingFailed: 'Error changing password',
    handle: async ({ body: { password, newPassword }, session, isGone }) => {
      const fault = passwordFault(newPassword, store.state.users.get(session!.user)?.email ?? '', 'newPassword')
      if (fault !== undefined) return invalid({ newPassword: [fault] })
      return await accounts.changePassword(session!, password, newPassword, isGone) ? CHANGED : WRONG
    }
  })
}

const IDS = { unknown: 999_999_999 }
const TEXT = { type: 'string' }
const STRINGS = Object.fromEntries(ANSWERED_FIELDS.map(field => [field, TEXT]))
/** Of the list without secrets. */
const OPEN = Object.fromEntries(ENTRY_FIELDS.filter(field => !FIELDS[field].isSecret).map(field => [field, TEXT]))
const SET = Object.fromEntries(ENTRY_FIELDS.filter(field => FIELDS[field].isSecret && !FIELDS[field].isRequired)
  .map(field => [field, { const: true }]))

const LIST: RouteDescription = {
  tag: 'extra', summary: 'The active entries without their secrets.',
  description: 'An empty array if there is none. `changed` is when the password was last set, if that is known. For ' +
    'callers who may also list the passwords, `reused` says how many other entries have the same one. `notas` and ' +
    '`otp` are true if they are set. With `If-None-Match`, 304 if nothing has changed. Served if ' +
    '`EXTRA_ROUTES=on`, or with a page.',
  answers: { entries: jsonReply(200, [{ id: 1, sistema: 'correo', usuario: 'ana', status: 1 }], ['ETag', '"tag"']) },
  schemas: { entries: { type: 'array', items: {
    type: 'object', required: ['id', 'sistema', 'usuario', 'status'], additionalProperties: false,
    properties: {
      id: { type: 'integer', minimum: 1 }, ...OPEN, status: { const: 1 }, changed: TEXT,
      reused: { type: 'integer', minimum: 1 }, ...SET
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
const DELETED: RouteDescription = {
  tag: 'extra', summary: 'The deleted entries, newest first.',
  description: 'A mebibyte of them at most; `/api/deletedPasswords/{id}` with the id of the last one gives more, ' +
    'until there is none. Served where `EXTRA_ROUTES=on`, or a page.',
  answers: { deleted: jsonReply(200, { passwords: [{ id: 2, ...EXAMPLE, status: 0 }], status: 200 }) }
}
const OLDER: RouteDescription = {
  tag: 'extra', summary: 'The deleted entries whose ids are below this one, newest first.',
  description: 'A mebibyte of them at most. Served where `EXTRA_ROUTES=on`, or a page.',
  ids: { deleted: 2, ...IDS },
  answers: {
    deleted: jsonReply(200, { passwords: [{ id: 1, ...EXAMPLE, status: 0 }], status: 200 }),
    unknown: UNKNOWN
  }
}
const RESTORE: RouteDescription = {
  tag: 'extra', summary: 'Makes a deleted entry active again.',
  description: 'An active entry stays as it is. Served where `EXTRA_ROUTES=on`, or a page.',
  ids: { restored: 1, ...IDS }, honoursIfMatch: true,
  answers: { restored: RESTORED, unknown: UNKNOWN }
}
const HISTORY: RouteDescription = {
  tag: 'extra', summary: 'The changes of an entry, newest first.',
  description: 'With the fields that each set, former passwords among them; at most 500, and a mebibyte of them. ' +
    'Of the time in a group that the caller does not see, `unseen` says that something was changed and when; the ' +
    'change that brought the entry in sight has all fields. ' +
    'One history is read at a time; 503 asks to come again. ' +
    'Served where `EXTRA_ROUTES=on` and the journal is in a file.',
  ids: { history: 1, ...IDS },
  answers: {
    history: jsonReply(200, {
      history: [{ time: '2026-01-31T12:00:00.000Z', change: 'created', fields: EXAMPLE, by: 'ana@example.org' }],
      status: 200
    }),
    unknown: UNKNOWN, busy: BUSY
  },
  schemas: {
    history: object({
      history: {
        type: 'array',
        items: object({
          time: TEXT, change: { enum: ['created', 'updated', 'deleted', 'restored', 'kept', 'unseen'] },
          fields: { type: 'object', additionalProperties: false, properties: STRINGS }, by: { type: ['string', 'null'] }
        })
      },
      status: { const: 200 }
    })
  }
}
const OWN_PASSWORD: RouteDescription = {
  tag: 'extra', summary: 'Changes the password of the user whose token it is.',
  description: 'All tokens of the user end. Served where `EXTRA_ROUTES=on` and `AUTH=bearer`.',
  body: { type: 'object', required: ['password', 'newPassword'], properties: { password: TEXT, newPassword: TEXT } },
  bodies: { changed: { password: 'correct horse battery staple', newPassword: 'battery staple horse correct' } },
  answers: { changed: CHANGED, wrong: WRONG }
}

function object(properties: { readonly [name: string]: Schema }): Schema {
  return { type: 'object', required: Object.keys(properties), additionalProperties: false, properties }
}
