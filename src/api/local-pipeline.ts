/** The way of the operator's requests on the lock socket, which only the folder's owner can open. */
import { nowMs } from '../clock.ts'
import type { Handle } from '../http/listener.ts'
import { MAX_LOCAL_BODY_BYTES } from '../limits.ts'
import { createPipeline } from './request.ts'
import { routerOf, type Route } from './route.ts'

export function createLocalPipeline(
  routes: readonly Route[], readBarrier: (() => Promise<void>) | undefined, warn: (line: string) => void
): Handle {
  return createPipeline({
    router: routerOf(routes), maxBodyBytes: MAX_LOCAL_BODY_BYTES, reportsFailures: true, readBarrier,
    isStopping: () => false, nowMs, warn
  })
}
