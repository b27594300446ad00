/** Code that no measured test runs, and why: by source, then by the first line of it as JavaScript. */
export const REASONS: { readonly [source: string]: { readonly [line: string]: string } } = {
}
