/** Mutants that no test can notice, and why: by source, then by the line as it was and as it is. */

const SAME_BOUND = 'at the bound itself both ways do the same'
const TO_A_BYTE = 'how much is done at a time; to a byte, nobody can tell'
const ASCII_ALIKE = 'ASCII reads the same as latin1 and as UTF-8; only the speed differs'
const NO_SUCH_BITS = 'a character beyond ASCII has a byte of 0xc2 or more, so the bits are never just 0x80'

/** The reasons that `mutate.ts` goes by. */
export const REASONS: { readonly [source: string]: { readonly [mutant: string]: string } } = {
  'http/rate-limit.ts': {
    'if (second - client.second >= WINDOW_SECONDS) { → if (second - client.second > WINDOW_SECONDS) {': SAME_BOUND
  },
  'journal/recover.ts': {
    'const bytes = Math.min(endBytes, files.stat(path)?.bytes ?? 0) → const bytes = Math.min(endBytes, files.stat(path)?.bytes ?? 1)':
      'a file that is not there is told by the very next line, before anybody asks how long it is'
  },
  'journal/files.ts': {
    'disk.syncFolder(parent) → {}': 'whether a name is durable shows only where the power fails'
  },
  'journal/rewrite.ts': {
    'if (text.length > REWRITE_SLICE_BYTES) flush() → if (text.length >= REWRITE_SLICE_BYTES) flush()': TO_A_BYTE,
    'if (step.value < sliceEnd) continue → if (step.value <= sliceEnd) continue': TO_A_BYTE
  },
  'json/parse.ts': {
    'let bits = 0 // every byte since `start`, ORed: below 0x80, they are all ASCII → let bits = 1 // every byte since `start`, ORed: below 0x80, they are all ASCII':
      ASCII_ALIKE,
    "text += bytes.toString(bits < 0x80 ? 'latin1' : 'utf8', start, this.#at) → text += bytes.toString(bits <= 0x80 ? 'latin1' : 'utf8', start, this.#at)":
      NO_SUCH_BITS,
    "text += bytes.toString(bits < 0x80 ? 'latin1' : 'utf8', start, this.#at) → text += bytes.toString(bits < 129 ? 'latin1' : 'utf8', start, this.#at)":
      NO_SUCH_BITS,
    'bits = 0 → {}': ASCII_ALIKE,
    'bits = 0 → bits = 1': ASCII_ALIKE,
    'let unit = 0 → let unit = 1': 'four digits push it out of the 16 bits that String.fromCharCode takes',
    'return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1 → return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -2':
      'whoever asks wants to know only whether it is negative',
    'function hexValue(byte = 0): number { → function hexValue(byte = 1): number {': 'neither is a digit',
    'for (let i = 0; i < lineStart; i++) if (bytes[i] === LINE_FEED) line++ → for (let i = 0; i <= lineStart; i++) if (bytes[i] === LINE_FEED) line++':
      'between tokens a line end is white space, so none that begins a line is ever the fault'
  },
  'json/lines.ts': {
    'for (let at = 0; at < bytes.length; line++) { → for (let at = 0; at <= bytes.length; line++) {': SAME_BOUND
  },
  'store/accounts.ts': {
    'export const TOKEN: RegExp = /^pes_[A-Za-z0-9_-]{43}$/ → export const TOKEN: RegExp = /(?:)/':
      'it spares hashing what cannot be a token; no other text has the hash of one'
  }
}
