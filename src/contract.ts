/** The contract's operations (§4), and the ability that each asks for unless `ABILITIES` says otherwise (§5.6). */
export const OPERATIONS = {
  listPassword: 'password:read',
  getPassword: 'password:read',
  createPassword: 'password:create',
  updatePassword: 'password:update',
  deletePassword: 'password:delete'
} as const
