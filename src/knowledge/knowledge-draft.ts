/** Who knows which password, as commands of one write see it. */
import type { Knower, Knowledge, KnowledgeTable, List, Recording, Tells } from './knowledge.ts'

/**
 * What is known after the earlier commands of a write; at worst it knows less, which costs a
 * record.
 */
export class KnowledgeDraft implements KnowledgeTable {
  readonly #knowledge: Knowledge
  /** By id, who set a password in this write. */
  readonly #setBy = new Map<number, Knower | undefined>()
  readonly #told = new Map<number, Set<Knower>>()
  /** By knower and list. */
  readonly #lists = new Map<string, number>()
  #changes: number
  recording: Recording

  constructor(knowledge: Knowledge) {
    this.#knowledge = knowledge
    this.#changes = knowledge.changes
    this.recording = knowledge.recording
  }

  set(id: number, by: Knower | undefined): void {
    this.#changes++
    this.#setBy.set(id, by)
    this.#told.delete(id)
  }

  leaveLists(): void {}

  changeLists(): void {
    this.#changes++
  }

  forget(id: number): void {
    this.set(id, undefined)
  }

  tell(knower: Knower, tells: Tells): void {
    if (typeof tells === 'number') this.#tell(knower, tells)
    else if ('list' in tells) this.#lists.set(keyOf(knower, tells.list), this.#changes)
    else for (const id of tells) this.#tell(knower, id)
  }

  record(what: 'begun' | 'ended' | 'gap'): void {
    if (what !== 'gap') this.recording = what
  }

  isKnown(knower: Knower, tells: Tells): boolean {
    if (typeof tells === 'number') return this.#knows(knower, tells)
    if (!('list' in tells)) return tells.every(id => this.#knows(knower, id))
    if (this.#lists.get(keyOf(knower, tells.list)) === this.#changes) return true
    return this.#changes === this.#knowledge.changes && this.#knowledge.isKnown(knower, tells)
  }

  #tell(knower: Knower, id: number): void {
    const told = this.#told.get(id)
    if (told !== undefined) told.add(knower)
    else this.#told.set(id, new Set([knower]))
  }

  #knows(knower: Knower, id: number): boolean {
    if (this.#told.get(id)?.has(knower) === true) return true
    return this.#setBy.has(id) ? this.#setBy.get(id) === knower : this.#knowledge.knows(knower, id)
  }
}

function keyOf(knower: Knower, list: List): string {
  return JSON.stringify([knower, list])
}
