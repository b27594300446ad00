/** What can be done to the service: one step each, with a number that decides all that is random in it. */
import { seeded, type Random } from '../support/random.ts'
import { check, readAll, verified } from './check.ts'
import { Defect } from './client.ts'
import { FILES } from './files.ts'
import { BESIDE, OPERATOR } from './operator.ts'
import { burst, REQUESTS } from './requests.ts'
import { OWNER, Unusable, type Store, type World } from './world.ts'

export type Act = (world: World, random: Random) => Promise<unknown>

export interface Step {
  /** When it can be done: while the service runs, while none runs, or always; otherwise that is brought about first. */
  readonly when: 'running' | 'stopped' | 'any'
  /** Whether it can be done beside a command that is held; otherwise that is let go first. */
  readonly beside?: boolean
  /** Needs a journal that can be read. */
  readonly needsJournal?: boolean
  /** Needs commands that the service, if one runs, knows of. */
  readonly needsCommands?: boolean
  /** All stores without it. */
  readonly on?: readonly Store[]
  readonly run: Act
}
export type Steps = { readonly [name: string]: Step }

export const STEPS: Steps = {
  ...REQUESTS,
  burst: { when: 'running', run: burst(BESIDE) },
  ...OPERATOR,
  ...FILES
}

/** Does one step, once what it needs is brought about; then what is served is compared. */
export async function take(world: World, name: string, number: number): Promise<void> {
  const { when, beside, needsJournal, needsCommands, on, run } = STEPS[name]!
  if (on?.includes(world.config.store) === false) return
  if (world.pending !== undefined && beside !== true) await world.release()
  if (when === 'stopped') await world.end('SIGTERM')
  if (when === 'running' && !await start(world)) return
  if ((needsJournal || needsCommands) && (world.isMissing() || world.lackingKeys().length > 0)) return
  if (needsCommands && (world.isSocketGone || world.isSplit)) return
  await run(world, seeded(number)).catch(error => { if (!(error instanceof Unusable)) throw error })
  if (world.isFile) world.noteKeys()
  await check(world)
}

/** Starts the service as an operator would who reads why it was refused. */
async function start(world: World): Promise<boolean> {
  if (world.servers.every(server => server !== undefined) || await world.start()) return true
  if (world.pending !== undefined && !world.isMissing()) return false
  if (world.lackingKeys().length === 0) return false
  world.mendKeys()
  if (world.lackingKeys().length > 0) throw new Defect('no file ever held a key that the journal was sealed with')
  return world.start()
}

/** The end of a life: what is there is verified, and a fresh start serves it. */
export async function finish(world: World): Promise<void> {
  await world.release()
  await world.end('SIGTERM')
  if (world.isMissing()) return
  if (world.isFile) {
    world.mendKeys()
    await verified(world)
  }
  if (!await world.start()) throw new Defect('the last start is refused')
  await check(world)
  if (!world.mayRefuse()) await readAll(world, seeded(world.checks), await world.tokenOf(OWNER))
  await check(world)
}
