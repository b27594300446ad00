/**
 * The way of a request put together by the test from the same parts as `openService`: for a clock of the test's own, a
 * file layer that fails, or a route that the contract does not have.
 */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { TestContext } from 'node:test'
import type { Peer } from '../../src/http/client.ts'
import { entryRoutes } from '../../src/entries/entry-routes.ts'
import { pipelineOf, type PipelineOptions } from '../../src/http/pipeline.ts'
import { Router, type Route } from '../../src/http/router.ts'
import { listen } from '../../src/http/listener.ts'
import { RateLimit } from '../../src/http/rate-limit.ts'
import { type Files } from '../../src/journal/files.ts'
import { MAX_BODY_BYTES } from '../../src/limits.ts'
import { Store } from '../../src/store/store.ts'
import { atEnd } from './service.ts'
import { freshStore } from './stores.ts'

export interface ComposeOptions {
  readonly files?: Files
  readonly routes?: readonly Route[]
  /** Requests a minute; none without it. */
  readonly rateLimit?: number
  readonly nowMs?: () => number
}

export interface Composed {
  readonly store: Store
  readonly url: string
  readonly warnings: readonly string[]
}

/**
 * The answer of a pipeline to a request that never came over a network: for what a client here cannot send, such as
 * from another address.
 */
export function answered(
  options: Partial<PipelineOptions>, fields: { readonly [name: string]: string | undefined },
  { address = '127.0.0.1', isSecure = false, method = 'GET', path = '/api/thing', ...route }: Partial<Peer & Route> = {}
): Promise<{ readonly status: number, readonly headers: readonly string[] }> {
  const router = new Router([{ operation: 'thing', method, path, handle: () => ({ status: 204 }), ...route }])
  const socket = Object.assign(new Socket(), isSecure ? { encrypted: true } : {})
  Object.defineProperty(socket, 'remoteAddress', { value: address })
  const request = new IncomingMessage(socket)
  const rawHeaders = Object.entries(fields).flatMap(([name, value]) => value === undefined ? [] : [name, value])
  Object.assign(request, { method, url: path, httpVersion: '1.1', httpVersionMinor: 1, rawHeaders })
  return new Promise(resolve => {
    const response = Object.assign(new ServerResponse(request), {
      writeHead: (status: number) => resolve({
        status, headers: Object.entries(response.getHeaders()).flatMap(([name, value]) => [name, String(value)])
      })
    })
    pipelineOf({ router, maxBodyBytes: MAX_BODY_BYTES, warn: line => resolve({ status: 0, headers: [line] }),
      ...options })(
      request, response)
  })
}

/** Listens on 127.0.0.1 with a journal in a fresh folder. After the test the state is checked and all is closed. */
export async function composePipeline(t: TestContext, options: ComposeOptions = {}): Promise<Composed> {
  const { files, routes = [], rateLimit, nowMs = () => performance.now() } = options
  const warnings: string[] = []
  const warn = (line: string): void => { warnings.push(line) }
  const store = await freshStore(t, { warn, ...files && { files } })
  const listener = await listen({ host: '127.0.0.1', port: 0 }, pipelineOf({
    router: new Router([...entryRoutes(store), ...routes]),
    rateLimit: rateLimit === undefined ? undefined : new RateLimit(rateLimit, undefined, nowMs),
    trustedProxies: undefined,
    guardedHosts: new Set(),
    maxBodyBytes: MAX_BODY_BYTES,
    warn
  }))
  atEnd(t, () => listener.close(1_000))
  return { store, url: `http://127.0.0.1:${listener.port}`, warnings }
}
