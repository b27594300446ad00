/**
 * The operations of the process that has the data folder. Another process calls them through the
 * lock's socket.
 */
import { FileJournal } from '../../../journal/file-journal.ts'
import type { Files } from '../../../journal/files.ts'
import type { DurableJournal } from '../../../journal/journal.ts'
import {
  ADDRESS_SHAPE,
  CHANGE_SHAPE,
  LOGIN_SHAPE,
  TOKEN_SHAPE,
  USER_SHAPE,
  type GivenGroups
} from '../../../accounts/account-shapes.ts'
import { ANY_ABILITY, type NeededByOperation } from '../../../rights/rights.ts'
import { Accounts } from '../../../accounts/accounts.ts'
import {
  createEntry,
  deleteEntry,
  restoreEntry,
  updateEntry
} from '../../../entries/entry-commands.ts'
import {
  ENTRY_FIELDS,
  FIELDS,
  OPEN_FIELDS,
  SECRET_FIELDS,
  type Entry
} from '../../../entries/entry.ts'
import { CREATE_SHAPE, UPDATE_SHAPE } from '../../../entries/entry-shapes.ts'
import type { Store } from '../../../store/store.ts'
import { codeAt, otpIn, secondsLeft, stepAt } from '../../../accounts/totp.ts'
import { number, optional, rule, text, texts, type Rule } from '../../../rights/validate.ts'
import { OperatorError } from '../../commands/command.ts'
import type {
  Among,
  RequestBody,
  Changed,
  FolderStatus,
  FoundEntries,
  ImportRow,
  Listed,
  Named,
  NewGroups,
  OperationName,
  Result
} from '../../commands/operation.ts'
import { folded } from '../../commands/terminal.ts'
import {
  disclosing,
  forOperator,
  groupsInUse,
  importEntries,
  oneOf,
  purgeEntry,
  type OperatorCommits
} from './operator-changes.ts'
import { exposedEntries, exposedIn, knownBy, SLICE_ENTRIES } from './exposed-entries.ts'
import { leastIds } from './least-ids.ts'
import { confirmRescue, rescuedKeys, rescuedLines, type Rescue } from '../rewriting/rescue.ts'
import { rotateKey } from '../rewriting/rotate-key.ts'

export interface Operated {
  readonly store: Store
  readonly journal: DurableJournal
  readonly abilities: NeededByOperation
  readonly readMs: number
  readonly warn: (line: string) => void
  readonly rescue: Rescue
  readonly folder: string
  readonly files: Files
}

/** `by`: the account that asks, recorded with each change. */
export interface OperationCall extends Operated {
  readonly by: string
  readonly commits: OperatorCommits
  readonly accounts: Accounts
}

export interface SocketOperation<B, R> {
  readonly shape: { readonly [F in keyof B]-?: Rule<B[F]> }
  run(call: OperationCall, body: B): R | Promise<R>
}

const id: Rule<number> = number(1, Number.MAX_SAFE_INTEGER)
const flag: Rule<boolean> = rule(value => typeof value === 'boolean', 'be true or false')
const among: Rule<Among> = oneOf('active', 'deleted', 'all')
const command: Rule<string | undefined> = optional(text)
const rows: Rule<ImportRow[]> = rule(Array.isArray, 'be a list of entries')
const DAY_MS = 24 * 60 * 60 * 1000
const MAX_DAYS = 36_500
const PAGE_CHARACTERS = 1024 * 1024

const NO_USER = 'there is no user with this address'

function assertFound<T>(found: T | false | undefined, why: string): T {
  if (found === false || found === undefined) throw new OperatorError(why)
  return found
}

function named(entry: Entry | false | undefined, id: number): Named {
  const { sistema, usuario, ...found } = assertFound(entry, noEntry(id))
  return { id: found.id, sistema, usuario }
}

const noEntry = (id: number): string => `no entry ${id}`

