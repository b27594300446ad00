/**
 * Lives of the service: programs of random steps, each from a seed; and a program that fails made as short as it
 * still fails. Each life takes few kinds of steps, so that those meet which are rare (swarm testing).
 */
import { seeded } from '../support/random.ts'
import { Defect } from './state.ts'
import { finish, STEPS, take } from './steps.ts'
import { World, type Config } from './world.ts'

const MAX_STEPS = 16
const OTHER_KINDS = 2

/** Kinds of steps that have to do with each other; every kind is in one, and every life has one of these. */
const THEMES: { readonly [name: string]: readonly string[] } = {
  entries: ['create', 'update', 'delete', 'restore', 'refused', 'burst', 'entryAdd', 'entryDelete', 'entryRestore',
    'exportAndImport'],
  users: ['login', 'logout', 'userAdd', 'userRemove', 'userPassword', 'tokenIssue', 'tokenRevokeAll', 'create'],
  groups: ['move', 'move', 'userAdd', 'userGroups', 'userGroups', 'tokenGroups', 'tokenGroups', 'create', 'update',
    'delete', 'compactDrop'],
  kills: ['killUnderLoad', 'stopUnderLoad', 'burst', 'kill', 'stop', 'start', 'beginCompact', 'killHeld'],
  purges: ['entryPurge', 'compactDrop', 'compact', 'killHeld', 'beginCompact', 'restore', 'exportAndImport'],
  whole: ['compact', 'rewrite', 'damage', 'damage', 'userAdd', 'tokenIssue', 'burst', 'compactDrop', 'verify'],
  keys: ['saveKeys', 'rotate', 'putKeysBack', 'rotate', 'rewrite', 'mendKeys', 'compact'],
  locks: ['removeSocket', 'removeSocket', 'beginCompact', 'beginCompact', 'beginRewrite', 'create', 'create', 'release',
    'startTwice'],
  copies: ['backup', 'backup', 'beginRestore', 'beginRestore', 'release', 'saveJournal', 'putJournalBack'],
  losses: ['loseJournal', 'init', 'putJournalBack', 'saveJournal', 'backup', 'beginRestore']
}

export interface Program {
  readonly config: Config
  readonly steps: readonly (readonly [name: string, number: number])[]
}

/** What is always among the steps of a life. */
const ALWAYS = ['create', 'restart']

export function programOf(seed: number): Program {
  const random = seeded(seed)
  const config = { production: random.int(3) === 0, auth: random.int(2) === 0 }
  const all = Object.values(THEMES).flat()
  const kinds = [...ALWAYS, ...random.pick(Object.values(THEMES)),
    ...Array.from({ length: OTHER_KINDS }, () => random.pick(all))]
  const steps = Array.from({ length: MAX_STEPS }, () => [random.pick(kinds), random.int(2 ** 31)] as const)
  return { config, steps }
}

export async function live({ config, steps }: Program): Promise<Defect | undefined> {
  const world = new World(config)
  let at = ''
  try {
    await world.done('init')
    for (const [name, number] of steps) {
      at = name
      await take(world, name, number)
    }
    at = 'the end'
    await finish(world)
    return undefined
  } catch (error) {
    if (!(error instanceof Defect)) throw new Error(`${at}: ${(error as Error).stack}`, { cause: error })
    error.message += ` (at ${at})`
    return error
  } finally {
    await world.close()
  }
}

/** Which kind of defect it is: what is said before the first colon, without numbers. */
export const kindOf = ({ message }: Error): string => message.split(/[:\n(]/)[0]!.replace(/\d+/g, 'N').trim()

/** A shorter program with the same defect: pieces are left out, halves first, as long as it stays (ddmin). */
export async function shortened(program: Program, kind: string, endMs: number): Promise<Program> {
  let { steps } = program
  for (let size = steps.length >> 1; size > 0; size >>= 1) {
    for (let at = steps.length - size; at > -size && performance.now() < endMs; at -= size) {
      const fewer = steps.filter((_, n) => n < at || n >= at + size)
      if (fewer.length === steps.length) continue
      const defect = await live({ ...program, steps: fewer }).catch(() => undefined)
      if (defect !== undefined && kindOf(defect) === kind) steps = fewer
    }
  }
  return { ...program, steps }
}

export function textOf({ config, steps }: Program): string { return JSON.stringify({ config, steps }) }

/** Kinds of steps that no life would take. */
export const idleSteps = (): string[] => Object.keys(STEPS).filter(name =>
  ![...ALWAYS, ...Object.values(THEMES).flat()].includes(name))
