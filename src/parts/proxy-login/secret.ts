import { hash, timingSafeEqual } from 'node:crypto'
import { Failure } from '../../errors.ts'
import { fileFault, type Files } from '../../journal/files.ts'

export const SECRET_HEADER = 'x-proxy-login-secret'
const MIN_SECRET_CHARACTERS = 32
const MAX_SECRET_CHARACTERS = 1024
/** A repeated word, or a placeholder, has fewer. */
const MIN_DIFFERENT_CHARACTERS = 10

/** As a header can carry it. */
const SECRET = new RegExp(`^[!-~]{${MIN_SECRET_CHARACTERS},${MAX_SECRET_CHARACTERS}}$`)

export type Secret = (shown: string) => boolean

/** Gives a comparison in constant time. Throws `setting-invalid`. */
export function secretIn(files: Files, path: string, warn: (line: string) => void): Secret {
  const secret = readSecret(files, path)
  if (!SECRET.test(secret) || new Set(secret).size < MIN_DIFFERENT_CHARACTERS) {
    throw wrong(
      `${path} must be one line of ${MIN_SECRET_CHARACTERS} to ${MAX_SECRET_CHARACTERS} random ` +
        'characters of ASCII without spaces: openssl rand -base64 32'
    )
  }
  const mode = files.stat(path)?.mode ?? 0
  if ((mode & 0o027) !== 0) {
    warn(
      `${path} is open to others (mode ${(mode & 0o7777).toString(8)}): whoever reads it, ` +
        'and sends from an address in TRUST_PROXY, is logged in as anybody'
    )
  }
  const expected = hash('sha256', secret, 'buffer')
  return shown => timingSafeEqual(hash('sha256', shown, 'buffer'), expected)
}

function readSecret(files: Files, path: string): string {
  try {
    return files
      .read(path)
      .toString('latin1')
      .replace(/\r?\n$/, '')
  } catch (error) {
    throw wrong(fileFault(files, error, path), error)
  }
}

function wrong(why: string, cause?: unknown): Failure {
  return new Failure('setting-invalid', `PROXY_LOGIN_SECRET_FILE, ${why}`, { cause })
}
