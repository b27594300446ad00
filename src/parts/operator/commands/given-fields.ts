/** The fields of an entry, from flags, standard input, or a person who is asked. */
import { randomInt } from 'node:crypto'
import { FIELDS, OPEN_FIELDS, type EntryChanges, type EntryField } from '../../../entries/entry.ts'
import { otpIn } from '../../../accounts/totp.ts'
import { UsageError, type Context, type Option } from '../../commands/command.ts'

const BY_FIELD = Object.fromEntries(
  OPEN_FIELDS.map(field => [
    FIELDS[field].flag,
    { value: FIELDS[field].value, help: FIELDS[field].help }
  ])
)

const NOTES = {
  'notes-stdin': { help: 'take notes from standard input; nothing there clears them' }
}
const OTP = {
  'otp': {
    help:
      'ask for the secret of one-time codes: base32 of 16 letters or more, ' +
      'or an otpauth address'
  },
  'otp-stdin': { help: 'take that secret from standard input; nothing there clears it' }
}
export const FIELD_FLAGS: { readonly [flag: string]: Option } = { ...BY_FIELD, ...NOTES, ...OTP }
/** The field that each flag takes from standard input. */
const FROM_INPUT: { readonly [flag: string]: EntryField } = {
  'notes-stdin': 'notas',
  'otp-stdin': 'otp'
}
const NO_OTP = 'it must be a base32 secret or an otpauth address'

export async function givenFields({ flags, terminal }: Context): Promise<EntryChanges> {
  const empty = OPEN_FIELDS.find(
    field => FIELDS[field].isRequired && flags[FIELDS[field].flag] === ''
  )
  if (empty !== undefined) throw new UsageError(`--${FIELDS[empty].flag} is empty`)
  const given = Object.fromEntries(OPEN_FIELDS.map(field => [field, flags[FIELDS[field].flag]]))
  const fromInput = [...Object.keys(FROM_INPUT), 'password-stdin'].filter(
    flag => flags[flag] === true
  )
  if (fromInput.length > 1)
    throw new UsageError(`--${fromInput[0]} and --${fromInput[1]} do not go together`)
  const field = FROM_INPUT[fromInput[0] ?? '']
  return field === undefined
    ? given
    : { ...given, [field]: (await terminal.readText()).replace(/\r?\n$/, '') }
}

/** With `--otp`. `what`: whose secret it is. */
export async function otpOf({ flags, terminal }: Context, what: string): Promise<EntryChanges> {
  if (flags['otp'] !== true || flags['otp-stdin'] === true) return {}
  const fault = (text: string): string | undefined =>
    otpIn(text) === undefined ? NO_OTP : undefined
  const prompt = `secret of the one-time codes of ${what}`
  return {
    otp: await terminal.newSecret(false, { prompt, what: 'secret', flag: '--otp-stdin', fault })
  }
}

export const PASSWORD: { readonly [flag: string]: Option } = {
  'password-stdin': { help: 'take the password from standard input, but for a line end after it' },
  'generate': { help: 'generate a password of 20 characters' }
}
const GENERATED_CHARACTERS = 20
/** Without look-alikes such as l and 1. */
const LETTERS = 'abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789!#$%&*+-=?@_'

/** `what`: whose password it is. */
export async function passwordOf({ flags, terminal }: Context, what: string): Promise<string> {
  const isGiven = flags['password-stdin'] === true
  if (flags['generate'] !== true)
    return terminal.newSecret(isGiven, { prompt: `password of ${what}` })
  if (isGiven)
    throw new UsageError(
      '--generate and --password-stdin do not go together; leave one of them out'
    )
  return generatedPassword()
}

export function generatedPassword(): string {
  return Array.from(
    { length: GENERATED_CHARACTERS },
    () => LETTERS[randomInt(LETTERS.length)]
  ).join('')
}
