/** The operator's requests, on the lock socket, which only the folder's owner can open. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { MAX_LOCAL_BODY_BYTES } from '../limits.ts'
import { BUSY } from './reply.ts'
import { pipelineOf, type Pipeline, type PipelineOptions } from './request.ts'
import { routerOf, type Route } from './route.ts'
import { sendReply } from './send.ts'

/** Makes the function that answers them. */
export function localPipeline(
  routes: readonly Route[], catchUp: PipelineOptions['catchUp'], warn: PipelineOptions['warn']
): Pipeline {
  return pipelineOf({
    router: routerOf(routes), maxBodyBytes: MAX_LOCAL_BODY_BYTES, reportsFailures: true, catchUp, warn
  })
}

/** What is in front of that: until it is opened, and once it closes, requests are answered 503. */
export interface LocalGate {
  handle(request: IncomingMessage, response: ServerResponse): void
  open(pipeline: Pipeline): void
  /** Lets no more requests pass, and waits for those in flight, no longer than `timeoutMs` from the first call on. */
  close(timeoutMs: number): Promise<void>
}

export function localGate(): LocalGate {
  let behind: Pipeline | undefined
  let closing: Promise<void> | undefined
  return {
    handle: (request, response) => {
      if (behind === undefined || behind.isStopping()) sendReply(response, BUSY, [], true)
      else behind(request, response)
    },
    open: pipeline => { behind = pipeline },
    close: timeoutMs => closing ??= Promise.resolve(behind?.stop(timeoutMs))
  }
}
