/** Receives an answer as it comes: a long one on a slow line takes its time, and only silence ends it. */
import { JsonItems } from './json-items.ts'

/** How much of a list has come: what of it is there, and the share of its bytes, if that is known. */
export type OnPart<T> = (items: readonly T[], share: number | undefined) => void

/** How long nothing may come before the service counts as gone. */
export const SILENCE_MS: number = 30_000

/** Ends a request when nothing has come of its answer for a while. */
export class Watch {
  readonly #controller = new AbortController()
  readonly signal: AbortSignal = this.#controller.signal
  #current: AbortSignal | undefined

  renew(moreMs: number = 0): void {
    const current = this.#current = AbortSignal.timeout(SILENCE_MS + moreMs)
    current.addEventListener('abort', () => { if (this.#current === current) this.#controller.abort() })
  }
}

/** Reads an answer piece by piece, each as text, with the bytes that have come. */
async function eachPiece({ body }: Response, watch: Watch, take: (text: string, bytes: number) => void): Promise<void> {
  const decoder = new TextDecoder()
  const reader = body!.getReader()
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    watch.renew()
    bytes += value?.length ?? 0
    take(decoder.decode(value, { stream: !done }), bytes)
    if (done) return
  }
}

/** The text of an answer. */
export async function textIn(response: Response, watch: Watch): Promise<string> {
  const pieces: string[] = []
  await eachPiece(response, watch, text => pieces.push(text))
  return pieces.join('')
}

/** The objects of an answer's list; throws where it is cut. */
export async function listIn<T>(response: Response, watch: Watch, onPart: OnPart<T>): Promise<readonly T[]> {
  const found: T[] = []
  const items = new JsonItems<T>()
  const length = Number(response.headers.get('Content-Length') ?? 0)
  await eachPiece(response, watch, (text, bytes) => {
    const more = items.add(text)
    for (const one of more) found.push(one)
    if (more.length > 0) onPart(found, length > 0 ? Math.min(1, bytes / length) : undefined)
  })
  if (!items.isWhole) throw new Error('the list is not whole')
  return found
}
