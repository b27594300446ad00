/**
 * A file in memory. Each content coding (RFC 9110 §8.4.1) is prepared once, with its own strong
 * ETag (§8.8.3).
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import type { Head } from '../../http/head.ts'
import type { Kind, Reply } from '../../http/reply.ts'
import { namesTag, takesCoding } from '../routes/coding.ts'

/** Of 11: more slows the start, and hardly shortens the files. */
const BROTLI_QUALITY = 8
/** No file is longer; a larger window takes five times as long. */
const BROTLI_WINDOW_BITS = 16

interface Variant {
  readonly coding: 'br' | 'gzip' | 'identity'
  readonly tag: string
  readonly whole: Reply
  readonly notModified: Reply
}

export class Asset {
  /** Smallest first; the last is the file itself. */
  readonly #variants: readonly Variant[]

  /** `headers`, names and values in turn, go with every answer. */
  constructor(bytes: Buffer, kind: Kind, headers: readonly string[]) {
    const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
    const variant = (coding: Variant['coding'], body: Buffer): Variant => {
      const tag = `"${hash}-${coding}"`
      const common = ['ETag', tag, 'Vary', 'Accept-Encoding', ...headers]
      const coded = coding === 'identity' ? common : ['Content-Encoding', coding, ...common]
      return {
        coding,
        tag,
        whole: { status: 200, kind, body, headers: coded },
        notModified: { status: 304, kind, headers: common }
      }
    }
    const brotli = brotliCompressSync(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
        [constants.BROTLI_PARAM_LGWIN]: BROTLI_WINDOW_BITS
      }
    })
    this.#variants = [
      variant('br', brotli),
      variant('gzip', gzipSync(bytes)),
      variant('identity', bytes)
    ]
  }

  /**
   * In the smallest coding that the client accepts (RFC 9110 §12.5.3); 304 if the client has the
   * file (§13.1.2).
   */
  reply({ 'accept-encoding': accept, 'if-none-match': known }: Head): Reply {
    const { tag, whole, notModified } =
      this.#variants.find(({ coding }) => takesCoding(accept, coding)) ?? this.#variants.at(-1)!
    return namesTag(known, tag) ? notModified : whole
  }
}
