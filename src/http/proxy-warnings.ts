/**
 * Tells the operator why a proxy's requests are refused for want of HTTPS: a browser shows only the
 * refusal.
 */
import { MAX_WARNED_PROXIES } from '../limits.ts'

export interface RefusedProxy {
  readonly address: string
  readonly isTrusted: boolean
  readonly said: string | undefined
}

/** Names each address once, and no more than `MAX_WARNED_PROXIES` of them. */
export function proxyWarnings(warn: (line: string) => void): (refused: RefusedProxy) => void {
  const warned = new Set<string>()
  return refused => {
    const why = faultOf(refused)
    if (why === undefined || warned.has(refused.address)) return
    if (warned.size >= MAX_WARNED_PROXIES) return
    warned.add(refused.address)
    warn(why)
  }
}

function faultOf({ address, isTrusted, said }: RefusedProxy): string | undefined {
  const from = `a request from ${address || 'a Unix socket'}`
  if (!isTrusted) {
    return said?.toLowerCase() !== 'https'
      ? undefined
      : `${from}, which is not in TRUST_PROXY, says that it came by HTTPS; it was refused`
  }
  const what =
    said === undefined ? 'has no X-Forwarded-Proto' : 'does not say X-Forwarded-Proto: https'
  return `${from}, a proxy in TRUST_PROXY, ${what}; it was refused`
}
