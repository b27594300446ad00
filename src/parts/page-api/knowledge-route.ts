import { jsonReply } from '../../http/reply.ts'
import { UNKNOWN, unknownIdIn } from '../../entries/entry-routes.ts'
import type { Call } from '../../http/router.ts'
import { whoKnows } from '../../knowledge/exposure.ts'
import type { Store } from '../../store/store.ts'
import {
  answered,
  object,
  TEXT,
  UNKNOWN_ID,
  type DescribedRoute,
  type RouteDescription
} from '../routes/described-route.ts'

/** `readsAll`: whether the caller sees all entries and may read their passwords. */
export function knowledgeRoute(
  store: Store,
  readsAll: (call: Call<unknown>) => boolean
): DescribedRoute {
  return {
    operation: 'whoKnows',
    method: 'GET',
    path: '/api/whoKnows/{id}',
    description: KNOWS,
    before: unknownIdIn(store),
    handle: call =>
      jsonReply(200, { ...whoKnows(store.state, call.id, !readsAll(call)), status: 200 })
  }
}

const USER = object({ id: { type: 'integer', minimum: 1 }, email: TEXT, name: TEXT })

export const KNOWN_USER: object = {
  type: 'object',
  required: ['user'],
  properties: { user: USER, removed: { const: true } }
}

const KNOWS: RouteDescription = {
  tag: 'extra',
  summary: 'Who knows the present password of an entry.',
  description:
    '`read`: whoever set it, or was answered with it since. `equal`: whoever knows the same ' +
    'password otherwise, from another entry that has or had it, or since this one had it before; ' +
    'for callers who see all entries and may read their passwords. ' +
    'Before `unrecordedBefore`, others may have read it. ' +
    '`operator` is an account name, empty without one; `host` is the process of an embedder. ' +
    'Served if `EXTRA_ROUTES=on`, or with a page.',
  ids: { knows: 1, unknown: UNKNOWN_ID },
  answers: {
    knows: answered({
      knows: [
        [{ user: { id: 1, email: 'ana@example.org', name: 'Ana' }, how: 'read' }],
        {
          type: 'array',
          items: {
            type: 'object',
            required: ['how'],
            properties: {
              user: USER,
              removed: { const: true },
              operator: TEXT,
              host: { const: true },
              how: { enum: ['read', 'equal'] }
            }
          }
        }
      ],
      unrecordedBefore: [undefined, TEXT]
    }),
    unknown: UNKNOWN
  }
}
