import { preconditionIn, UNKNOWN, unknownIdIn } from '../../entries/entry-routes.ts'
import type { Call } from '../../http/router.ts'
import { jsonReply, messageReply, type Reply } from '../../http/reply.ts'
import { MAX_OTP_PERIOD_SECONDS } from '../../limits.ts'
import { askedFor, mayCall, type NeededAbilities, type Session } from '../../rights/rights.ts'
import { openFieldsOf } from '../../entries/entry.ts'
import { Exposure } from '../../knowledge/exposure.ts'
import { listingOf, type ListForm } from './listing.ts'
import { restoreEntry } from '../../entries/entry-commands.ts'
import type { Store } from '../../store/store.ts'
import { codeAt, otpIn, secondsLeft, stepAt } from '../../accounts/totp.ts'
import type { PartContext } from '../../part.ts'
import {
  answered,
  EXAMPLE,
  TEXT,
  UNKNOWN_ID,
  type DescribedRoute,
  type RouteDescription
} from '../routes/described-route.ts'
import { deletedBelow } from './deleted.ts'
import { historyRoutes } from './history-routes.ts'
import { knowledgeRoute } from './knowledge-route.ts'
import { listRoute, OPEN } from './list-route.ts'

const RESTORED = messageReply(200, 'contraseña restaurada')

/** One digit more than an id has. */
const NO_ID = 1e15
/** A single value may be larger. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** A history needs a journal in a file. */
export function extraRoutes({
  store,
  journal,
  settings,
  accounts
}: PartContext<object>): readonly DescribedRoute[] {
  const { state } = store
  const { abilities } = settings
  const exposure = new Exposure(state, abilities)
  const readsAll = (call: Call<unknown>): boolean =>
    call.session?.groups === undefined && may(call, askedFor(abilities, 'listPassword'))
  const formOf = (call: Call<unknown>): ListForm => {
    const mayKnow = may(call, askedFor(abilities, 'whoKnows'))
    if (readsAll(call)) return mayKnow ? 'reused exposed' : 'reused'
    return mayKnow ? 'exposed' : 'plain'
  }
  const hasFile = journal !== undefined && journal.location().endpoints === undefined
  return [
    listRoute(listingOf(state, exposure, accounts !== undefined), formOf),
    ...perEntryRoutes(store),
    ...deletedRoutes(store),
    knowledgeRoute(store, readsAll),
    ...(hasFile ? historyRoutes(store, journal) : [])
  ]
}

function may({ session }: Call<unknown>, asked: NeededAbilities): boolean {
  return session === undefined || mayCall(session.abilities, asked)
}

function perEntryRoutes(store: Store): readonly DescribedRoute[] {
  const before = unknownIdIn(store)
  return [
    {
      operation: 'oneTimeCode',
      method: 'GET',
      path: '/api/oneTimeCode/{id}',
      description: CODE,
      before,
      handle: ({ id }) => {
        const otp = otpIn(store.state.entries.get(id)?.otp ?? '')
        if (otp === undefined) return UNKNOWN
        const nowMs = Date.now()
        return jsonReply(200, {
          code: codeAt(otp, stepAt(otp, nowMs)),
          seconds: secondsLeft(otp, nowMs),
          status: 200
        })
      }
    },
    {
      operation: 'restorePassword',
      method: 'POST',
      path: '/api/restorePassword/{id}',
      description: RESTORE,
      before,
      storingFailed: 'Error restoring password',
      handle: async ({ head, id, session }) =>
        (await restoreEntry(store, id, session ?? null, preconditionIn(head))) ? RESTORED : UNKNOWN
    }
  ]
}

function deletedRoutes({ state }: Store): readonly DescribedRoute[] {
  const replyBelow = (id: number, session: Session | undefined): Reply => {
    const entries = deletedBelow(state, id, MAX_ANSWER_BYTES, session?.groups)
    return { status: 200, body: `{"passwords":${entries},"status":200}`, logged: { entry: 'all' } }
  }
  return [
    {
      operation: 'deletedPasswords',
      method: 'GET',
      path: '/api/deletedPasswords',
      description: DELETED,
      handle: ({ session }) => replyBelow(state.entries.size + 1, session)
    },
    {
      operation: 'olderDeletedPasswords',
      method: 'GET',
      path: '/api/deletedPasswords/{id}',
      description: OLDER,
      // Any id: to ask for the newest one would tell of entries out of sight.
      handle: ({ id, session }) => (id === 0 ? UNKNOWN : replyBelow(id, session))
    }
  ]
}

const CODE: RouteDescription = {
  tag: 'extra',
  summary: 'The one-time code of an entry at this moment.',
  description:
    '`seconds` says how long it is valid. An entry without `otp` is answered as an unknown id. ' +
    'Served if `EXTRA_ROUTES=on`, or with a page.',
  ids: { code: 1, unknown: UNKNOWN_ID },
  answers: {
    code: answered({
      code: ['123456', { type: 'string', pattern: '^[0-9]{6,8}$' }],
      seconds: [30, { type: 'integer', minimum: 1, maximum: MAX_OTP_PERIOD_SECONDS }]
    }),
    unknown: UNKNOWN
  }
}
const GONE = {
  ...openFieldsOf(EXAMPLE),
  status: 0,
  deleted: '2026-01-31T12:00:00.000Z',
  deletedBy: 'ana@example.org'
}
const GONE_SCHEMA = {
  type: 'object',
  required: ['id', 'sistema', 'usuario', 'status'],
  properties: {
    id: { type: 'integer', minimum: 1 },
    ...OPEN,
    status: { const: 0 },
    deleted: TEXT,
    deletedBy: TEXT
  }
}
const deletedWith = (id: number): RouteDescription['answers'] => ({
  deleted: answered({ passwords: [[{ id, ...GONE }], { type: 'array', items: GONE_SCHEMA }] })
})
const DELETED: RouteDescription = {
  tag: 'extra',
  summary: 'The deleted entries without their secrets, newest first.',
  description:
    '`deleted` and `deletedBy` say when and by whom, if that is known. A mebibyte of them at ' +
    'most; `/api/deletedPasswords/{id}` with the id of the last one gives more, ' +
    'until there is none. Served where `EXTRA_ROUTES=on`, or a page.',
  answers: deletedWith(2)
}
const OLDER: RouteDescription = {
  tag: 'extra',
  summary: 'The deleted entries whose ids are below this one, newest first.',
  description: 'A mebibyte of them at most. Served where `EXTRA_ROUTES=on`, or a page.',
  ids: { deleted: 2, unknown: NO_ID },
  answers: { ...deletedWith(1), unknown: UNKNOWN }
}
const RESTORE: RouteDescription = {
  tag: 'extra',
  summary: 'Makes a deleted entry active again.',
  description: 'An active entry stays as it is. Served where `EXTRA_ROUTES=on`, or a page.',
  ids: { restored: 1, unknown: UNKNOWN_ID },
  honoursIfMatch: true,
  answers: { restored: RESTORED, unknown: UNKNOWN }
}
