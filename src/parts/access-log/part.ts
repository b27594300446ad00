/** The access log: a JSON line for each request. */
import { parseSwitch, setting } from '../../core-settings.ts'
import type { Part } from '../../part.ts'

interface AccessLogSettings {
  readonly accessLog: boolean
}

export const accessLog: Part<AccessLogSettings> = {
  settings: {
    accessLog: setting(
      'on|off',
      false,
      parseSwitch,
      'Whether each request is logged to standard output, a JSON line each.'
    )
  },
  open: async ({ settings, log }) => {
    if (!settings.accessLog) return {}
    const { AccessLog } = await import('./access-log.ts')
    const sink = log.access ?? (await import('./standard-output.ts')).standardOutput()
    const observer = new AccessLog(sink, Date.now, log.warn)
    observer.begin()
    return { observer, lostLines: () => observer.lostLines, close: () => observer.close() }
  }
}
