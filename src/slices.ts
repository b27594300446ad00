/** What a journal may hold, and the state that it makes. */
import { LOGIN_EVENTS, USER_EVENTS } from './accounts/user-events.ts'
import { ENTRY_EVENTS } from './entries/entry-events.ts'
import { Entries } from './entries/entry-table.ts'
import { KNOWLEDGE_EVENTS } from './knowledge/knowledge-events.ts'
import { Knowledge } from './knowledge/knowledge.ts'
import { GroupNames } from './rights/groups.ts'
import { EventTypes, JOURNAL_EVENTS } from './store/events.ts'
import { State } from './store/state.ts'

export const EVENTS: EventTypes = new EventTypes([
  ENTRY_EVENTS,
  USER_EVENTS,
  LOGIN_EVENTS,
  KNOWLEDGE_EVENTS,
  JOURNAL_EVENTS
])

export function emptyState(): State {
  const clock = { now: 0 }
  const names = new GroupNames()
  const entries = new Entries(names, clock)
  return new State(EVENTS, { clock, names, entries, knowledge: new Knowledge(clock) })
}
