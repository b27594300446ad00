/** HTTPS with a certificate that is read again when its files change. */
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

/** Only with authenticated encryption and forward secrecy. */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305'
]
const TLS = {
  minVersion: 'TLSv1.2',
  ciphers: CIPHERS.join(':'),
  handshakeTimeout: HEADERS_TIMEOUT_MS
} as const

/**
 * Throws `certificate-invalid`. If a later certificate is invalid, it warns, and the old one stays.
 */
export function secureServer(
  options: ServerOptions,
  read: () => Certificate,
  log?: { info(line: string): void; warn(line: string): void }
): Server {
  let seen = read()
  let fault = ''
  const server = serverWith(options, seen)
  const warnOfEnd = (): void => {
    const end = new Date(endOf(seen.cert))
    if (end.getTime() <= Date.now())
      log?.warn(`the certificate in TLS_CERT has ended on ${end.toISOString()}`)
  }
  warnOfEnd()
  const look = (): void => {
    try {
      const found = read()
      const isSame = found.cert.equals(seen.cert) && found.key.equals(seen.key)
      if (!isSame) {
        seen = found
        assertFit(found)
        server.setSecureContext({ ...found, ...TLS })
        log?.info('the certificate was renewed')
        warnOfEnd()
      }
      fault = ''
    } catch (error) {
      // While files are being replaced, they do not match for a moment: one warning is enough.
      const why = error instanceof Failure ? error.message : systemCode(error)
      if (why !== fault) log?.warn(`the certificate was not renewed, the old one stays: ${why}`)
      fault = why
    }
  }
  let timer: NodeJS.Timeout | undefined
  server.on('listening', () => {
    timer = setInterval(look, TLS_CHECK_MS).unref()
  })
  return server.on('close', () => clearInterval(timer))
}

function serverWith(
  options: ServerOptions,
  certificate: Certificate
): ReturnType<typeof createServer> {
  try {
    assertFit(certificate)
    return createServer({ ...options, ...certificate, ...TLS })
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('certificate-invalid', `TLS_CERT or TLS_KEY: ${systemCode(error)}`, {
      cause: error
    })
  }
}

/** In milliseconds since 1970. Throws if it is no certificate. */
export function endOf(cert: Buffer): number {
  return Date.parse(new X509Certificate(cert).validTo)
}

function assertFit({ cert, key }: Certificate): void {
  const certificate = parsed('TLS_CERT', () => new X509Certificate(cert))
  const privateKey = parsed('TLS_KEY', () => createPrivateKey(key))
  // OpenSSL compares only keys of one kind, such as RSA. Keys of two kinds would fail at each
  // handshake.
  if (certificate.checkPrivateKey(privateKey)) return
  throw new Failure('certificate-invalid', 'TLS_CERT or TLS_KEY: the two do not belong together')
}

function parsed<T>(setting: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw new Failure('certificate-invalid', `${setting}: ${(error as Error).message}`, {
      cause: error
    })
  }
}
