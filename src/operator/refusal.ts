/** How a command of the operator's program ends when it does not do what was asked. */

/** Ends a command: something asked for does not exist, or cannot be done. The program's exit code is 1. */
export class Refusal extends Error {}

/** Ends a command: it was called in a wrong way. The program's exit code is 2. */
export class Misuse extends Error {}
