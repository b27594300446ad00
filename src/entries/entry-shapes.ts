/** What clients give for entries and groups, and the rules for it. */
import { MAX_GROUP_CHARACTERS } from '../limits.ts'
import { ENTRY_FIELDS, FIELDS, type Check, type EntryField, type EntryFields } from './entry.ts'
import { groupName } from '../rights/groups.ts'
import { otpIn } from '../accounts/totp.ts'
import { also, clearable, optional, text, texts, type Rule } from '../rights/validate.ts'

const NAME = `1 to ${MAX_GROUP_CHARACTERS} characters on one line, without commas, @, * and invisible characters`

const CHECKS: { readonly [C in Check]: Rule<string | undefined> } = {
  group: also(clearable, (field, value) =>
    !value || groupName(value) !== undefined
      ? undefined
      : `The ${field} field must be a name of ${NAME}.`
  ),
  otp: also(clearable, (field, value) =>
    !value || otpIn(value) !== undefined
      ? undefined
      : `The ${field} field must be a base32 secret or an otpauth address.`
  )
}

function ruleOf(field: EntryField): Rule<string | undefined> {
  const { check, isRequired } = FIELDS[field]
  if (check !== undefined) return CHECKS[check]
  return isRequired ? text : clearable
}

/** The fields of a new entry (contract §4.3). */
export const CREATE_SHAPE = Object.fromEntries(
  ENTRY_FIELDS.map(field => [field, ruleOf(field)])
) as { readonly [F in EntryField]-?: Rule<EntryFields[F]> }

/** The fields of a change (contract §4.4). */
export const UPDATE_SHAPE = Object.fromEntries(
  ENTRY_FIELDS.map(field => [field, optional(CREATE_SHAPE[field])])
) as { readonly [F in EntryField]-?: Rule<string | undefined> }

/** Names of groups; null for all. */
export const groupList: Rule<readonly string[] | null> = {
  ...texts,
  cleared: null,
  fault: (field, value) => {
    if (value === null) return undefined
    if (texts.fault(field, value) !== undefined) return texts.fault(field, value)
    return (value as readonly string[]).every(name => groupName(name) !== undefined)
      ? undefined
      : `Each name in the ${field} field must have ${NAME}.`
  }
}
