/** HTTPS with a certificate that follows its files. */
import type { Buffer } from 'node:buffer'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Server } from 'node:http'
import { createServer, type ServerOptions } from 'node:https'
import { Failure, systemCode } from '../errors.ts'
import type { Files } from '../journal/files.ts'
import { HEADERS_TIMEOUT_MS, TLS_CHECK_MS } from '../limits.ts'

/** PEM; `cert` is a chain. */
export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

const TLS = { minVersion: 'TLSv1.2', handshakeTimeout: HEADERS_TIMEOUT_MS } as const

/** Throws `certificate-invalid`. */
export function createSecure(
  options: ServerOptions, certificate: Certificate
): { readonly server: Server, readonly renew: (certificate: Certificate) => void } {
  try {
    assertFit(certificate)
    const server = createServer({ ...options, ...certificate, ...TLS })
    const renew = (renewed: Certificate): void => {
      assertFit(renewed)
      server.setSecureContext({ ...renewed, ...TLS })
    }
    return { server, renew }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('certificate-invalid', `TLS_CERT or TLS_KEY: ${systemCode(error)}`, { cause: error })
  }
}

/** OpenSSL compares only keys of one kind, such as RSA; otherwise each handshake would fail. */
function assertFit({ cert, key }: Certificate): void {
  if (/^(-----BEGIN ENCRYPTED|Proc-Type: 4,ENCRYPTED)/m.test(key.toString('latin1'))) {
    const way = 'give one without: openssl pkey -in KEY -out NEW'
    throw new Failure('certificate-invalid', `TLS_KEY: this key has a passphrase; ${way}`)
  }
  if (new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) return
  throw new Failure('certificate-invalid', 'TLS_CERT or TLS_KEY: the two do not belong together')
}

export interface FollowedCertificate {
  /** Throws `certificate-invalid`. */
  read(): Certificate
  /** Called on changes. If `renew` throws, the old certificate stays. */
  follow(renew: (certificate: Certificate) => void): void
  close(): void
}

/** Reads PEM files; throws `certificate-invalid`. */
export function followCertificate(
  files: Files, certFile: string, keyFile: string,
  log: { info(line: string): void, warn(line: string): void }
): FollowedCertificate {
  const readFile = (path: string): Buffer => {
    try {
      return files.read(path)
    } catch (error) {
      throw new Failure('certificate-invalid', `${path}: ${systemCode(error)}`, { cause: error })
    }
  }
  const readBoth = (): Certificate => ({ cert: readFile(certFile), key: readFile(keyFile) })
  let seen = readBoth()
  let fault = ''
  let timer: NodeJS.Timeout | undefined
  const look = (renew: (certificate: Certificate) => void): void => {
    try {
      const found = readBoth()
      const isSame = found.cert.equals(seen.cert) && found.key.equals(seen.key)
      if (!isSame) {
        seen = found
        renew(found)
        log.info('the certificate was renewed')
      }
      fault = ''
    } catch (error) {
      // While files are replaced, they do not match for a moment: one report is enough.
      const why = error instanceof Failure ? error.message : systemCode(error)
      if (why !== fault) log.warn(`the certificate was not renewed, the old one stays: ${why}`)
      fault = why
    }
  }
  return {
    read: () => seen = readBoth(),
    follow: renew => { timer = setInterval(look, TLS_CHECK_MS, renew).unref() },
    close: () => clearInterval(timer)
  }
}
