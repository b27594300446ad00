/**
 * Logins by a proxy in front of the service, or by the host of an embedded one, which know who
 * somebody is.
 */
import { fail, parseNonEmpty, setting, type CoreSettings } from '../../core-settings.ts'
import { Failure } from '../../errors.ts'
import { isReadField } from '../../http/head.ts'
import { disk } from '../../journal/files.ts'
import type { Part } from '../../part.ts'
import { SECRET_HEADER, secretIn } from './secret.ts'

export interface ProxyLoginSettings {
  readonly proxyLoginHeader: string | undefined
  readonly proxyLoginSecretFile: string | undefined
}

export const proxyLogin: Part<ProxyLoginSettings> = {
  settings: {
    proxyLoginHeader: setting(
      'NAME',
      undefined,
      parseHeader,
      'The header in which a proxy in front of the service says whose browser it is, ' +
        'as an e-mail address.'
    ),
    proxyLoginSecretFile: setting(
      'FILE',
      undefined,
      parseNonEmpty,
      'The file with the secret that this proxy shows in `X-Proxy-Login-Secret`, on its only line.'
    )
  },
  check: settings => {
    const { proxyLoginHeader: header, proxyLoginSecretFile: file, trustProxy } = settings
    if ((header === undefined) !== (file === undefined)) {
      return 'PROXY_LOGIN_HEADER and PROXY_LOGIN_SECRET_FILE go together'
    }
    if (header === undefined) return undefined
    const missing = lacking(settings)
    if (trustProxy === undefined) missing.push('TRUST_PROXY, the address of the proxy')
    return missing.length === 0 ? undefined : `PROXY_LOGIN_HEADER needs ${missing.join(', and ')}`
  },
  open: async ({ vouchedFor, ...context }) => {
    const { settings, accounts, log } = context
    const { proxyLoginSecretFile: file } = settings
    if (file === undefined && vouchedFor === undefined) return {}
    const missing = lacking(settings)
    if (accounts === undefined || missing.length > 0) {
      throw new Failure('setting-invalid', `vouches needs ${missing.join(', and ')}`)
    }
    const secret = file === undefined ? undefined : secretIn(disk, file, log.warn)
    const { proxyLoginRoute } = await import('./proxy-login-route.ts')
    return { routes: [proxyLoginRoute({ ...context, vouchedFor, accounts, secret })] }
  }
}

/** A user who is removed at the proxy keeps the token until it ends. */
function lacking({ auth, tokenTtlMinutes }: Partial<CoreSettings>): string[] {
  return [
    ...(auth === 'bearer' ? [] : ['AUTH=bearer']),
    ...(tokenTtlMinutes === undefined ? ['TOKEN_TTL_MINUTES, such as 720'] : [])
  ]
}

/** The name must pass every proxy, and mean nothing else here. */
function parseHeader(text: string): string {
  const name = text.toLowerCase()
  const isTaken =
    name === SECRET_HEADER ||
    isReadField(name) ||
    /^(sec-|proxy-|content-|x-forwarded-(?!email$))/.test(name)
  const isName = /^[a-z][a-z0-9]*(-[a-z0-9]+)+$/.test(name) && name.length <= 64
  return isName && !isTaken
    ? text
    : fail(
        'a name of letters, digits and hyphens that has no other meaning, ' +
          'such as X-Auth-Request-Email'
      )
}
