/** Nobody is sent a password before it is recorded who is told. */
import { Failure } from '../errors.ts'
import { disclosed, isRecorded } from '../knowledge/disclosure.ts'
import type { Commits } from '../store/store.ts'
import { failureReply, UNRECORDED, type Reply } from './reply.ts'
import type { Call, Route } from './router.ts'

/** Changes record what they tell by themselves. A HEAD tells nothing. */
export function isUnrecorded(
  commits: Commits | undefined,
  { head, session }: Call<unknown>,
  { tells }: Reply
): boolean {
  return (
    tells !== undefined &&
    commits !== undefined &&
    head.method === 'GET' &&
    !isRecorded(commits, session, tells)
  )
}

/** Throws the reply that refuses. The handler is asked again, so it must change nothing. */
export async function recorded(
  commits: Commits,
  route: Route,
  call: Call<unknown>,
  first: Reply
): Promise<Reply> {
  try {
    return await disclosed(
      commits,
      call.session,
      route.operation,
      () => first.again?.() ?? route.handle(call),
      first
    )
  } catch (error) {
    throw error instanceof Failure ? (failureReply(error, undefined) ?? UNRECORDED) : error
  }
}
