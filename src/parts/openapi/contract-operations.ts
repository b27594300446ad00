import { UNKNOWN } from '../../entries/entry-routes.ts'
import { TEXTS } from '../../contract.ts'
import { FORBIDDEN, invalidReply, jsonReply, messageReply, type Reply } from '../../http/reply.ts'
import {
  PASSWORD_CHANGED,
  SAME_PASSWORD,
  SESSIONS_ENDED,
  UNKNOWN_SESSION,
  WRONG_PASSWORD
} from '../../accounts/login-routes.ts'
import { MAX_CODE_LENGTH } from '../../limits.ts'
import { ANSWERED_FIELDS, ENTRY_FIELDS, FIELDS, type EntryField } from '../../entries/entry.ts'
import {
  answered,
  EXAMPLE,
  object,
  UNKNOWN_ID,
  type RouteDescription,
  type Schema
} from '../routes/described-route.ts'

const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
/** For requests, of which the service ignores unknown fields. Answers may get more fields. */
const closed = (schema: Schema): Schema => ({ ...schema, additionalProperties: false })
const text = { type: 'string', minLength: 1 }
const id = { type: 'integer', minimum: 1 }
const email = { type: 'string', maxLength: 254 }
const STRINGS = Object.fromEntries(ANSWERED_FIELDS.map(field => [field, text]))
/** Empty or null clears an optional field. */
const GIVEN = Object.fromEntries(
  ENTRY_FIELDS.map(field => [field, FIELDS[field].isRequired ? text : optionalText(FIELDS[field])])
)

function optionalText({ help, pattern }: (typeof FIELDS)[EntryField]): Schema {
  return { type: ['string', 'null'], description: help, ...(pattern !== undefined && { pattern }) }
}

const required = ENTRY_FIELDS.filter(field => FIELDS[field].isRequired)

/** Examples with the fields of a schema refer to it, except for `Message`. */
export const SCHEMAS: { readonly [name: string]: Schema } = {
  Entry: {
    ...object({
      id,
      ...STRINGS,
      status: { enum: [0, 1], description: '1 is active, 0 is deleted.' }
    }),
    required: ['id', ...required, 'status']
  },
  EntryFields: closed({ ...object(GIVEN), required }),
  EntryChanges: closed({ type: 'object', properties: GIVEN }),
  InvalidData: object({
    message: { const: TEXTS.invalid },
    errors: {
      type: 'object',
      minProperties: 1,
      description: 'The messages of each field that is wrong; `body` is the whole.',
      additionalProperties: { type: 'array', minItems: 1, items: { type: 'string' } }
    },
    status: { const: 400 }
  }),
  Message: object({ message: { type: 'string' }, status: { type: 'integer' } }),
  User: {
    ...object({
      id,
      email,
      name: text,
      abilities: { type: 'array', items: text },
      groups: { type: 'array', items: text, description: 'Absent: all of them.' },
      secondFactor: { type: 'boolean' },
      hasPassword: { type: 'boolean', description: 'False: only others log the user in.' },
      firstPassword: {
        const: true,
        description: 'The operator’s program made the password. Absent once it was changed.'
      }
    }),
    required: ['id', 'email', 'name', 'abilities', 'secondFactor', 'hasPassword']
  }
}

const ENTRY = { id: 1, ...EXAMPLE, status: 1 }
const CHANGE = { password: 'N0va' }
const LOGIN = { email: 'ana@example.org', password: 'correct horse battery staple' }
const SESSION = {
  id: '1f0c9e3a77b2',
  name: 'login',
  issued: '2026-01-31T12:00:00.000Z',
  current: true
}
const TAG = ['ETag', '"1"']

const each = (fault: string, ...fields: readonly string[]): Reply =>
  invalidReply(Object.fromEntries(fields.map(field => [field, [`The ${field} field ${fault}.`]])))
const malformed = each('must be a string', ...ENTRY_FIELDS)

