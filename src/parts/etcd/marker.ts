/**
 * `PREFIX.key`, the marker: it says that a journal is here, and what may be done with it. Its words:
 *
 * 1. the name of the key that all seal with;
 * 2. none, before the first record; then `begun`, or `copied` where a copy put them: so records that are gone are never
 *    taken for none yet. Or what forbids the use of it: `copying`, a copy that is not whole yet; `closed`, since it was
 *    copied to a file; `moving` and `moved`, which only the first version of this program wrote;
 * 3. after `copying` and `copied` a word of that copy alone, so that none takes another one's marker for its own; after
 *    `closed` the time, and `empty` where there was no record yet.
 */
import { Failure } from '../../errors.ts'

export interface Marker {
  /** As it is in etcd. */
  readonly text: string
  /** The name of the key to seal with. */
  readonly key: string
  readonly state: 'empty' | 'begun' | 'copied' | 'copying' | 'closed' | 'moving' | 'moved' | 'damaged'
  readonly revision: string
}

const FORM = /^([0-9a-f]{8})(?: (begun|copied|copying|closed|moving|moved)(?: [\x21-\x7e]+)*)?$/

export function markerOf(text: string, revision: string): Marker {
  const [, key, state = 'empty'] = FORM.exec(text) ?? []
  return { text, key: key ?? '', state: key === undefined ? 'damaged' : state as Marker['state'], revision }
}

/** The same marker with another key, or in another state. */
export function markerText({ key, state }: Pick<Marker, 'key' | 'state'>, word = ''): string {
  return [key, state === 'empty' ? '' : state, word].join(' ').trim()
}

/** The last word of a journal that was closed before its first record. */
export const WAS_EMPTY = 'empty'

/** Whether there must be records. */
export function hadRecords({ state, text }: Marker): boolean {
  return state === 'begun' || state === 'copied' || (state === 'closed' && !text.endsWith(` ${WAS_EMPTY}`))
}

/** Why nothing may be read or written under a marker; undefined: it may. */
export function unusable({ key, state, text }: Marker, prefix: string): Failure | undefined {
  const to = text.split(' ')[2]
  if (state === 'copying') {
    return new Failure('journal-damaged', `${prefix}: the copy to it is incomplete; start it over if it broke off`)
  }
  if (state === 'moved') return new Failure('journal-moved', `${prefix} is now at ${to}; set ETCD_PREFIX to that`)
  if (state === 'moving') {
    const how = `finish that with it, or put ${key} alone into ${prefix}.key`
    return new Failure('journal-moved', `an older version began to move ${prefix} to ${to}; ${how}`)
  }
  if (state === 'damaged') {
    const how = `put the name of the newest record's key there, a space, and begun`
    return new Failure('journal-damaged', `what ${prefix}.key holds in etcd is not this program's; ${how}`)
  }
  return undefined
}

/** Why nothing may be written under a marker; undefined: it may. */
export function closed({ state, text }: Marker, prefix: string): Failure | undefined {
  if (state !== 'closed') return undefined
  const how = 'use the copy if it is whole, or run journal reopen'
  return new Failure('journal-refused', `${prefix} is closed: it was copied to a file at ${text.split(' ')[2]}; ${how}`)
}

/** There is no marker, but so many records, and so many keys of others. */
export function withoutMarker(prefix: string, records: number, others: number): Failure {
  let how = 'if ETCD_PREFIX is right, the command init makes an empty one, and journal copy --to etcd a copy'
  if (others > 0) how = 'but keys of another program where a journal would be; name another ETCD_PREFIX'
  if (records > 0) how = `but ${records} records; put the name of their newest key there, a space, and begun`
  return new Failure('journal-missing', `etcd has no key ${prefix}.key; ${how}`)
}

/** Records are gone, and the marker says that there were some. */
export function emptied(prefix: string): Failure {
  const how = 'copy a backup to another ETCD_PREFIX; journal remove --from etcd ends this one'
  return new Failure('journal-damaged', `${prefix} has no records in etcd, and its marker says that it had; ${how}`)
}

/** The marker of a journal that was there is gone. */
export function removed(prefix: string): Failure {
  const why = 'the journal was removed, or that key alone'
  return new Failure('journal-missing', `${prefix}.key is no longer in etcd: ${why}`)
}
