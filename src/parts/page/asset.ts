/**
 * A file in memory. Its content codings (RFC 9110 §8.4.1), each with its own strong ETag (§8.8.3),
 * are prepared when it is first asked for: a start does not wait for them.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import type { Head } from '../../http/head.ts'
import type { Kind, Reply } from '../../http/reply.ts'
import { namesTag, takesCoding } from '../routes/coding.ts'

/** Of 11: the highest takes twice as long, and hardly shortens the files. */
const BROTLI_QUALITY = 10
/** No file is longer; a larger window takes five times as long. */
const BROTLI_WINDOW_BITS = 16

interface Variant {
  readonly coding: 'br' | 'gzip' | 'identity'
  readonly tag: string
  readonly whole: Reply
  readonly notModified: Reply
}

export class Asset {
  readonly #prepare: () => readonly Variant[]
  /** Smallest first; the last is the file itself. */
  #variants: readonly Variant[] | undefined

  /** `headers`: names and values in turn, for every answer. */
  constructor(bytes: Buffer, kind: Kind, headers: readonly string[]) {
    this.#prepare = () => variantsOf(bytes, kind, headers)
  }

  /**
   * In the smallest coding that the client accepts (RFC 9110 §12.5.3); 304 if the client has the
   * file (§13.1.2).
   */
  reply({ 'accept-encoding': accept, 'if-none-match': known }: Head): Reply {
    const variants = (this.#variants ??= this.#prepare())
    const { tag, whole, notModified } =
      variants.find(({ coding }) => takesCoding(accept, coding)) ?? variants.at(-1)!
    return namesTag(known, tag) ? notModified : whole
  }
}

function variantsOf(bytes: Buffer, kind: Kind, headers: readonly string[]): readonly Variant[] {
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
  return [variant('br', brotli), variant('gzip', gzipSync(bytes)), variant('identity', bytes)]
}
