/** What a test says to a program that was started with `slow-disk-calls.js`, through the folder that both know. */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const HELD = fileURLToPath(new URL('slow-disk-calls.js', import.meta.url))
const KINDS = ['rewrite', 'read'] as const
type Kind = typeof KINDS[number]

export function hold(folder: string, kind: Kind, file = ''): void { writeFileSync(join(folder, kind), file) }
export function isReached(folder: string): boolean { return KINDS.some(kind =>
  existsSync(join(folder, `${kind}.reached`))) }

export function letGo(folder: string): void {
  // In this order: what is renamed between the two is removed by the second.
  for (const kind of KINDS) for (const name of [kind, `${kind}.reached`]) rmSync(join(folder, name), { force: true })
}
