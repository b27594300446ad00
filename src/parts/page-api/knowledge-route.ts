/** Who knows the present password of an entry. */
import { jsonReply } from '../../http/reply.ts'
import { UNKNOWN, unknownIdIn } from '../../entries/entry-routes.ts'
import type { Call } from '../../http/router.ts'
import type { EqualPasswords } from './equal-passwords.ts'
import { whoKnows } from '../../knowledge/exposure.ts'
import type { Store } from '../../store/store.ts'
import {
  object,
  TEXT,
  UNKNOWN_ID,
  type DescribedRoute,
  type RouteDescription
} from '../routes/described-route.ts'

/** Pages of passwords read before other requests are served. */
const SLICE_PAGES = 64

/** `readsAll`: whether the caller sees all entries and may read their passwords. */
export function knowledgeRoute(
  store: Store,
  equals: EqualPasswords,
  readsAll: (call: Call<unknown>) => boolean
): DescribedRoute {
  const before = unknownIdIn(store)
  return {
    operation: 'whoKnows',
    method: 'GET',
    path: '/api/whoKnows/{id}',
    description: KNOWS,
    before,
    handle: async call => {
      const { id, session } = call
      const showsEqual = readsAll(call)
      while (showsEqual && !equals.refresh(SLICE_PAGES))
        await new Promise(resolve => setImmediate(resolve))
      const unknown = before(id, session)
      if (unknown !== undefined) return unknown
      return jsonReply(200, {
        ...whoKnows(store.state, id, showsEqual ? equals.idsAs(id) : undefined),
        status: 200
      })
    }
  }
}

const KNOWS: RouteDescription = {
  tag: 'extra',
  summary: 'Who knows the present password of an entry.',
  description:
    'Whoever set it, or was answered with it since. `equal` is from another entry that has or had the ' +
    'same password, for callers who see all entries and may read their passwords. Before ' +
    '`unrecordedBefore`, others may have read it. `operator` is an account name, empty without one; `host` is the ' +
    'process of an embedder. Served if `EXTRA_ROUTES=on`, or with a page.',
  ids: { knows: 1, unknown: UNKNOWN_ID },
  answers: {
    knows: jsonReply(200, {
      knows: [{ user: { id: 1, email: 'ana@example.org', name: 'Ana' }, how: 'set' }],
      status: 200
    }),
    unknown: UNKNOWN
  },
  schemas: {
    knows: {
      type: 'object',
      required: ['knows', 'status'],
      properties: {
        knows: {
          type: 'array',
          items: {
            type: 'object',
            required: ['how'],
            properties: {
              user: object({ id: { type: 'integer', minimum: 1 }, email: TEXT, name: TEXT }),
              removed: { const: true },
              operator: TEXT,
              host: { const: true },
              how: { enum: ['set', 'read', 'equal'] }
            }
          }
        },
        unrecordedBefore: TEXT,
        status: { const: 200 }
      }
    }
  }
}
