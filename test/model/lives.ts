/**
 * Lives of the service: programs of random steps, each from a seed; and a program that fails made as short as it
 * still fails. Each life takes few kinds of steps, so that those meet which are rare (swarm testing).
 */
import type { Member } from '../support/etcd.ts'
import { seeded } from '../support/random.ts'
import { within } from '../support/service.ts'
import { Defect } from './client.ts'
import { finish, STEPS, take } from './steps.ts'
import { World, type Config, type Store } from './world.ts'

const MAX_STEPS = 18
const OTHER_KINDS = 3

/** Kinds of steps that have to do with each other; every kind is in one, and every life has one of these. */
const THEMES: { readonly [name: string]: readonly string[] } = {
  entries: ['create', 'update', 'delete', 'undelete', 'refused', 'burst', 'entryAdd', 'entryDelete', 'entryRestore',
    'exported', 'imported', 'history'],
  users: ['login', 'logout', 'userAdd', 'userRemove', 'userPassword', 'tokenIssue', 'tokenRevokeAll', 'read'],
  groups: ['move', 'move', 'userAdd', 'userGroups', 'userGroups', 'tokenGroups', 'tokenGroups', 'create', 'update',
    'delete', 'compactDrop', 'crossing', 'narrowed'],
  kills: ['killUnderLoad', 'stopUnderLoad', 'burst', 'kill', 'stop', 'start', 'beginCompact', 'killHeld'],
  purges: ['entryPurge', 'compactDrop', 'compact', 'killHeld', 'beginCompact', 'undelete', 'history', 'read', 'equal'],
  whole: ['compact', 'rewrite', 'damage', 'damage', 'userAdd', 'tokenIssue', 'burst', 'compactDrop', 'verify'],
  keys: ['saveKeys', 'rotate', 'putKeysBack', 'rotate', 'rewrite', 'mendKeys', 'compact'],
  locks: ['removeSocket', 'removeSocket', 'beginCompact', 'beginCompact', 'beginRewrite', 'create', 'create', 'release',
    'startTwice', 'read'],
  copies: ['backup', 'backup', 'beginRestore', 'beginRestore', 'release', 'saveJournal', 'putJournalBack', 'read'],
  losses: ['loseJournal', 'init', 'putJournalBack', 'saveJournal', 'backup', 'beginRestore', 'rescue'],
  known: ['requests', 'requests', 'equal', 'equal', 'equal', 'compact', 'userRemove', 'userAdd', 'entryGet',
    'entryEdit'],
  told: ['salvage', 'rescue', 'compact', 'openUp', 'requests', 'exported', 'imported', 'embedded', 'killUnderLoad'],
  troubles: ['full', 'full', 'outage', 'outage', 'burst', 'killUnderLoad', 'requests', 'userGroups']
}

export interface Program {
  readonly config: Config
  readonly steps: readonly (readonly [name: string, number: number])[]
}

/** What is always among the steps of a life. */
const ALWAYS = ['create', 'requests', 'burst', 'restart']

/** `takesAll`: each kind of step once, in any order. */
export function programOf(seed: number, store: Store = 'file', takesAll = false): Program {
  const random = seeded(seed)
  const config = { store, production: random.int(3) === 0, isOpen: store !== 'etcd' && random.int(4) === 0 }
  const mayTake = (name: string): boolean => STEPS[name]!.on?.includes(store) !== false
  const all = Object.values(THEMES).flat().filter(mayTake)
  const kinds = [...ALWAYS, ...random.pick(Object.values(THEMES)).filter(mayTake),
    ...Array.from({ length: OTHER_KINDS }, () => random.pick(all))]
  const names = takesAll ? Object.keys(STEPS).map(name => [name, random.int(2 ** 31)] as const)
    .sort(([, a], [, b]) => a - b).map(([name]) => name)
    : Array.from({ length: MAX_STEPS }, () => random.pick(kinds))
  const team = random.int(4) === 0 ? [] : ['team']
  return { config, steps: [...team, ...names].map(name => [name, random.int(2 ** 31)] as const) }
}

/** The defect that a program finds. */
export async function live({ config, steps }: Program, etcd?: Member): Promise<Defect | undefined> {
  let at = ''
  try {
    await within(async scope => {
      const world = new World(scope, config, etcd)
      await world.init()
      for (const [name, number] of steps) {
        at = name
        await take(world, name, number)
      }
      at = 'the end'
      await finish(world)
    })
    return undefined
  } catch (error) {
    if (!(error instanceof Defect)) throw new Error(`${at}: ${(error as Error).stack}`, { cause: error })
    error.message += ` (at ${at})`
    return error
  }
}

/** Which kind of defect it is: what is said before the first colon, without numbers. */
export const kindOf = ({ message }: Error): string => message.split(/[:\n(]/)[0]!.replace(/\d+/g, 'N').trim()

/** A shorter program with the same defect: pieces are left out, halves first, as long as it stays (ddmin). */
export async function shortened(program: Program, kind: string, endMs: number, etcd?: Member): Promise<Program> {
  let { steps } = program
  for (let size = steps.length >> 1; size > 0; size >>= 1) {
    for (let at = steps.length - size; at > -size && performance.now() < endMs; at -= size) {
      const fewer = steps.filter((_, n) => n < at || n >= at + size)
      if (fewer.length === steps.length) continue
      const defect = await live({ ...program, steps: fewer }, etcd).catch(() => undefined)
      if (defect !== undefined && kindOf(defect) === kind) steps = fewer
    }
  }
  return { ...program, steps }
}

/** Kinds of steps that no life would take. */
export const idleSteps = (): string[] => Object.keys(STEPS).filter(name => name !== 'team' &&
  ![...ALWAYS, ...Object.values(THEMES).flat()].includes(name))

export interface Lasting {
  readonly store?: Store
  readonly first: number
  readonly ms: number
  readonly etcd?: Member | undefined
  /** Of a program that fails. */
  readonly shortenMs: number
  /** The first life takes each kind of step. */
  readonly beginsWithAll?: boolean
}

interface Failing {
  readonly seed: number
  readonly lives: number
  readonly defect: Error
  readonly program: Program
}

/** Lives one after the other, until the time is over; gives each that failed, once of a kind. */
export async function* failing(lasting: Lasting): AsyncGenerator<Failing, number> {
  const { store, first, ms, etcd, shortenMs, beginsWithAll = false } = lasting
  const found = new Set<string>()
  const endMs = performance.now() + ms
  let lives = 0
  do {
    const seed = first + lives
    const program = programOf(seed, store, beginsWithAll && lives === 0)
    const defect = await live(program, etcd).catch((error: Error) => error)
    lives++
    if (defect === undefined || found.has(kindOf(defect))) continue
    found.add(kindOf(defect))
    const short = defect instanceof Defect
      ? await shortened(program, kindOf(defect), performance.now() + shortenMs, etcd) : program
    yield { seed, lives, defect, program: short }
  } while (performance.now() < endMs)
  return lives
}
