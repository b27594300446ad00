/** How a request counts in the limits (contract §8). */
import { clientKey } from '../http/address.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import type { Reply } from '../http/reply.ts'
import { TOO_MANY } from './answers.ts'
import type { Context } from './context.ts'

/** Counts a request in the limits of `/api` and its route (contract §8, §8.4); if either is used up, in neither. */
export function takeFromLimits(ctx: Context): Reply | undefined {
  const { options: { limitsByUser }, session, route } = ctx
  const general = generalLimit(ctx)
  const own = route?.rateLimit
  if (general === undefined && own === undefined) return undefined
  const address = addressKey(ctx)
  const key = limitsByUser === true && session !== undefined ? `user ${session.user}` : address
  const refused = own?.peek(address)
  if (refused?.allowed === false) {
    const { limit, remaining, retryAfterSeconds } = general?.peek(key) ?? refused
    ctx.verdict = {
      allowed: false, limit, remaining, retryAfterSeconds: Math.max(retryAfterSeconds, refused.retryAfterSeconds)
    }
    return TOO_MANY
  }
  ctx.verdict = general?.take(key)
  if (ctx.verdict?.allowed === false) return TOO_MANY
  const ownVerdict = own?.take(address)
  ctx.verdict ??= ownVerdict
  return undefined
}

/** Has the answer to a request that does not count say what is left. */
export function attachLimitHeaders(ctx: Context): void {
  const verdict = generalLimit(ctx)?.peek(addressKey(ctx))
  if (verdict !== undefined) ctx.verdict = { ...verdict, allowed: true }
}

function generalLimit({ isUnderApi, options }: Context): RateLimit | undefined {
  return isUnderApi ? options.rateLimit : undefined
}

function addressKey({ client, peer }: Context): string {
  return client === peer.address ? peer.key : clientKey(client)
}
