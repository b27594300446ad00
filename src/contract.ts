/** The contract's words. Texts that it leaves open are beside their code, but for two. */

/** The operations with their default abilities (contract §1, §5.6). */
export const OPERATIONS = {
  listPassword: 'password:read',
  getPassword: 'password:read',
  createPassword: 'password:create',
  updatePassword: 'password:update',
  deletePassword: 'password:delete'
} as const

/**
 * What users may do about themselves: with any token of a login, unless `ABILITIES` asks for an
 * ability.
 */
export const OWN_OPERATIONS: { readonly [operation: string]: undefined } = {
  changeOwnPassword: undefined,
  ownSessions: undefined,
  endOwnSessions: undefined
}

/** The messages, word for word (contract §4.1, §4.2, §4.3, §4.4, §4.5, §5.3, §5.4, §7, §8.2). */
export const TEXTS = {
  noneActive: 'No passwords found',
  unknownId: 'contraseña no encontrada',
  created: 'SE CREÓ UNA NUEVA CONTRASEÑA',
  updated: 'contraseña actualizada',
  deleted: 'contraseña borrada',
  createFailed: 'Error creating password',
  /** The contract has no 500 for these two. */
  updateFailed: 'Error updating password',
  deleteFailed: 'Error deleting password',
  invalid: 'Invalid data',
  invalidCredentials: 'Invalid credentials',
  loggedOut: 'Logged out successfully',
  tooMany: 'Too Many Requests'
} as const

/** The message of a missing field (contract §4.3). */
export function requiredText(field: string): string {
  return `The ${field} field is required.`
}
