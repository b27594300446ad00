/**
 * A file that is served from memory. Its content codings (RFC 9110 §8.4.1) are prepared once, each with a strong ETag
 * of its own (§8.8.3), and so is every answer: a request only chooses among them.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { BROTLI_QUALITY } from '../limits.ts'
import type { Head } from './head.ts'
import type { Kind, Reply } from './reply.ts'

interface Variant {
  readonly coding: 'br' | 'gzip' | 'identity'
  readonly tag: string
  readonly whole: Reply
  readonly notModified: Reply
}

/** A file in memory. */
export class Asset {
  /** Smallest first; the last one is the file as it is. */
  readonly #variants: readonly Variant[]

  /** `type` is the file's `Content-Type`; `headers`, names and values in turn, go with every answer. */
  constructor(bytes: Buffer, type: string, headers: readonly string[]) {
    const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
    const kind: Kind = { type, cache: 'no-cache' } // kept, but asked for again each time
    const variant = (coding: Variant['coding'], body: Buffer): Variant => {
      const tag = `"${hash}-${coding}"`
      const common = ['ETag', tag, 'Vary', 'Accept-Encoding', ...headers]
      const coded = coding === 'identity' ? common : ['Content-Encoding', coding, ...common]
      return {
        coding, tag, whole: { status: 200, kind, body, headers: coded },
        notModified: { status: 304, kind, headers: common }
      }
    }
    const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } })
    this.#variants = [variant('br', brotli), variant('gzip', gzipSync(bytes)), variant('identity', bytes)]
  }

  /** The file in the coding that the client likes best, or a 304 if it has that already (RFC 9110 §13.1.2). */
  reply({ acceptEncoding, ifNoneMatch }: Head): Reply {
    const { tag, whole, notModified } = this.#chosen(acceptEncoding ?? '')
    return ifNoneMatch !== undefined && isMatch(ifNoneMatch, tag) ? notModified : whole
  }

  /** RFC 9110 §12.5.3; where nothing is acceptable, the file as it is. */
  #chosen(acceptEncoding: string): Variant {
    const weights = weightsIn(acceptEncoding)
    const weightOf = ({ coding }: Variant): number =>
      weights.get(coding) ?? weights.get('*') ?? (coding === 'identity' ? LEAST_WEIGHT : 0)
    let best = this.#variants.at(-1)!
    for (const variant of this.#variants.toReversed()) {
      if (weightOf(variant) >= Math.max(weightOf(best), LEAST_WEIGHT)) best = variant
    }
    return best
  }
}

/** The least weight that is not 0 (RFC 9110 §12.4.2). */
const LEAST_WEIGHT = 0.001

function weightsIn(field: string): ReadonlyMap<string, number> {
  return new Map(field.toLowerCase().split(',').map(item => {
    const [coding = '', ...parameters] = item.split(';').map(part => part.trim())
    const weight = parameters.find(part => part.startsWith('q='))?.slice(2) ?? '1'
    return [coding, /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0]
  }))
}

function isMatch(ifNoneMatch: string, tag: string): boolean {
  return ifNoneMatch.trim() === '*' || ifNoneMatch.split(',').some(one => one.trim().replace(/^W\//, '') === tag)
}