export const DESCRIPTIONS: { readonly [operation: string]: RouteDescription } = {
  listPassword: {
    tag: 'entries',
    summary: 'List the active entries',
    description: 'All entries with status 1, ascending by id.',
    answers: {
      entries: {
        ...jsonReply(200, [ENTRY]),
        schema: { type: 'array', minItems: 1, items: ref('Entry') }
      },
      none: messageReply(404, TEXTS.noneActive)
    }
  },
  getPassword: {
    tag: 'entries',
    summary: 'Get one entry',
    description: 'Deleted entries, with status 0, are given too.',
    ids: { found: 1, unknown: UNKNOWN_ID },
    answers: { found: jsonReply(200, { passwords: ENTRY, status: 200 }, TAG), unknown: UNKNOWN }
  },
  createPassword: {
    tag: 'entries',
    summary: 'Create an entry',
    description:
      'The entry is active; its id is the next one. Who has one group creates in that one; ' +
      'who has several names one of them in `grupo`.',
    body: ref('EntryFields'),
    bodies: { created: EXAMPLE },
    answers: {
      created: messageReply(200, TEXTS.created, ['Location', '/api/getPassword/1']),
      missing: each('is required', ...required),
      malformed
    }
  },
  updatePassword: {
    tag: 'entries',
    summary: 'Update an entry',
    description:
      'Fields that are not given stay as they are. Another `grupo` takes the ability ' +
      'to delete, too.',
    ids: { updated: 1, unknown: UNKNOWN_ID },
    honoursIfMatch: true,
    body: ref('EntryChanges'),
    isBodyOptional: true,
    bodies: { updated: CHANGE, unknown: CHANGE },
    answers: {
      updated: jsonReply(
        200,
        { password: { ...ENTRY, ...CHANGE }, message: TEXTS.updated, status: 200 },
        TAG
      ),
      malformed,
      unknown: UNKNOWN
    }
  },
  deletePassword: {
    tag: 'entries',
    summary: 'Delete an entry',
    description: 'Its status becomes 0; it is kept, and no longer listed.',
    ids: { deleted: 1, unknown: UNKNOWN_ID },
    honoursIfMatch: true,
    answers: { deleted: messageReply(200, TEXTS.deleted), unknown: UNKNOWN }
  },
  login: {
    tag: 'session',
    summary: 'Log in',
    description: 'Issues a token for an e-mail address and its password.',
    body: closed({
      ...object({ email, password: { ...text, maxLength: 1024 } }),
      properties: {
        email,
        password: { ...text, maxLength: 1024 },
        code: {
          ...text,
          maxLength: MAX_CODE_LENGTH,
          description: 'Of the second factor, if the user has one.'
        }
      }
    }),
    bodies: { loggedIn: LOGIN, invalidCredentials: { ...LOGIN, password: 'wrong' } },
    answers: {
      loggedIn: answered({
        token: ['pes_47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU', text],
        user: [
          {
            id: 1,
            email: LOGIN.email,
            name: 'ana',
            abilities: ['*'],
            secondFactor: false,
            hasPassword: true
          },
          ref('User')
        ],
        expires: [
          null,
          {
            type: ['string', 'null'],
            description: 'When the token ends; null: when it is revoked.'
          }
        ]
      }),
      invalidCredentials: messageReply(401, TEXTS.invalidCredentials),
      missing: each('is required', 'email', 'password'),
      malformed: invalidReply({
        email: ['The email field must be a valid email address.'],
        password: ['The password field must be a string.']
      })
    }
  },
  logout: {
    tag: 'session',
    summary: 'Log out',
    description: 'Revokes the token that the request carries.',
    answers: { loggedOut: messageReply(200, TEXTS.loggedOut) }
  },
  changeOwnPassword: {
    tag: 'session',
    summary: 'Change the password of the user whose token it is',
    description: 'With a token of a login. All tokens of the user end.',
    body: closed(
      object({
        password: { ...text, maxLength: 1024 },
        newPassword: { ...text, maxLength: 1024 }
      })
    ),
    bodies: { changed: { password: LOGIN.password, newPassword: 'battery staple horse correct' } },
    answers: {
      forbidden: FORBIDDEN,
      wrong: WRONG_PASSWORD,
      same: SAME_PASSWORD,
      missing: each('is required', 'password', 'newPassword'),
      malformed: each('must be a string', 'password', 'newPassword'),
      changed: PASSWORD_CHANGED
    }
  },
  ownSessions: {
    tag: 'session',
    summary: 'List the tokens of the user whose token it is',
    description:
      'With a token of a login. `name` is `login`, or the name that the operator gave the token.',
    answers: {
      sessions: answered({
        sessions: [
          [SESSION],
          {
            type: 'array',
            items: object({ id: text, name: text, issued: text, current: { type: 'boolean' } })
          }
        ]
      }),
      forbidden: FORBIDDEN
    }
  },
  endOwnSessions: {
    tag: 'session',
    summary: 'End tokens of the user whose token it is',
    description:
      'With a token of a login. `session` is an id of `ownSessions`, or `others`: ' +
      'all logins before this one.',
    body: closed(object({ session: text })),
    bodies: { ended: { session: 'others' }, unknownSession: { session: 'none' } },
    answers: {
      ended: SESSIONS_ENDED,
      unknownSession: UNKNOWN_SESSION,
      forbidden: FORBIDDEN,
      missing: each('is required', 'session'),
      malformed: each('must be a string', 'session')
    }
  },
  openapi: {
    tag: 'service',
    summary: 'Describe the interface',
    description: 'This description.',
    answers: {
      description: { ...jsonReply(200, { openapi: '3.1.0' }), schema: object({ openapi: text }) }
    }
  }
}
