/** One-time codes by time (RFC 6238) over HOTP (RFC 4226), with secrets in base32 (RFC 4648 §6). */
import { Buffer } from 'node:buffer'
import { createHmac } from 'node:crypto'
import { MAX_OTP_PERIOD_SECONDS } from '../limits.ts'

/** `period` in seconds. */
export interface Otp {
  readonly secret: Buffer
  readonly algorithm: 'SHA1' | 'SHA256' | 'SHA512'
  readonly digits: number
  readonly period: number
}

const ALGORITHM = /^SHA-?(1|256|512)$/i
const DIGITS = /^[678]$/
const PERIOD = /^[1-9][0-9]{0,2}$/
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** 80 bits, 16 letters of base32: RFC 4226 §4 asks for 128 bits, but services give 80. */
const LEAST_SECRET_BYTES = 10

/** As `otpIn`; undefined also for a secret of fewer than `LEAST_SECRET_BYTES`. */
export function newOtpIn(text: string): Otp | undefined {
  const otp = otpIn(text)
  return otp !== undefined && otp.secret.length >= LEAST_SECRET_BYTES ? otp : undefined
}

/**
 * Reads base32, with or without blanks and dashes, or an `otpauth://totp/…` address. Undefined for
 * any other text.
 */
export function otpIn(text: string): Otp | undefined {
  if (!/^otpauth:/i.test(text)) return otpOf(text)
  const { host, searchParams } = URL.canParse(text)
    ? new URL(text)
    : { host: '', searchParams: new URLSearchParams() }
  if (host.toLowerCase() !== 'totp') return undefined
  const given = (name: string): string | undefined => searchParams.get(name) ?? undefined
  return otpOf(given('secret'), given('algorithm'), given('digits'), given('period'))
}

function otpOf(base32 = '', algorithm = 'SHA1', digits = '6', period = '30'): Otp | undefined {
  const secret = bytesOf(base32)
  const [, bits] = ALGORITHM.exec(algorithm) ?? []
  if (secret === undefined || bits === undefined || !DIGITS.test(digits) || !PERIOD.test(period))
    return undefined
  if (Number(period) > MAX_OTP_PERIOD_SECONDS) return undefined
  return {
    secret,
    algorithm: `SHA${bits}` as Otp['algorithm'],
    digits: Number(digits),
    period: Number(period)
  }
}

/**
 * The bits that fill no byte are left out, as by other programs. Undefined for other texts, and
 * without a byte.
 */
function bytesOf(base32: string): Buffer | undefined {
  const letters = base32
    .replace(/[ -]/g, '')
    .replace(/={1,6}$/, '')
    .toUpperCase()
  if (!/^[A-Z2-7]{2,}$/.test(letters)) return undefined
  const bytes = Buffer.alloc(Math.floor((letters.length * 5) / 8))
  let [bits, count, at] = [0, 0, 0]
  for (const letter of letters) {
    bits = ((bits << 5) | BASE32.indexOf(letter)) & 0xfff
    count += 5
    if (count < 8) continue
    count -= 8
    bytes[at++] = bits >> count
  }
  return bytes
}

export function base32Of(bytes: Buffer): string {
  const bits = [...bytes].map(byte => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? [])
    .map(five => BASE32[parseInt(five.padEnd(5, '0'), 2)])
    .join('')
}

export function stepAt({ period }: Otp, wallMs: number): number {
  return Math.floor(wallMs / 1000 / period)
}

/** RFC 4226 §5.3. */
export function codeAt({ secret, algorithm, digits }: Otp, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt.asUintN(64, BigInt(step)))
  const mac = createHmac(algorithm, secret).update(counter).digest()
  const number = mac.readUInt32BE(mac.at(-1)! & 0xf) & 0x7fff_ffff
  return String(number % 10 ** digits).padStart(digits, '0')
}

/** From 1 to the period. */
export function secondsLeft({ period }: Otp, wallMs: number): number {
  return period - (Math.floor(wallMs / 1000) % period)
}
