/** The history of an entry: who changed what and when, and the values of one change. */
import { BUSY, jsonReply, type Reply } from '../../http/reply.ts'
import { UNKNOWN, unknownIdIn } from '../../entries/entry-routes.ts'
import type { DurableJournal } from '../../journal/journal.ts'
import { ANSWERED_FIELDS, ENTRY_FIELDS } from '../../entries/entry.ts'
import type { Store } from '../../store/store.ts'
import {
  EXAMPLE,
  object,
  TEXT,
  UNKNOWN_ID,
  type DescribedRoute,
  type RouteDescription
} from '../routes/described-route.ts'
import { historyReader } from './history.ts'
import { nameOf } from './names.ts'

export function historyRoutes(store: Store, journal: DurableJournal): readonly DescribedRoute[] {
  const { state } = store
  const before = unknownIdIn(store)
  const historyOf = historyReader(journal)
  return [
    {
      operation: 'historyPassword',
      method: 'GET',
      path: '/api/historyPassword/{id}',
      description: HISTORY,
      before,
      handle: async ({ id, session }) => {
        const changes = await historyOf(id, session?.groups)
        if (changes === undefined) return BUSY
        const history = changes.map(({ by, fields, ...change }) => ({
          ...change,
          fields: Object.keys(fields),
          by: by === null ? null : nameOf(state, by)
        }))
        return jsonReply(200, { history, status: 200 })
      }
    },
    {
      operation: 'formerPassword',
      method: 'GET',
      path: '/api/formerPassword/{id}/{version}',
      description: FORMER,
      before,
      handle: async ({ id, version, session }) => {
        const changes = await historyOf(id, session?.groups)
        if (changes === undefined) return BUSY
        const found = changes.find(one => one.version === version)
        if (found === undefined || found.change === 'unseen') return UNKNOWN
        const fields = Object.fromEntries(
          ANSWERED_FIELDS.map(field => [field, found.fields[field]])
        )
        const read = jsonReply(200, { fields, status: 200 })
        const again = (): Reply => {
          // moved out of sight, or purged, meanwhile
          if (before(id, session) !== undefined) return UNKNOWN
          const isPresent =
            fields['password'] !== undefined &&
            fields['password'] === state.entries.get(id)?.password
          return { ...read, tells: isPresent ? id : [], logged: { entry: id }, again }
        }
        return again()
      }
    }
  ]
}

const STRINGS = Object.fromEntries(ANSWERED_FIELDS.map(field => [field, TEXT]))

const HISTORY: RouteDescription = {
  tag: 'extra',
  summary: 'The changes of an entry, newest first.',
  description:
    'With the names of the fields that each set; `formerPassword` gives the values. At most 500. ' +
    '`version` counts the changes of this entry from 1; a compaction begins again. ' +
    'Of the time in a group that the caller does not see, `unseen` says that something was changed and when; the ' +
    'change that brought the entry in sight has all fields. ' +
    'One history is read at a time; 503 asks to come again. ' +
    'Served where `EXTRA_ROUTES=on` and the journal is in a file.',
  ids: { history: 1, unknown: UNKNOWN_ID },
  answers: {
    history: jsonReply(200, {
      history: [
        {
          version: 2,
          time: '2026-01-31T12:00:00.000Z',
          change: 'updated',
          fields: ['password'],
          by: 'ana@example.org'
        }
      ],
      status: 200
    }),
    unknown: UNKNOWN,
    busy: BUSY
  },
  schemas: {
    history: object({
      history: {
        type: 'array',
        items: object({
          version: { type: 'integer', minimum: 1 },
          time: TEXT,
          change: { enum: ['created', 'updated', 'deleted', 'restored', 'kept', 'unseen'] },
          fields: { type: 'array', items: { enum: ENTRY_FIELDS } },
          by: { type: ['string', 'null'] }
        })
      },
      status: { const: 200 }
    })
  }
}
const FORMER: RouteDescription = {
  tag: 'extra',
  summary: 'The values that one change of an entry set.',
  description:
    '`version` is from the history. An unknown version, and one out of sight, is answered as an unknown ' +
    'id. Served where `EXTRA_ROUTES=on` and the journal is in a file.',
  ids: { former: 1, unknown: UNKNOWN_ID },
  answers: {
    former: jsonReply(200, { fields: EXAMPLE, status: 200 }),
    unknown: UNKNOWN,
    busy: BUSY
  },
  schemas: {
    former: object({
      fields: { type: 'object', additionalProperties: false, properties: STRINGS },
      status: { const: 200 }
    })
  }
}
