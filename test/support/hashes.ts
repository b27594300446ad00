/**
 * What a password's hash costs in this process: next to nothing, since the full cost is a quarter of a second of a core
 * for each login, and proves nothing more. `store/passwords` holds it, and programs that tests start have it.
 */
import { SCRYPT_COST } from '../../src/limits.ts'
import type { ScryptCost } from '../../src/accounts/passwords.ts'
import type { Scope } from './service.ts'

/** The least that scrypt takes within the memory that the hasher grants it: a fraction of a millisecond. */
export const CHEAP: ScryptCost = { ln: 4, r: 1, p: 1 }

const FULL: ScryptCost = { ...SCRYPT_COST }
Object.assign(SCRYPT_COST, CHEAP)

/** Until the test ends hashes cost what they cost users. */
export function hashAtFullCost(t: Scope): void {
  Object.assign(SCRYPT_COST, FULL)
  t.after(() => { Object.assign(SCRYPT_COST, CHEAP) })
}
