/** One pattern of several that follow each other, with the flags of the last: for what is longer than a line. */
export function joined(...patterns: readonly RegExp[]): RegExp {
  return new RegExp(patterns.map(({ source }) => source).join(''), patterns.at(-1)!.flags)
}
