/** The files of the HTTPS certificate: read at the start, looked at every now and then, renewed when they change. */
import { Failure, systemCode } from './errors.ts'
import type { Certificate } from './http/listener.ts'
import type { Files } from './journal/files.ts'
import { TLS_CHECK_MS } from './limits.ts'

/** A certificate that follows its files. */
interface FollowedCertificate {
  readonly current: Certificate
  /** Says who uses it; what throws there is reported, and the old certificate stays. */
  onChange(renew: (certificate: Certificate) => void): void
  close(): void
}

/** Reads the two files, PEM; throws `certificate-invalid` when that fails. */
export function openCertificate(
  files: Files, certFile: string, keyFile: string,
  log: { info(line: string): void, warn(line: string): void }
): FollowedCertificate {
  const read = (): Certificate => {
    try {
      return { cert: files.read(certFile), key: files.read(keyFile) }
    } catch (error) {
      throw new Failure('certificate-invalid', `${certFile}, ${keyFile}: ${systemCode(error)}`, { cause: error })
    }
  }
  const current = read()
  let seen = current
  let renew = (_certificate: Certificate): void => {}
  let fault = ''
  const look = (): void => {
    try {
      const found = read()
      const isSame = found.cert.equals(seen.cert) && found.key.equals(seen.key)
      if (!isSame) {
        seen = found
        renew(found)
        log.info('the certificate was renewed')
      }
      fault = ''
    } catch (error) {
      // Said once: two files that change one after the other pass through states that do not fit together.
      const why = systemCode(error)
      if (why !== fault) log.warn(`the certificate was not renewed, the old one stays: ${why}`)
      fault = why
    }
  }
  const timer = setInterval(look, TLS_CHECK_MS).unref()
  return { current, onChange: use => { renew = use }, close: () => clearInterval(timer) }
}
