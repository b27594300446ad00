/** A client: a request on a connection of its own, all bytes that come back, and what is wrong with any answer. */
import { connect } from 'node:net'

/** What a program did that it must not do. Its first line, without numbers, says which kind of defect it is. */
export class Defect extends Error {}

/** A client that waits no longer. What a change waits for is bounded by a few seconds. */
const PATIENCE_MS = 12_000

export interface Exchange {
  /** Undefined if no whole head came. */
  readonly status: number | undefined
  /** All bytes that came. */
  readonly text: string
  readonly isWhole: boolean
  readonly json: any
}

/** `soon`: the client goes as soon as it has sent its request; `half`: with the first bytes of the answer. */
export type Cut = 'soon' | 'half' | undefined

export interface Asking {
  readonly method: string
  readonly path: string
  readonly token?: string | undefined
  readonly body?: object | undefined
  readonly cut?: Cut
}

/** As by a proxy that speaks HTTPS. */
const PROXIED = 'X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n'

export function exchange(url: string, { method, path, token, body, cut }: Asking): Promise<Exchange> {
  const { hostname, port } = new URL(url)
  const sent = body === undefined ? '' : JSON.stringify(body)
  const fields = `${token === undefined ? '' : `Authorization: Bearer ${token}\r\n`}${sent === '' ? ''
    : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(sent)}\r\n`}`
  const named = `${method} ${path.replace(/\d+/g, 'N')}`
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(port), hostname)
    const timer = setTimeout(() => {
      reject(new Defect(`a request has no answer for ${PATIENCE_MS / 1000} s: ${named}`))
      socket.destroy()
    }, PATIENCE_MS)
    socket.setEncoding('utf8')
    socket.on('error', () => {})
    socket.on('data', piece => { text += piece; if (cut === 'half') socket.destroy() })
    socket.on('close', () => {
      clearTimeout(timer)
      const answer = exchangeOf(text, method)
      try { assertPlain(answer, named, method === 'HEAD') } catch (error) { reject(error) }
      resolve(answer)
    })
    socket.write(`${method} ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: close\r\n${PROXIED}${fields}` +
      `\r\n${sent}`, () => { if (cut === 'soon') socket.destroy() })
  })
}

function exchangeOf(text: string, method: string): Exchange {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]
  const body = rest.join('\r\n\r\n')
  const length = /^content-length: (\d+)$/im.exec(head)?.[1]
  const isWhole = status !== undefined && rest.length > 0 &&
    (method === 'HEAD' || Buffer.byteLength(body) === Number(length ?? 0))
  return { status: status === undefined ? undefined : Number(status), text, isWhole,
    json: isWhole ? parsed(body) : undefined }
}

function parsed(text: string): any { try { return JSON.parse(text) } catch { return undefined } }

function assertPlain({ isWhole, status, text, json }: Exchange, named: string, isHead: boolean): void {
  if (!isWhole) return
  if (!isHead && json === undefined) throw new Defect(`an answer is no JSON: ${named}: ${text}`)
  if (!isHead && status! >= 400 && !json.message) throw new Defect(`a refusal does not say why: ${named}: ${text}`)
  if (status === 503 && !/^retry-after: \d+$/im.test(text)) throw new Defect(`a 503 without Retry-After: ${named}`)
}
