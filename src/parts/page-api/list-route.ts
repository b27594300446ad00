import type { Call } from '../../http/router.ts'
import { jsonReply } from '../../http/reply.ts'
import { ENTRY_FIELDS, FIELDS, OPEN_FIELDS } from '../../entries/entry.ts'
import type { ListForm, Listing } from './listing.ts'
import type { Groups } from '../../rights/rights.ts'
import { namesTag, takesCoding } from '../routes/coding.ts'
import { KNOWN_USER } from './knowledge-route.ts'
import { TEXT, type DescribedRoute, type RouteDescription } from '../routes/described-route.ts'
import { isPackable, packer } from './packing.ts'

/** `formOf`: what of the list the caller may see. */
export function listRoute(
  listing: (form: ListForm, groups: Groups) => Promise<Listing>,
  formOf: (call: Call<unknown>) => ListForm
): DescribedRoute {
  const packedOf = packer()
  return {
    operation: 'listEntries',
    method: 'GET',
    path: '/api/listEntries',
    description: LIST,
    handle: async call => {
      const groups = call.session?.groups
      const form = formOf(call)
      const list = await listing(form, groups)
      const { 'accept-encoding': accept, 'if-none-match': known } = call.head
      const takesPacked = isPackable(list) && takesCoding(accept, 'gzip')
      const [plain, coded] = [taggedBy(`"${list.tag}"`), taggedBy(`"${list.tag}-gzip"`)]
      const own = takesPacked ? coded : plain
      if (namesTag(known, own[1]!)) return { status: 304, headers: own }
      const packed = takesPacked
        ? packedOf(list, groups === undefined ? form : 'in sight')
        : undefined
      if (packed === undefined) return { status: 200, body: list.bytes, headers: plain }
      return { status: 200, body: await packed, headers: ['Content-Encoding', 'gzip', ...coded] }
    }
  }
}

function taggedBy(tag: string): readonly string[] {
  return ['ETag', tag, 'Vary', 'Accept-Encoding']
}

export const OPEN: { readonly [field: string]: object } = Object.fromEntries(
  OPEN_FIELDS.map(field => [field, TEXT])
)
const SET = Object.fromEntries(
  ENTRY_FIELDS.filter(field => FIELDS[field].isSecret && !FIELDS[field].isRequired).map(field => [
    field,
    { const: true }
  ])
)

const LIST: RouteDescription = {
  tag: 'extra',
  summary: 'The active entries without their secrets.',
  description:
    'An empty array if there is none. `changed` is when the password was last set, ' +
    'if that is known. For callers who may also list the passwords, `reused` says how many ' +
    'other entries have the same one. For callers who may ask who knows a password, ' +
    '`exposed` says how many know this one who may not be told it any more, ' +
    'and `exposedTo` who the first five are; before `unrecordedBefore`, others may have read ' +
    'it. `notas` and `otp` are true if they are set. With `If-None-Match`, ' +
    '304 if nothing has changed. Served if `EXTRA_ROUTES=on`, or with a page.',
  answers: {
    entries: {
      ...jsonReply(
        200,
        [{ id: 1, sistema: 'correo', usuario: 'ana', status: 1 }],
        ['ETag', '"tag"']
      ),
      schema: {
        type: 'array',
        items: {
          type: 'object',
          required: ['id', 'sistema', 'usuario', 'status'],
          properties: {
            id: { type: 'integer', minimum: 1 },
            ...OPEN,
            status: { const: 1 },
            changed: TEXT,
            reused: { type: 'integer', minimum: 1 },
            exposed: { type: 'integer', minimum: 1 },
            exposedTo: { type: 'array', items: KNOWN_USER },
            unrecordedBefore: TEXT,
            ...SET
          }
        }
      }
    }
  }
}
