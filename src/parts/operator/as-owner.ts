/** Root in a folder of another user: what it makes there must belong to that user, or the service cannot read it. */
import { dirname, relative, resolve } from 'node:path'
import { disk, workingFolder, type Files } from '../../journal/files.ts'

/** The disk as the other user sees it, until `end` is called. */
interface AsOwner {
  readonly files: Files
  readonly end: () => void
}

/** The process stays the user that it is. */
export const STAYS: AsOwner = { files: disk, end: () => {} }

/**
 * Becomes the owner of a folder, if the process is root's and the folder is not. The owner may be unable to reach the
 * folder (systemd keeps those of dynamic users below one of root's), so it becomes the working folder, and `files`
 * names what is in it relative to it. The owner may be unable to read the keys, or a copy that is restored: `files`
 * reads those as root, and makes the names beside them durable.
 */
export function becomeOwner(folder: string, readAsRoot: readonly string[]): AsOwner {
  const { geteuid, getegid, seteuid, setegid } = process
  const stat = disk.stat(folder)
  const isRoot = geteuid?.() === 0 && stat !== undefined && stat.owner !== 0
  if (!isRoot || getegid === undefined || seteuid === undefined || setegid === undefined) return STAYS
  const group = getegid()
  const cwd = workingFolder() ?? '/'
  const names = [resolve(folder), disk.real(folder)]
  // Also by the names that links lead to: systemd's folders of dynamic users are links.
  const ofRoot = readAsRoot.flatMap(path => [path, disk.real(path)])
  const inside = (given: unknown): unknown => {
    const name = typeof given === 'string' && names.find(name => given === name || given.startsWith(`${name}/`))
    return name ? relative(name, given as string) || '.' : given
  }
  const begin = (): void => { setegid(stat.group); seteuid(stat.owner) }
  const beRoot = (): void => { seteuid(0); setegid(group) }
  const asRoot = (call: () => unknown): unknown => {
    beRoot()
    try {
      return call()
    } finally {
      begin()
    }
  }
  const foldersOfRoot = ofRoot.map(path => dirname(path))
  const calls = Object.entries<(...given: any[]) => unknown>(disk).map(([name, call]) =>
    [name, (...given: readonly unknown[]) => name === 'real' || ofRoot.includes(given[0] as string) ||
      (name === 'sync' && foldersOfRoot.includes(given[0] as string))
      ? asRoot(() => call(...given)) : call(...given.map(inside))])
  process.chdir(folder)
  begin()
  return { files: Object.fromEntries(calls) as Files, end: () => { beRoot(); process.chdir(cwd) } }
}
