/** Stores in this process: for a clock of the test's own, or a file layer that fails. */
import type { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { openMemoryJournal, type DurableJournal } from '../../src/journal/journal.ts'
import { openJournalFile } from '../../src/journal/folder.ts'
import { disk, type Files } from '../../src/journal/files.ts'
import type { Rotated } from '../../src/parts/commands/operation.ts'
import type { PasswordHasher } from '../../src/accounts/passwords.ts'
import { emptyState } from '../../src/slices.ts'
import { Accounts } from '../../src/accounts/accounts.ts'
import { Store, type JournalObserver } from '../../src/store/store.ts'
import { checkState } from './check.ts'
import { beginEmpty } from './journal.ts'
import { atEnd, freshFolder } from './service.ts'

export interface FileStoreOptions {
  readonly files?: Files
  readonly warn?: (line: string) => void
  readonly observer?: JournalObserver
  readonly hasher?: PasswordHasher
  readonly random?: (bytes: number) => Buffer
  readonly wallMs?: () => number
}

export type FullStore = Store & { readonly accounts: Accounts }

export function withAccounts(store: Store, options?: ConstructorParameters<typeof Accounts>[1]): FullStore {
  return Object.assign(store, { accounts: new Accounts(store, options) })
}

/** A store on a journal in a folder, without the folder's lock. */
export async function fileStore(folder: string, options: FileStoreOptions = {}): Promise<FullStore> {
  const state = emptyState()
  const sources = { random: randomBytes, wallMs: Date.now, warn: () => {}, ...options }
  const open = ['journal.jsonl', 'journal.key'].some(name => existsSync(join(folder, name))) ? openJournalFile
    : beginEmpty
  const journal = open(
    { files: disk, folder, keyFile: join(folder, 'journal.key'), mayCreate: true, ...sources }, state.apply)
  const store = new Store(journal, state)
  if (options.observer !== undefined) store.observe(options.observer)
  return withAccounts(store, options)
}

/** A store on a journal in a fresh folder, which is checked and closed when the test ends. */
export async function freshStore(t: TestContext, options: FileStoreOptions = {}): Promise<FullStore> {
  const store = await fileStore(freshFolder(t), options)
  atEnd(t, async () => {
    checkState(store.state)
    await store.close()
  })
  return store
}

/** Makes a new key; the operator's part may be out of the tree. */
export async function rotateKey(store: Store): Promise<Rotated> {
  const { rotateKey: rotate } = await import('./rewrite.ts')
  return rotate(store.journal as DurableJournal)
}

export function memoryStore(): Store {
  const state = emptyState()
  return new Store(openMemoryJournal(Date.now, state.apply), state)
}
