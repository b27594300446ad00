/** The access log: a JSON line for each request. */
import { parseSwitch, setting } from '../../core-settings.ts'
import type { Part } from '../../part.ts'

interface AccessLogSettings { readonly accessLog: boolean }

export const accessLog: Part<AccessLogSettings> = {
  settings: {
    accessLog: setting('on|off', false, parseSwitch,
      'Whether each request is logged to standard output, a JSON line each.')
  },
  open: async ({ settings, log }) => {
    if (!settings.accessLog || log.access === undefined) return {}
    const { AccessLog } = await import('./access-log.ts')
    const observer = new AccessLog(log.access, Date.now, log.warn)
    observer.begin()
    return { observer, lostLines: () => observer.lostLines, close: () => observer.close() }
  }
}
