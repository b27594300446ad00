/**
 * The marker `PREFIX.key` says that a journal is here, and what may be done with it. Its words:
 *
 * 1. the name of the key to seal with;
 * 2. none before the first record, then `begun` or `copied`, so that deleted records never look
 *   like an empty journal;
 *    `copying` until a copy is whole; `closed` for no changes;
 * 3. after `copying` and `copied` a word of that copy alone; after `closed` the time, and `empty`
 *   without a record.
 */
import { Failure } from '../../errors.ts'

export interface Marker {
  readonly text: string
  readonly key: string
  readonly state: 'empty' | 'begun' | 'copied' | 'copying' | 'closed' | 'damaged'
  readonly revision: string
}

const FORM = /^([0-9a-f]{8})(?: (begun|copied|copying|closed)(?: [\x21-\x7e]+)*)?$/

export function markerOf(text: string, revision: string): Marker {
  const [, key, state = 'empty'] = FORM.exec(text) ?? []
  return {
    text,
    key: key ?? '',
    state: key === undefined ? 'damaged' : (state as Marker['state']),
    revision
  }
}

export function markerText({ key, state }: Pick<Marker, 'key' | 'state'>, word = ''): string {
  return [key, state === 'empty' ? '' : state, word].join(' ').trim()
}

/** The last word if closed before the first record. */
export const WAS_EMPTY = 'empty'

export function hadRecords({ state, text }: Marker): boolean {
  return (
    state === 'begun' ||
    state === 'copied' ||
    (state === 'closed' && !text.endsWith(` ${WAS_EMPTY}`))
  )
}

/** Why nothing may be read or written. */
export function unusable({ state, text }: Marker, prefix: string): Failure | undefined {
  if (state === 'copying') {
    return new Failure(
      'journal-damaged',
      `${prefix}: the copy to it is incomplete; start it over if it broke off`
    )
  }
  if (state !== 'damaged') return undefined
  const how =
    'if version 1.0.0 has moved the journal, set ETCD_PREFIX to the prefix in that value; ' +
    'if not, set the value to the name of the key of the newest record, a space, and begun'
  const what = `the value of ${prefix}.key in etcd is no marker: ${JSON.stringify(text)}`
  return new Failure('journal-damaged', `${what}; ${how}`)
}

export function closed({ state, text }: Marker, prefix: string): Failure | undefined {
  if (state !== 'closed') return undefined
  return new Failure(
    'journal-refused',
    `${prefix} is closed since ${text.split(' ')[2]}; journal reopen opens it`
  )
}

export function withoutMarker(prefix: string, keys: number): Failure {
  const how =
    keys === 0
      ? 'if ETCD_PREFIX is right, the command init makes an empty one, and journal copy a copy'
      : `but ${keys} keys where its records would be: if they are records, put the name of the ` +
        "newest one's key there, a space, and begun; if not, name another ETCD_PREFIX"
  return new Failure('journal-missing', `etcd has no key ${prefix}.key; ${how}`)
}

export function emptied(prefix: string): Failure {
  const how = 'copy a backup to another ETCD_PREFIX; journal remove --from etcd ends this one'
  return new Failure(
    'journal-damaged',
    `${prefix} has no records in etcd, and its marker says that it had; ${how}`
  )
}
