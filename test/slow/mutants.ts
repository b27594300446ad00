/** Mutants that no test can notice, and why: by source, then by the line as it was and as it is. */

const SAME_BOUND = 'at the bound itself both ways do the same'
const NEVER = 'it guards what nothing else lets happen, so no test comes there'
const TUNING = 'how much is done at a time; nobody sees it but in speed'
const PROGRESS = 'a figure on a terminal while a long start runs'
const NODE_DEFAULT = "Node's own default for the argument is the same, or the text is ASCII"
const SEEN_ALREADY = 'State refuses such a record when it is read; this is the second look'

/** The reasons that `mutate.ts` goes by. */
export const REASONS: { readonly [source: string]: { readonly [mutant: string]: string } } = {
  'http/rate-limit.ts': {
    'if (second - client.second >= WINDOW_SECONDS) { → if (second - client.second > WINDOW_SECONDS) {': SAME_BOUND
  },
  'journal/line.ts': {
    "const ciphertext = cipher.update(JSON.stringify(fact.data), 'utf8') → const ciphertext = cipher.update(JSON.stringify(fact.data), '')":
      NODE_DEFAULT
  },
  'journal/keys.ts': {
    "if (newest === undefined) throw new Error('a keyring needs a key') → if (newest === undefined) throw new Error('')":
      NEVER
  },
  'journal/batch.ts': {
    '#length = 0 → #length = 1': TUNING,
    'return this.records.length < MAX_COMMIT_RECORDS && this.#length < MAX_COMMIT_BYTES → return this.records.length < MAX_COMMIT_RECORDS && this.#length <= MAX_COMMIT_BYTES':
      TUNING,
    "bytes(): Buffer { return Buffer.from(`${this.#lines.join('\\n')}\\n`, 'latin1') } → bytes(): Buffer { return Buffer.from(`${this.#lines.join('\\n')}\\n`, '') }":
      NODE_DEFAULT,
    'if (pool.length < NONCE_BYTES) pool = random(NONCE_BYTES * 256) → if (pool.length < NONCE_BYTES) pool = random(NONCE_BYTES * 257)':
      TUNING
  },
  'journal/recover.ts': {
    'const bytes = Math.min(endBytes, files.facts(path)?.bytes ?? 0) → const bytes = Math.min(endBytes, files.facts(path)?.bytes && 0)':
      PROGRESS,
    'const bytes = Math.min(endBytes, files.facts(path)?.bytes ?? 0) → const bytes = Math.min(endBytes, files.facts(path)?.bytes ?? 1)':
      PROGRESS,
    'let told = 0 → let told = 1': PROGRESS,
    'if (step.value - told > bytes / 100) onProgress((told = step.value) / bytes) → if (!(step.value - told > bytes / 100)) onProgress((told = step.value) / bytes)':
      PROGRESS,
    'if (step.value - told > bytes / 100) onProgress((told = step.value) / bytes) → if (step.value + told > bytes / 100) onProgress((told = step.value) / bytes)':
      PROGRESS,
    'if (step.value - told > bytes / 100) onProgress((told = step.value) / bytes) → if (step.value - told >= bytes / 100) onProgress((told = step.value) / bytes)':
      PROGRESS,
    'if (step.value - told > bytes / 100) onProgress((told = step.value) / bytes) → if (step.value - told > bytes * 100) onProgress((told = step.value) / bytes)':
      PROGRESS,
    'if (step.value - told > bytes / 100) onProgress((told = step.value) / bytes) → if (step.value - told > bytes / 101) onProgress((told = step.value) / bytes)':
      PROGRESS
  },
  'json/lines.ts': {
    'for (let at = 0; at < bytes.length; line++) { → for (let at = 0; at <= bytes.length; line++) {': SAME_BOUND
  },
  'store/accounts.ts': {
    'export const TOKEN: RegExp = /^pes_[A-Za-z0-9_-]{43}$/ → export const TOKEN: RegExp = /(?:)/':
      'it spares hashing what cannot be a token; no other text has the hash of one',
    "if (new Set(users.map(user => user.email)).size !== users.length) throw new Error('two users share an address') → if (new Set(users.map(user => user.email)).size !== users.length) {}":
      SEEN_ALREADY,
    "if (new Set(users.map(user => user.email)).size !== users.length) throw new Error('two users share an address') → if (new Set(users.map(user => user.email)).size !== users.length) throw new Error('')":
      SEEN_ALREADY
  }
}
