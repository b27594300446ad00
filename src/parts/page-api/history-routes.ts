/**
 * Who changed an entry, what and when. Each former secret has an answer of its own: its reader
 * knows it from then on.
 */
import { BUSY, jsonReply, type Reply } from '../../http/reply.ts'
import { UNKNOWN, unknownIdIn } from '../../entries/entry-routes.ts'
import type { DurableJournal } from '../../journal/journal.ts'
import { ENTRY_FIELDS, FIELDS, openFieldsOf } from '../../entries/entry.ts'
import type { Store } from '../../store/store.ts'
import {
  answered,
  TEXT,
  UNKNOWN_ID,
  type DescribedRoute,
  type RouteDescription
} from '../routes/described-route.ts'
import { historyReader } from './history.ts'
import { OPEN } from './list-route.ts'
import { nameOf } from './names.ts'

export function historyRoutes(store: Store, journal: DurableJournal): readonly DescribedRoute[] {
  const { state } = store
  const before = unknownIdIn(store)
  const historyOf = historyReader(journal)
  const former = (
    operation: string,
    field: 'password' | 'notas',
    description: RouteDescription
  ): DescribedRoute => ({
    operation,
    method: 'GET',
    path: `/api/${operation}/{id}/{version}`,
    description,
    before,
    handle: async ({ id, version, session }) => {
      const changes = await historyOf(id, session?.groups)
      if (changes === undefined) return BUSY
      const value = changes.find(one => one.version === version)?.fields[field]
      if (value === undefined) return UNKNOWN
      const read = { ...jsonReply(200, { [field]: value, status: 200 }), logged: { entry: id } }
      const again = (): Reply => {
        // moved out of sight, or purged, meanwhile
        if (before(id, session) !== undefined) return UNKNOWN
        if (field !== 'password') return read
        return { ...read, tells: { id, password: value }, again }
      }
      return again()
    }
  })
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
          ...(change.change !== 'unseen' && {
            fields: Object.keys(fields),
            values: openFieldsOf(fields)
          }),
          by: by === null ? null : nameOf(state, by)
        }))
        return jsonReply(200, { history, status: 200 })
      }
    },
    former('formerPassword', 'password', PASSWORD),
    former('formerNotes', 'notas', NOTES)
  ]
}

const CHANGE = {
  version: 2,
  time: '2026-01-31T12:00:00.000Z',
  change: 'updated',
  fields: ['password', 'usuario'],
  values: { usuario: FIELDS.usuario.example },
  by: 'ana@example.org'
}
const CHANGE_SCHEMA = {
  type: 'object',
  required: ['version', 'time', 'change', 'by'],
  properties: {
    version: { type: 'integer', minimum: 1 },
    time: TEXT,
    change: { enum: ['created', 'updated', 'deleted', 'restored', 'kept', 'unseen'] },
    fields: { type: 'array', items: { enum: ENTRY_FIELDS } },
    values: { type: 'object', properties: OPEN },
    by: { type: ['string', 'null'] }
  }
}
const HISTORY: RouteDescription = {
  tag: 'extra',
  summary: 'The changes of an entry, newest first.',
  description:
    'With the names of the fields that each set, and with those values that are no secret; ' +
    '`formerPassword` and `formerNotes` give the others. At most 500. `version` counts the ' +
    'changes of this entry from 1; a compaction begins again. Of the time in a group that the ' +
    'caller does not see, `unseen` says that something was changed and when; ' +
    'the change that brought the entry in sight has all fields. One history is read at a time; ' +
    '503 asks to come again. Served where `EXTRA_ROUTES=on` and the journal is in a file.',
  ids: { history: 1, unknown: UNKNOWN_ID },
  answers: {
    history: answered({ history: [[CHANGE], { type: 'array', items: CHANGE_SCHEMA }] }),
    unknown: UNKNOWN,
    busy: BUSY
  }
}
const PASSWORD = formerOf('password', 'The password that one change of an entry set.')
const NOTES = formerOf('notas', 'The notes that one change of an entry set.')

function formerOf(field: 'password' | 'notas', summary: string): RouteDescription {
  return {
    tag: 'extra',
    summary,
    description:
      '`version` is from the history. A version that set none, an unknown one, ' +
      'and one out of sight are answered as an unknown id. Served where `EXTRA_ROUTES=on` and ' +
      'the journal is in a file.',
    ids: { former: 1, unknown: UNKNOWN_ID },
    answers: {
      former: jsonReply(200, { [field]: FIELDS[field].example, status: 200 }),
      unknown: UNKNOWN,
      busy: BUSY
    }
  }
}
