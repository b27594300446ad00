/** Self-signed certificates of a test's own (RFC 5280 in DER, X.690), so that none lies in the repository to expire. */
import { Buffer } from 'node:buffer'
import { createPublicKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Pem {
  readonly cert: string
  readonly key: string
}

const SEQUENCE = 0x30
const ECDSA_WITH_SHA256 = '06082a8648ce3d040302'
const COMMON_NAME = '0603550403'
const SUBJECT_ALT_NAME = '0603551d11'

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length: n } = content
  const length = n < 0x80 ? [n] : n < 0x100 ? [0x81, n] : [0x82, n >> 8, n & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

const hex = (text: string): Buffer => Buffer.from(text, 'hex')

export function certificateKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
}

/**
 * A certificate for `localhost` and 127.0.0.1, with a name that tells it from others; `end` has two digits for the
 * year.
 */
export function certificate(commonName: string, key: KeyObject = certificateKey(), end = '491231235959Z'): Pem {
  const algorithm = der(SEQUENCE, hex(ECDSA_WITH_SHA256))
  const name = der(SEQUENCE, der(0x31, der(SEQUENCE, hex(COMMON_NAME), der(0x0c, Buffer.from(commonName)))))
  const validity = der(SEQUENCE, der(0x17, Buffer.from('250101000000Z')), der(0x17, Buffer.from(end)))
  const names = der(SEQUENCE, der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])))
  const extensions = der(0xa3, der(SEQUENCE, der(SEQUENCE, hex(SUBJECT_ALT_NAME), der(0x04, names))))
  const body = der(SEQUENCE,
    hex('a003020102'), // version 3
    hex('020101'), // serial number 1
    algorithm, name, validity, name, publicKeyOf(key), extensions)
  const whole = der(SEQUENCE, body, algorithm, der(0x03, Buffer.from([0]), sign('sha256', body, key)))
  const lines = whole.toString('base64').match(/.{1,64}/g)!.join('\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: key.export({ type: 'pkcs8', format: 'pem' }) as string
  }
}

export function certificateFiles(folder: string, commonName = 'localhost'): { 'tls-cert': string, 'tls-key': string } {
  const files = { 'tls-cert': join(folder, `${commonName}.crt`), 'tls-key': join(folder, `${commonName}.pem`) }
  const { cert, key } = certificate(commonName)
  writeFileSync(files['tls-cert'], cert)
  writeFileSync(files['tls-key'], key)
  return files
}

function publicKeyOf(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' })
}