export const SOCKET_OPERATIONS: {
  readonly [N in OperationName]: SocketOperation<RequestBody<N>, Result<N>>
} = {
  status: { shape: {}, run: call => statusOf(call) },

  listUsers: { shape: {}, run: ({ accounts }) => accounts.users() },
  addUser: {
    shape: USER_SHAPE,
    run: (call, { email, name, abilities = [ANY_ABILITY], password, groups }) =>
      withNewGroups(call, groups, async () =>
        assertFound(
          await call.accounts.addUser(email, name, abilities, password ?? null, groups),
          'there is a user with this address already'
        )
      )
  },
  addUsers: {
    shape: { users: rule(Array.isArray, 'be a list of users'), isTrial: flag },
    run: (call, { users, isTrial }) => {
      const groups = users.flatMap(({ groups }) => groups ?? [])
      const taken = users
        .map(({ email }) => email)
        .filter(email => call.store.state.userOf(email) !== undefined)
      call.accounts.assertAddable(users)
      return withNewGroups(call, [...new Set(groups)], async () => ({
        taken,
        users: isTrial || taken.length > 0 ? [] : await call.accounts.addUsers(users, true)
      }))
    }
  },
  setPassword: {
    shape: LOGIN_SHAPE,
    run: async (call, { email, password }) =>
      done(call, await call.accounts.setPassword(email, password ?? null), NO_USER)
  },
  changeUser: {
    shape: CHANGE_SHAPE,
    run: async (call, { email, name, abilities, groups }) => {
      const { state } = call.store
      const user = assertFound(state.userOf(email), NO_USER).id
      const changed = await withNewGroups(call, groups, async () =>
        done(call, await call.accounts.changeUser(email, name, abilities, groups), NO_USER)
      )
      return { ...changed, ...(await knownBy(state, user)) }
    }
  },
  removeUser: {
    shape: ADDRESS_SHAPE,
    run: async (call, { email }) => {
      const { state } = call.store
      const user = assertFound(state.userOf(email), NO_USER).id // nobody has the address afterwards
      const removed = done(call, await call.accounts.removeUser(email), NO_USER)
      return { ...removed, ...(await knownBy(state, user)) }
    }
  },
  giveFactor: {
    shape: { ...ADDRESS_SHAPE, factor: text, code: text },
    run: async (call, { email, factor, code }) =>
      done(call, await call.accounts.giveFactor(email, factor, code), NO_USER)
  },
  removeFactor: {
    shape: ADDRESS_SHAPE,
    run: async (call, { email }) => done(call, await call.accounts.removeFactor(email), NO_USER)
  },
  listTokens: { shape: {}, run: ({ accounts }) => accounts.tokens() },
  issueToken: {
    shape: TOKEN_SHAPE,
    run: (call, { email, abilities, ttlMinutes, name, groups }) =>
      withNewGroups(call, groups, async () =>
        assertFound(await call.accounts.issue(email, abilities, ttlMinutes, name, groups), NO_USER)
      )
  },
  revokeToken: {
    shape: { id: text },
    run: async (call, { id }) =>
      done(call, await call.accounts.revokeToken(id), 'there is no token with this id')
  },
  revokeTokens: {
    shape: ADDRESS_SHAPE,
    run: async (call, { email }) => done(call, await call.accounts.revokeAll(email), NO_USER)
  },

  findEntries: {
    shape: {
      from: id,
      text: optional(text),
      among,
      oldDays: optional(number(0, MAX_DAYS)),
      isReused: optional(flag),
      isExposed: optional(flag)
    },
    run: (
      { store: { state }, abilities },
      { from, text = '', among, oldDays, isReused = false, isExposed = false }
    ): FoundEntries => {
      const { entries } = state
      const { numbers } = state.knowledge
      const exposure = isExposed ? exposedEntries(state, abilities) : undefined
      const wanted = folded(text)
      const isOld = (changedMs: number = -Infinity): boolean =>
        oldDays === undefined || changedMs < Date.now() - oldDays * DAY_MS
      const leastId = isReused ? leastIds(state) : undefined
      const found: Listed[] = []
      const behind = from + SLICE_ENTRIES
      for (let id = from; id < behind && id <= entries.size; id++) {
        const entry = entries.get(id)
        if (entry === undefined) continue
        const holds = OPEN_FIELDS.some(field => folded(entry[field] ?? '').includes(wanted))
        const changedMs = entries.changedMs(entry.id)
        if (!holds || !isAmong(entry, among) || !isOld(changedMs)) continue
        const number = numbers.of(entry.id)
        const reused = leastId && numbers.active(number) - 1
        const exposed = exposure?.of(entry)
        if (reused === 0 || (exposure !== undefined && exposed === undefined)) continue
        const changed = changedMs === undefined ? null : new Date(changedMs).toISOString()
        found.push({
          ...withoutSecrets(entry),
          ...(oldDays !== undefined && { changed }),
          ...(reused && { reused, sameAs: leastId!.get(number)! }),
          ...(exposed && { ...exposed, ...optionalSecrets(entry) })
        })
      }
      const { lists = [], users = [] } = exposure ?? {}
      return { found, lists, users, ...(behind <= entries.size && { next: behind }) }
    }
  },
  getEntry: {
    shape: { id, command, field: optional(oneOf(...ENTRY_FIELDS)) },
    run: async (call, { id, command, field }) => {
      if (command === undefined)
        return hidden(assertFound(call.store.state.entries.get(id), noEntry(id)))
      // Who is shown another secret alone does not know the password.
      const fields = field === undefined || field === 'password' ? undefined : [field]
      const found = await disclosing(call, entries => {
        const entry = entries.get(id)
        return entry && [entry, { command, ids: [id], fields }]
      })
      const entry = assertFound(found, noEntry(id))
      return field === undefined ? entry : { ...hidden(entry), [field]: entry[field] }
    }
  },
  getCode: {
    shape: { id },
    run: (
      {
        store: {
          state: { entries }
        }
      },
      { id }
    ) => {
      const entry = assertFound(entries.get(id), noEntry(id))
      const { sistema, usuario } = entry
      const otp = assertFound(
        otpIn(entry.otp ?? ''),
        `entry ${id} (${sistema}, ${usuario}) has no one-time code`
      )
      const nowMs = Date.now()
      return {
        id,
        sistema,
        usuario,
        code: codeAt(otp, stepAt(otp, nowMs)),
        seconds: secondsLeft(otp, nowMs)
      }
    }
  },
  readEntries: {
    shape: { from: id, among, command: text },
    run: async (call, { from, among, command }) => {
      const { entries } = call.store.state
      const page = await disclosing(call, () => {
        const found: Entry[] = []
        let next = from
        for (let characters = 0; next <= entries.size && characters < PAGE_CHARACTERS; next++) {
          const entry = entries.get(next)
          if (entry === undefined || !isAmong(entry, among)) continue
          characters += entries.text(next)!.length
          found.push(entry)
        }
        const ids = found.map(({ id }) => id)
        return [
          { found, ...(next <= entries.size && { next }) },
          { command, ids }
        ]
      })
      return page!
    }
  },
  addEntry: {
    shape: CREATE_SHAPE,
    run: async ({ commits }, fields) => named(await createEntry(commits, fields, null), 0)
  },
  editEntry: {
    shape: { id, ...UPDATE_SHAPE },
    run: async ({ commits }, { id, ...fields }) => ({
      ...named(await updateEntry(commits, id, fields, null), id),
      isChanged: commits.isChanged
    })
  },
  deleteEntry: {
    shape: { id },
    run: async ({ commits }, { id }) => ({
      ...named((await deleteEntry(commits, id, null)) && commits.state.entries.get(id), id),
      isChanged: commits.isChanged
    })
  },
  restoreEntry: {
    shape: { id },
    run: async ({ commits }, { id }) => ({
      ...named((await restoreEntry(commits, id, null)) && commits.state.entries.get(id), id),
      isChanged: commits.isChanged
    })
  },
  purgeEntry: {
    shape: { id },
    run: async ({ commits, store: { state }, abilities }, { id }) => {
      const exposed = exposedIn(state, abilities, id) // before: nobody knows it afterwards
      return { ...named(await purgeEntry(commits, id), id), ...exposed }
    }
  },
  disclose: {
    shape: { command: text, id: optional(id), former: optional(texts) },
    run: async (call, { command, id, former }) => {
      const { entries } = call.store.state
      await disclosing(call, () =>
        id === undefined
          ? [{}, { command, ids: [], everything: true }]
          : [{}, { command, ids: entries.has(id) ? [id] : [], former }]
      )
      return {}
    }
  },
  importEntries: {
    shape: { rows, keepsDuplicates: flag, isTrial: flag },
    run: ({ commits }, { rows, ...how }) => importEntries(commits, rows, how)
  },

  rotateKey: { shape: {}, run: ({ journal }) => rotateKey(journal) },
  rescueJournal: {
    shape: { damage: optional(text) },
    run: ({ journal, store }, { damage }) => rescuedLines(journal, store.state, damage)
  },
  rescueKeys: { shape: {}, run: ({ journal }) => rescuedKeys(journal) },
  confirmRescue: {
    shape: { head: text },
    run: ({ journal, rescue }, { head }) => confirmRescue(journal, rescue, head)
  }
}

