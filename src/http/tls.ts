/** HTTPS with a certificate that follows its files. */
import type { Buffer } from 'node:buffer'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Server } from 'node:http'
import { createServer, type ServerOptions } from 'node:https'
import { Failure, systemCode } from '../errors.ts'
import { HEADERS_TIMEOUT_MS, TLS_CHECK_MS } from '../limits.ts'

/** PEM; `cert` is a chain. */
export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

const TLS = { minVersion: 'TLSv1.2', handshakeTimeout: HEADERS_TIMEOUT_MS } as const

/** Throws `certificate-invalid`. A later certificate that is invalid is reported, and the old one stays. */
export function secureServer(
  options: ServerOptions, read: () => Certificate, log?: { info(line: string): void, warn(line: string): void }
): Server {
  let seen = read()
  let fault = ''
  const server = serverWith(options, seen)
  const look = (): void => {
    try {
      const found = read()
      const isSame = found.cert.equals(seen.cert) && found.key.equals(seen.key)
      if (!isSame) {
        seen = found
        assertFit(found)
        server.setSecureContext({ ...found, ...TLS })
        log?.info('the certificate was renewed')
      }
      fault = ''
    } catch (error) {
      // While files are replaced, they do not match for a moment: one report is enough.
      const why = error instanceof Failure ? error.message : systemCode(error)
      if (why !== fault) log?.warn(`the certificate was not renewed, the old one stays: ${why}`)
      fault = why
    }
  }
  let timer: NodeJS.Timeout | undefined
  server.on('listening', () => { timer = setInterval(look, TLS_CHECK_MS).unref() })
  return server.on('close', () => clearInterval(timer))
}

function serverWith(options: ServerOptions, certificate: Certificate): ReturnType<typeof createServer> {
  try {
    assertFit(certificate)
    return createServer({ ...options, ...certificate, ...TLS })
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
