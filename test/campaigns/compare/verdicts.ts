/** What a comparison of two builds ends with: how much was compared, what is meant, with its reason, and faults. */
import { readFileSync } from 'node:fs'

const CHANGELOG = new URL('../../../CHANGELOG.md', import.meta.url)
const flowing = (text: string): string => text.replace(/\s+/g, ' ')

export class Verdicts {
  comparisons = 0
  readonly #meant = new Map<string, number>()
  readonly #faults = new Map<string, { count: number }>()

  get faults(): number { return this.#faults.size }

  meant(why: string): void { this.#meant.set(why, (this.#meant.get(why) ?? 0) + 1) }

  hasFault(what: string): boolean { return this.#faults.has(what) }

  /** A new kind of fault is printed at once: a run that is cut off has told it. */
  fault(what: string, example: string): void {
    const known = this.#faults.get(what)
    if (known !== undefined) { known.count++; return }
    this.#faults.set(what, { count: 1 })
    console.log(`\nfault: ${what}\n  ${example}`)
  }

  /** Prints the verdict; the exit code is 1 if there is a fault. */
  end(): void {
    console.log(`\n${this.comparisons} comparisons`)
    for (const [why, times] of this.#meant) console.log(`meant, ${times} times: ${why}`)
    for (const [what, { count }] of this.#faults) console.log(`fault, ${count} times: ${what}`)
    console.log(this.faults === 0 ? 'verdict: every difference is meant' : `verdict: ${this.faults} kinds of fault`)
    process.exitCode = this.faults === 0 ? 0 : 1
  }
}

/** Throws if the section of the coming version lacks one of the sentences under its heading. */
export function assertInChangelog(sentences: readonly { readonly said: string, readonly section: string }[]): void {
  const [, coming = ''] = /^## .*?\n(.*?)^## /ms.exec(readFileSync(CHANGELOG, 'utf8')) ?? []
  const sections = new Map(coming.split(/^### /m).map(text => [text.split('\n', 1)[0]!, flowing(text)]))
  const missing = sentences.filter(({ said, section }) => sections.get(section)?.includes(flowing(said)) !== true)
  if (missing.length > 0) {
    throw new Error(missing.map(({ said, section }) => `CHANGELOG.md, ${section}, does not say: ${said}`).join('\n'))
  }
}
