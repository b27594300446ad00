import {
  ENTRY_FIELDS,
  FIELDS,
  type Check,
  type EntryChanges,
  type EntryField,
  type EntryFields
} from './entry.ts'
import { GROUP_RULE, groupName } from '../rights/groups.ts'
import { invalid } from '../rights/rights.ts'
import { newOtpIn, otpIn, type Otp } from '../accounts/totp.ts'
import { also, clearable, optional, text, texts, type Rule } from '../rights/validate.ts'

const CHECKS: { readonly [C in Check]: Rule<string | undefined> } = {
  group: also(clearable, (field, value) =>
    !value || groupName(value) !== undefined
      ? undefined
      : `The ${field} field must be a name of ${GROUP_RULE}.`
  ),
  otp: otpRule(newOtpIn)
}

function otpRule(read: (text: string) => Otp | undefined): Rule<string | undefined> {
  return also(clearable, (field, value) =>
    !value || read(value) !== undefined
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

/** For entries of versions before 1.1.0, which took shorter secrets of one-time codes. */
export const FORMER_SHAPE: typeof CREATE_SHAPE = { ...CREATE_SHAPE, otp: otpRule(otpIn) }

/**
 * The fields of a change (contract §4.4). A change may repeat what the entry has; whether new
 * values may be set is judged in its turn.
 */
export const UPDATE_SHAPE = Object.fromEntries(
  ENTRY_FIELDS.map(field => [field, optional(FORMER_SHAPE[field])])
) as { readonly [F in EntryField]-?: Rule<string | undefined> }

/** Throws `input-invalid` for a secret of one-time codes that an entry may keep, but not get. */
export function assertSettable({ otp }: EntryChanges): void {
  const fault = CREATE_SHAPE.otp.fault('otp', otp ?? '')
  if (fault !== undefined) throw invalid('otp', fault)
}

/** Null: all groups. */
export const groupList: Rule<readonly string[] | null> = {
  ...texts,
  cleared: null,
  fault: (field, value) => {
    if (value === null) return undefined
    if (texts.fault(field, value) !== undefined) return texts.fault(field, value)
    return (value as readonly string[]).every(name => groupName(name) !== undefined)
      ? undefined
      : `Each name in the ${field} field must have ${GROUP_RULE}.`
  }
}
