/** Mutants that no test can notice, and why: by source, then by the line as it was and as it is. */

/** The reasons that `mutate.ts` goes by. */
export const REASONS: { readonly [source: string]: { readonly [mutant: string]: string } } = {
}
