/** What the person may do here: what the service serves, and what their account allows of it. */

/** The operations that an account may or may not allow. */
export type Operation = 'listPassword' | 'getPassword' | 'createPassword' | 'updatePassword' | 'deletePassword' |
  'deletedPasswords' | 'restorePassword' | 'historyPassword' | 'changeOwnPassword'

/** The ability that includes all others. */
const ANY = '*'
/** What is served for certain; the rest the service says. */
const CONTRACT: readonly Operation[] =
  ['listPassword', 'getPassword', 'createPassword', 'updatePassword', 'deletePassword']

export class Rights {
  /** The operations that are served, and the ability that each asks for; null where any account will do. */
  readonly #served = new Map<string, string | null>(CONTRACT.map(operation => [operation, null]))
  /** What the account allows; undefined without one, and where the service does not say: asking tells. */
  #abilities: readonly string[] | undefined
  readonly #denied = new Set<Operation>()

  /** The service has said what it serves. */
  serve(operations: ReadonlyMap<string, string | null>): void {
    for (const [operation, ability] of operations) this.#served.set(operation, ability)
  }

  /** Whether the service has an operation. */
  has(operation: string): boolean { return this.#served.has(operation) }

  /** A session begins, or ends: the abilities of its account. */
  begin(abilities?: readonly string[]): void {
    this.#abilities = abilities
    this.#denied.clear()
  }

  /** An operation was refused, as where the abilities were changed meanwhile. */
  deny(operation: Operation): void { this.#denied.add(operation) }

  /** Whether an operation is offered. */
  may(operation: Operation): boolean {
    const asked = this.#served.get(operation)
    if (asked === undefined || this.#denied.has(operation)) return false
    return asked === null || this.#abilities === undefined || this.#abilities.includes(asked) ||
      this.#abilities.includes(ANY)
  }
}
