/**
 * Everything that opens closes: after an open and a close, and after an open or a close that failed at any step,
 * nothing is left: no timer, listener, descriptor, socket file, half a file, nor the lock.
 */
import { test, type TestContext } from 'node:test'
import { disk } from '../../src/journal/files.ts'
import { lockFolder } from '../../src/journal/lock.ts'
import { listen } from '../../src/http/listener.ts'
import { openService as embed } from '../../src/embedding/embedded-service.ts'
import { composeService } from '../../src/service.ts'
import { openStorage } from '../../src/storage.ts'
import { readSettings } from '../../src/settings.ts'
import { certificateFiles } from '../support/certificate.ts'
import '../support/compressed-once.ts'
import { breakDisk } from '../support/faulty-files.ts'
import { leavesNothing, type Held } from '../support/leaks.ts'
import { freshFolder } from '../support/service.ts'

type Close = () => unknown
/** Opens something that is to be closed; with what is in the place it may have been opened before. */
type Open = (place: Place) => Promise<Close>

interface Place extends Held { readonly tls: { readonly 'tls-cert': string, readonly 'tls-key': string } }

const log = { info: () => {}, warn: () => {}, access: { write: () => {}, pendingBytes: () => 0 } }

/** A service, which listens, with these flags besides. */
export const service = (...flags: readonly string[]): Open => async ({ folder, tls }) => {
  const more = flags.map(flag => flag.replace('CERT', tls['tls-cert']).replace('KEY', tls['tls-key']))
  const opened = await composeService(readSettings([`--data=${folder}`, '--port=0', ...more], {}), log)
  try {
    await opened.listen()
  } catch (error) {
    await opened.close()
    throw error
  }
  return opened.close
}

export const ALL_ON = 'a protected service with all that is switched on'

export const OPENINGS: { readonly [name: string]: Open } = {
  'the lock of a folder': async ({ folder }) => (await lockFolder(disk, folder)).release,
  'a storage': async ({ folder }) =>
    (await openStorage({ dataDir: folder, keyFile: undefined, journal: 'file' }, log)).close,
  'a storage in memory': async () =>
    (await openStorage({ dataDir: '', keyFile: undefined, journal: 'memory' }, log)).close,
  'a listener': async () => {
    const { close } = await listen({ host: '127.0.0.1', port: 0 }, () => {})
    return () => close(0)
  },
  'a service': service(),
  [ALL_ON]: service('--auth=bearer', '--access-log=on', '--tls-cert=CERT', '--tls-key=KEY', '--extra-routes=on'),
  'an embedded service': async ({ folder }) => {
    const opened = await embed({ dataDir: folder, auth: 'bearer', log })
    return opened.close
  }
}

/** While it lasts, the call of the disk with that number fails, once; gives how many calls there were. */
async function failing(t: TestContext, at: number, act: () => Promise<void>): Promise<number> {
  const disk = breakDisk(t, { at, code: 'EIO' })
  try {
    await act()
  } finally {
    disk.heal()
  }
  return disk.count()
}

export function placeOf(t: TestContext): Place {
  return { folder: freshFolder(t), tls: certificateFiles(freshFolder(t)) }
}

/** Tests what is opened under a name. */
export function leavesNothingOnceClosed(name: string): void {
  const open = OPENINGS[name]!
  test(`${name} leaves nothing once it is closed, whichever disk call fails while it opens or closes`, async t => {
    const place = placeOf(t)
    await (await open(place))() // what is loaded, and the first files, stay
    await leavesNothing(place, 'opened and closed', async () => { await (await open(place))() })
    for (let at = 1; ; at++) {
      let calls = 0
      await leavesNothing(place, `call ${at} fails as it opens`, async () => {
        let close: Close = () => {}
        calls = await failing(t, at, async () => { close = await open(place).catch(() => close) })
        await close()
      })
      if (at > calls) break
    }
    for (let at = 1; ; at++) {
      let calls = 0
      await leavesNothing(place, `call ${at} fails as it closes`, async () => {
        const close = await open(place)
        calls = await failing(t, at, async () => { await Promise.resolve(close()).catch(() => {}) })
      })
      if (at > calls) break
    }
    await (await open(place))()
  })
}
