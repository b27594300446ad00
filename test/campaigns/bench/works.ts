/** What is measured: the requests of each work, and what the program has to hold for them. */
import { Buffer } from 'node:buffer'
import { BODY_BYTES, fieldsOf } from './journal.ts'

export interface Asked {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: Buffer
}

export interface Work {
  readonly title: string
  readonly entries: number
  readonly connections: number
  readonly bodyBytes: number
  /** Those that are sent in turn. */
  readonly requests: readonly Asked[]
  /** One of each method: what a floor has to answer. */
  readonly samples: readonly Asked[]
}

/** So many different requests are sent before the first one comes again, and so many bytes at most. */
const VARIETY = 1_000
const MAX_VARIETY_BYTES = 4 * 1024 * 1024

const getOne = (id: number): Asked => ({ method: 'GET', path: `/api/getPassword/${id}` })
const createOne = (n: number, bodyBytes: number): Asked =>
  ({ method: 'POST', path: '/api/createPassword', body: Buffer.from(JSON.stringify(fieldsOf(n, bodyBytes))) })
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

export function requestBytes({ method, path, body }: Asked): Buffer {
  const type = body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${type}\r\n`), body ??
    Buffer.of()])
}

function work(
  title: string, entries: number, connections: number, requests: readonly Asked[], bodyBytes: number = BODY_BYTES
): Work {
  const samples = (['GET', 'POST'] as const).flatMap(method => requests.find(one => one.method === method) ?? [])
  const many = connections === 1 ? '1 connection' : `${connections} connections`
  return { title: `${title}, ${many}`, entries, connections, bodyBytes, requests, samples }
}

/** Gets entries, which are spread evenly over all. */
export function gets(entries: number, connections: number, bodyBytes?: number): Work {
  const requests = times(VARIETY, i => getOne(1 + (i * 7919 * Math.ceil(entries / VARIETY)) % entries))
  return work(`get one of ${entries.toLocaleString('en')}`, entries, connections, requests, bodyBytes)
}

/** Creates entries, by bodies of so many bytes, in a program that holds some. */
export function creates(entries: number, connections: number, bodyBytes: number = BODY_BYTES): Work {
  const variety = Math.min(VARIETY, Math.floor(MAX_VARIETY_BYTES / bodyBytes))
  const title = `durable create${entries === 1_000 ? '' : ` beside ${entries.toLocaleString('en')}`}`
  return work(title, entries, connections, times(variety, i => createOne(i, bodyBytes)), bodyBytes)
}

function lists(entries: number, connections: number): Work {
  return work(`list of ${entries.toLocaleString('en')}`, entries, connections,
    [{ method: 'GET', path: '/api/listPassword' }])
}

const mixed = times(VARIETY, i =>
  (i * 7919) % VARIETY < VARIETY / 10 ? createOne(i, BODY_BYTES) : getOne(1 + (i * 31) % VARIETY))

/** The works by the names that `--only` takes. */
export const WORKS: { readonly [name: string]: Work } = {
  get: gets(1_000, 64), list100: lists(100, 16), list10000: lists(10_000, 4),
  c1: creates(1_000, 1), c16: creates(1_000, 16), c64: creates(1_000, 64), c256: creates(1_000, 256),
  mixed: work('90 % get one, 10 % create', 1_000, 64, mixed)
}

const SIZES: readonly (readonly [entries: number, connections: number, bodyBytes: number])[] = [
  ...[100, 10_000, 100_000, 1_000_000].map(entries => [entries, 64, BODY_BYTES] as const),
  ...[1, 4, 16, 64, 256, 1_000].map(connections => [1_000, connections, BODY_BYTES] as const),
  ...[1_024, 4_096, 16_384, 65_536].map(bodyBytes => [1_000, 64, bodyBytes] as const)
]

/** Both kinds over the number of entries, of connections, and the size of a body. */
export const CURVE: { readonly [name: string]: Work } = Object.fromEntries(
  SIZES.flatMap(sizes => [gets(...sizes), creates(...sizes)]).map(one => {
    const title = `${one.title}, bodies of ${one.bodyBytes} bytes`
    return [title, { ...one, title }]
  }))
