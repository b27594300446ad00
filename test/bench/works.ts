/** What is measured: the requests of each work, and what the program has to hold for them. */
import { Buffer } from 'node:buffer'
import { BODY_BYTES, fieldsOf } from './journal.ts'
import type { Asked } from './processes.ts'

/** A load on a program that holds entries. */
export interface Work {
  readonly title: string
  readonly entries: number
  readonly connections: number
  /** Those that are sent in turn. */
  readonly requests: readonly Asked[]
  /** One of each method: what a floor has to answer. */
  readonly samples: readonly Asked[]
}

/** So many different requests are sent before the first one comes again. */
const VARIETY = 1_000
/** And so many bytes at most. */
const MAX_VARIETY_BYTES = 4 * 1024 * 1024

const LIST: Asked = { method: 'GET', path: '/api/listPassword' }

/** Asks for one entry. */
function getOne(id: number): Asked { return { method: 'GET', path: `/api/getPassword/${id}` } }

/** Makes an entry, by a body of so many bytes. */
function createOne(n: number, bodyBytes: number = BODY_BYTES): Asked {
  return { method: 'POST', path: '/api/createPassword', body: Buffer.from(JSON.stringify(fieldsOf(n, bodyBytes))) }
}

function times<T>(count: number, make: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i))
}

/** Gets entries, which are spread evenly over all. */
export function gets(entries: number, connections: number): Work {
  const requests = times(VARIETY, i => getOne(1 + (i * 7919 * Math.ceil(entries / VARIETY)) % entries))
  const title = `get one of ${entries.toLocaleString('en')}, ${connections} connections`
  return { title, entries, connections, requests, samples: [getOne(Math.ceil(entries / 2))] }
}

/** Creates entries, by bodies of so many bytes, in a program that holds some. */
export function creates(entries: number, connections: number, bodyBytes: number = BODY_BYTES): Work {
  const variety = Math.min(VARIETY, Math.floor(MAX_VARIETY_BYTES / bodyBytes))
  const title = `durable create, ${connections} ${connections === 1 ? 'connection' : 'connections'}`
  const requests = times(variety, i => createOne(i, bodyBytes))
  return { title, entries, connections, requests, samples: [createOne(0, bodyBytes)] }
}

function lists(entries: number, connections: number): Work {
  const title = `list of ${entries.toLocaleString('en')}, ${connections} connections`
  return { title, entries, connections, requests: [LIST], samples: [LIST] }
}

/** Nine gets to a create, at places that have no period. */
function mixed(entries: number, connections: number): Work {
  const requests = times(VARIETY, i =>
    (i * 7919) % VARIETY < VARIETY / 10 ? createOne(i) : getOne(1 + (i * 31) % entries))
  const title = `90 % get one, 10 % create, ${connections} connections`
  return { title, entries, connections, requests, samples: [getOne(Math.ceil(entries / 2)), createOne(0)] }
}

/** The works by the names that `--only` takes; `start` is the one that is no load. */
export const WORKS: { readonly [name: string]: Work } = {
  get: gets(1_000, 64),
  list100: lists(100, 16),
  list10000: lists(10_000, 4),
  c1: creates(1_000, 1),
  c16: creates(1_000, 16),
  c64: creates(1_000, 64),
  c256: creates(1_000, 256),
  mixed: mixed(1_000, 64)
}
