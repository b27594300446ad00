/** An event as the journal takes it. */
import type { EncodedEvent } from '../journal/journal.ts'
import type { Events } from './events.ts'

export function event<T extends keyof Events>(
  type: T,
  by: number | null,
  data: Events[T]
): EncodedEvent {
  return { type, by, data, json: JSON.stringify(data) }
}
