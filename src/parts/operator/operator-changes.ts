/** Changes that only the operator makes, and the name under which the operator's changes are recorded. */
import { Buffer } from 'node:buffer'
import type { EncodedEvent } from '../../journal/journal.ts'
import { hasMore, type EntryRow } from '../../store/entry.ts'
import { OPERATOR, type Events } from '../../store/events.ts'
import { event } from '../../store/state.ts'
import type { Command, Commits } from '../../store/store.ts'

/** The same store, whose events have the name of the operator who asks, if `nameOf` gives one. */
export function forOperator(store: Commits, nameOf: () => string | undefined): Commits {
  const named = <T>(decide: Command<T>): Command<T> => {
    const name = nameOf()
    return name === undefined ? decide : draft => {
      const [events, outcome] = decide(draft)
      return [events.map(one => withName(one, name)), outcome]
    }
  }
  return {
    state: store.state,
    commit: (decide, by, bytes) => store.commit(named(decide), by, bytes),
    commitAlone: (decide, by) => store.commitAlone(named(decide), by)
  }
}

function withName({ type, by, data }: EncodedEvent, name: string): EncodedEvent {
  const more = { ...data as object, [OPERATOR]: name }
  return { type, by, data: more, json: JSON.stringify(more) }
}

/** Removes every value of an entry: its id stays unknown from then on. False for an unknown id. */
export function purgeEntry(store: Commits, id: number): Promise<boolean> {
  return store.commit(draft => {
    const isThere = draft.get(id) !== undefined
    return [isThere ? [event('entry.purged', null, { id })] : [], isThere]
  })
}

/** Creates entries, all of them or none, and returns the id of the first; the others follow it. */
export function importEntries(store: Commits, entries: readonly EntryRow[]): Promise<number> {
  return store.commit(draft => {
    const first = draft.size + 1
    const type = entries.some(hasMore) ? 'fields.imported' : 'entries.imported'
    return [entries.length > 0 ? [event(type, null, { first, entries })] : [], first]
  })
}

/** What an imported entry takes in a record, bytes. */
export function importedBytes(entry: EntryRow): number { return Buffer.byteLength(JSON.stringify(entry)) + 1 }

/** Records that the operator was shown passwords. */
export function recordDisclosure(store: Commits, disclosure: Events['entries.disclosed']): Promise<void> {
  return store.commit(() => [[event('entries.disclosed', null, disclosure)], undefined])
}
