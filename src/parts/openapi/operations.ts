/** What is particular to each operation of the contract: its words, its body, and an example of each answer. */
import type { RouteDescription, Schema } from '../../api/route.ts'

const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
const object = (properties: object): Schema =>
  ({ type: 'object', required: Object.keys(properties), properties, additionalProperties: false })
const text = { type: 'string', minLength: 1 }

const FIELDS = { password: 'S3cr3ta', sistema: 'correo', usuario: 'ana' }
const ENTRY = { id: 1, ...FIELDS, status: 1 }
const LOGIN = { email: 'ana@example.org', password: 'correct horse battery staple' }
const UNKNOWN_ID = 999_999_999
const fieldMessages = (message: string, ...names: readonly string[]): object =>
  Object.fromEntries(names.map(name => [name, [message.replace('{}', name)]]))
const invalid = (errors: object): RouteDescription['answers'][string] =>
  ({ status: 400, body: { message: 'Invalid data', errors, status: 400 }, schema: ref('InvalidData') })
const message = (status: number, message: string): RouteDescription['answers'][string] =>
  ({ status, body: { message, status } })
const unknown = message(404, 'contraseña no encontrada')

/** The named schemas of the description. */
export const SCHEMAS: { readonly [name: string]: Schema } = {
  Entry: object({
    id: { type: 'integer', minimum: 1 }, password: text, sistema: text, usuario: text,
    status: { enum: [0, 1], description: '1 is active, 0 is deleted.' }
  }),
  EntryFields: {
    type: 'object', properties: { password: text, sistema: text, usuario: text },
    required: ['password', 'sistema', 'usuario']
  },
  EntryChanges: { type: 'object', properties: { password: text, sistema: text, usuario: text } },
  InvalidData: object({
    message: { const: 'Invalid data' },
    errors: {
      type: 'object', minProperties: 1, description: 'The messages of each field that is wrong; `body` is the whole.',
      additionalProperties: { type: 'array', minItems: 1, items: { type: 'string' } }
    },
    status: { const: 400 }
  }),
  Message: object({ message: { type: 'string' }, status: { type: 'integer' } }),
  User: object({ id: { type: 'integer', minimum: 1 }, email: { type: 'string', maxLength: 254 }, name: text })
}

/** By the name of the operation. */
export const OPERATIONS: { readonly [operation: string]: RouteDescription } = {
  listPassword: {
    tag: 'entries', summary: 'List the active entries', description: 'All entries with status 1, ascending by id.',
    answers: {
      entries: { status: 200, body: [ENTRY], schema: { type: 'array', minItems: 1, items: ref('Entry') } },
      none: message(404, 'No passwords found')
    }
  },
  getPassword: {
    tag: 'entries', summary: 'Get one entry', description: 'Deleted entries, with status 0, are given too.',
    ids: { found: 1, unknown: UNKNOWN_ID },
    answers: {
      found: {
        status: 200, body: { passwords: ENTRY, status: 200 },
        schema: object({ passwords: ref('Entry'), status: { const: 200 } })
      },
      unknown
    }
  },
  createPassword: {
    tag: 'entries', summary: 'Create an entry', description: 'The entry is active; its id is the next one.',
    body: ref('EntryFields'),
    bodies: { created: FIELDS },
    answers: {
      created: message(200, 'SE CREÓ UNA NUEVA CONTRASEÑA'),
      missing: invalid(fieldMessages('The {} field is required.', 'password', 'sistema', 'usuario')),
      malformed: invalid(fieldMessages('The {} field must be a string.', 'password', 'sistema', 'usuario')),
      storingFailed: message(500, 'Error creating password')
    }
  },
  updatePassword: {
    tag: 'entries', summary: 'Update an entry', description: 'Fields that are not given stay as they are.',
    ids: { updated: 1, unknown: UNKNOWN_ID },
    body: ref('EntryChanges'), isBodyOptional: true,
    bodies: { updated: { password: 'N0va' }, unknown: { password: 'N0va' } },
    answers: {
      updated: {
        status: 200,
        body: { password: { ...ENTRY, password: 'N0va' }, message: 'contraseña actualizada', status: 200 },
        schema: object({
          password: ref('Entry'), message: { const: 'contraseña actualizada' }, status: { const: 200 }
        })
      },
      malformed: invalid(fieldMessages('The {} field must be a string.', 'password', 'sistema', 'usuario')),
      unknown,
      storingFailed: message(500, 'Error updating password')
    }
  },
  deletePassword: {
    tag: 'entries', summary: 'Delete an entry', description: 'Its status becomes 0; it is kept, and no longer listed.',
    ids: { deleted: 1, unknown: UNKNOWN_ID },
    answers: {
      deleted: message(200, 'contraseña borrada'), unknown, storingFailed: message(500, 'Error deleting password')
    }
  },
  login: {
    tag: 'session', summary: 'Log in', description: 'Issues a token for an e-mail address and its password.',
    body: {
      type: 'object', required: ['email', 'password'],
      properties: { email: { type: 'string', maxLength: 254 }, password: { ...text, maxLength: 1024 } }
    },
    bodies: { loggedIn: LOGIN, invalidCredentials: { ...LOGIN, password: 'wrong' } },
    answers: {
      loggedIn: {
        status: 200,
        body: {
          token: 'pes_47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
          user: { id: 1, email: LOGIN.email, name: 'ana' }, status: 200
        },
        schema: object({
          token: { type: 'string', pattern: '^pes_[A-Za-z0-9_-]{43}$' }, user: ref('User'), status: { const: 200 }
        })
      },
      invalidCredentials: message(401, 'Invalid credentials'),
      missing: invalid(fieldMessages('The {} field is required.', 'email', 'password')),
      malformed: invalid({
        email: ['The email field must be a valid email address.'], password: ['The password field must be a string.']
      })
    }
  },
  logout: {
    tag: 'session', summary: 'Log out', description: 'Revokes the token that the request carries.',
    answers: { loggedOut: message(200, 'Logged out successfully') }
  }
}
