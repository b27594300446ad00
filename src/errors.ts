/** Every expected failure. Any other error is a broken invariant; clients see a bare 500. */
const SENTENCES = {
  'setting-invalid': 'a setting is not valid',
  'folder-unusable': 'the data folder cannot be used',
  'folder-held': 'the lock of the data folder cannot be had',
  'key-missing': 'the key file of the journal does not exist',
  'key-invalid': 'the key file is not valid',
  'key-unwritable': 'the key file cannot be changed',
  'key-unknown': 'a key of the journal is missing',
  'journal-damaged': 'the journal is damaged',
  'journal-newer': 'the journal was written by a newer version',
  'journal-closed': 'the journal is closed',
  'journal-failed': 'the journal takes no more writes',
  'journal-missing': 'there is no journal',
  'journal-unreachable': 'the journal cannot be reached',
  'journal-behind': 'not all records of the journal are read yet',
  'journal-refused': 'the journal refused the request',
  'write-failed': 'the journal could not be written',
  'input-invalid': 'the input is not valid',
  'entry-too-large': 'the entry would be too large, and nothing was changed',
  'entry-changed': 'the entry has changed since it was read, and nothing was done',
  'move-forbidden':
    'to move an entry to another group takes the ability to delete, too, and nothing was changed',
  'user-unknown': 'no user has this address',
  'forbidden': 'the user has not the ability for this, and nothing was done',
  'operation-missing': 'this service does not have the operation',
  'request-foreign': 'the request is not one of node:http',
  'queue-full': 'too many changes wait for the journal',
  'journal-busy': 'the journal was busy for too long, and the change was withdrawn',
  'reads-recorded':
    'this journal says that reads are recorded, and without tokens nobody can be named',
  'hashes-busy': 'too many passwords wait to be checked',
  'session-changed':
    'the token has ended, or may do less, since the request came, and nothing was changed',
  'certificate-invalid': 'the certificate or its key is not valid',
  'page-unusable': 'the page cannot be read',
  'route-invalid': 'a route cannot be served',
  'address-unusable': 'the address cannot be listened on'
} as const

/** Messages by field. */
export type FieldErrors = { readonly [field: string]: readonly string[] }

/** The name of an expected failure. */
export type FailureCode = keyof typeof SENTENCES

/** `code` is for programs, the message for the operator. */
export class Failure extends Error {
  readonly code: FailureCode
  /** Of `input-invalid`. */
  readonly errors: FieldErrors | undefined
  readonly detail: string

  /** `detail` must hold no secret. */
  constructor(
    code: FailureCode,
    detail: string,
    options: ErrorOptions & { readonly errors?: FieldErrors } = {}
  ) {
    super(`${SENTENCES[code]}: ${detail}`, options)
    this.name = 'Failure'
    this.code = code
    this.errors = options.errors
    this.detail = detail
  }
}

/** Linux error numbers that Node cannot name. */
const UNNAMED: { readonly [errno: number]: string } = { [-122]: 'EDQUOT', [-116]: 'ESTALE' }

/** The system's code (`ENOSPC`, …), or the error's text. */
export function systemCode(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { errno = 0, code, message } = error as NodeJS.ErrnoException
  return UNNAMED[errno] ?? code ?? message
}