const HIDDEN = '********'

function hidden(entry: Entry): Entry {
  const secrets = SECRET_FIELDS.filter(field => entry[field] !== undefined)
  return { ...entry, ...Object.fromEntries(secrets.map(field => [field, HIDDEN])) }
}

function withoutSecrets(entry: Entry): Listed {
  return Object.fromEntries(
    Object.entries(entry).filter(
      ([name]) => name !== 'status' && !SECRET_FIELDS.some(secret => secret === name)
    )
  ) as unknown as Listed
}

/** `true` for each that is set: such values stay known if only the password changes. */
function optionalSecrets(entry: Entry): { readonly [field: string]: true } {
  const set = ENTRY_FIELDS.filter(
    field => FIELDS[field].isSecret && !FIELDS[field].isRequired && entry[field]
  )
  return Object.fromEntries(set.map(field => [field, true as const]))
}

function isAmong({ status }: Entry, among: Among): boolean {
  return among === 'all' || status === (among === 'active' ? 1 : 0)
}

/** A name that nobody has yet may be a mistake. */
async function withNewGroups<T>(
  { store: { state } }: OperationCall,
  given: GivenGroups,
  make: () => Promise<T>
): Promise<T & NewGroups> {
  const used = groupsInUse(state)
  const newGroups = (given ?? []).filter(name => !used.has(state.names.spelled(name)))
  return { ...(await make()), newGroups }
}

function done({ commits }: OperationCall, isFound: boolean, why: string): Changed {
  assertFound(isFound, why)
  return { isChanged: commits.isChanged }
}

function statusOf({ journal, store, readMs }: Operated): FolderStatus {
  const file = journal instanceof FileJournal ? journal.files.stat(journal.path) : undefined
  const { entries } = store.state
  return {
    pid: process.pid,
    ...journal.location(),
    ...journal.status(),
    entries: entries.count,
    activeEntries: entries.active,
    readMs,
    file
  }
}

export function callOf(operated: Operated, by: string): OperationCall {
  const commits = forOperator(operated.store, by)
  const accounts = new Accounts(commits, { abilities: operated.abilities.values() })
  return { ...operated, by, commits, accounts }
}
