/** The events of users and of logins, and their effects. */
import {
  dropAddress,
  endTokens,
  hasAddress,
  narrowTokens,
  setAddress,
  type KeptToken,
  type KeptUser,
  type Token
} from '../rights/rights.ts'
import { assertNext, known, type Id, type Slice, type Tables } from '../store/events.ts'

export interface UserEvents {
  'user.added': Id & KeptUser
  /** Narrows the user's tokens. */
  'user.changed': Id & {
    readonly name?: string | undefined
    readonly abilities?: readonly string[] | undefined
    /** Null: all. */
    readonly groups?: readonly string[] | null | undefined
  }
  /** Ends the user's tokens, as a new password does. */
  'user.removed': Id
  /** Kept by a compaction; null for removed users. */
  'users.kept': { readonly first: number; readonly users: readonly (KeptUser | null)[] }
}

export interface LoginEvents {
  'password.changed': Id & Pick<KeptUser, 'passwordHash' | 'hasNoPassword' | 'isLocked'>
  /** The same password at a higher cost. */
  'password.rehashed': Id & { readonly passwordHash: string }
  /** A second factor, in base32; `step` is that of its first code. */
  'factor.given': Id & { readonly factor: string; readonly step: number }
  'factor.removed': Id
  /** `step`: of the code that the login gave. */
  'token.issued': KeptToken & { readonly step?: number | undefined }
  'token.revoked': { readonly hash: string }
  'tokens.revoked': { readonly user: number }
  /** Kept by a compaction. */
  'tokens.kept': { readonly tokens: readonly KeptToken[] }
}

const LOGIN = ['passwordHash', 'hasNoPassword', 'isLocked'] as const
const USER = [
  'email',
  'name',
  'abilities',
  'groups',
  'firstPassword',
  'factor',
  'step',
  ...LOGIN
] as const
const TOKEN = ['hash', 'user', 'abilities', 'groups', 'issued', 'expires', 'name'] as const

export const USER_EVENTS: Slice<UserEvents> = {
  isInDrafts: false,
  changesRights: true,
  types: {
    'user.added': {
      fields: ['id', ...USER],
      reduce: (tables, user) => {
        assertNext(tables.users, user.id)
        if (hasAddress(tables, user.email))
          throw new Error(`user ${user.id} has another user's address`)
        addUser(tables, user.id, user)
      }
    },
    'user.changed': {
      fields: ['id', 'name', 'abilities', 'groups'],
      reduce: ({ users, tokens, names }, { id, name, abilities, groups }) => {
        const old = known(users, id)
        const user = {
          ...old,
          name: name ?? old.name,
          abilities: abilities ?? old.abilities,
          groups: groups === undefined ? old.groups : (groups ?? undefined)
        }
        users.set(id, user)
        names.add(user.groups)
        if (abilities !== undefined || groups !== undefined) narrowTokens(tokens, user)
      }
    },
    'user.removed': {
      fields: ['id'],
      reduce: ({ users, addresses, tokens }, { id }) => {
        const old = known(users, id)
        users.set(id, {
          ...old,
          passwordHash: undefined,
          factor: undefined,
          step: undefined,
          isRemoved: true
        })
        dropAddress(addresses, old)
        endTokens(tokens, id)
      }
    },
    'users.kept': {
      fields: ['first', 'users'],
      rows: ['users', USER],
      reduce: (tables, { first, users: kept }) => {
        assertNext(tables.users, first)
        for (const [i, user] of kept.entries()) {
          const id = first + i
          if (user === null) tables.users.set(id, { id, ...REMOVED })
          else addUser(tables, id, user)
        }
      }
    }
  }
}

export const LOGIN_EVENTS: Slice<LoginEvents> = {
  isInDrafts: false,
  changesRights: false,
  types: {
    'password.changed': {
      fields: ['id', ...LOGIN],
      reduce: ({ users, tokens }, { id, passwordHash, isLocked }) => {
        const old = known(users, id)
        users.set(id, {
          ...old,
          passwordHash,
          firstPassword: undefined,
          isLocked,
          passwords: old.passwords + 1
        })
        endTokens(tokens, id)
      }
    },
    'password.rehashed': {
      fields: ['id', 'passwordHash'],
      reduce: ({ users }, { id, passwordHash }) => {
        users.set(id, { ...known(users, id), passwordHash })
      }
    },
    'factor.given': {
      fields: ['id', 'factor', 'step'],
      reduce: ({ users }, { id, factor, step }) => {
        users.set(id, { ...known(users, id), factor, step })
      }
    },
    'factor.removed': {
      fields: ['id'],
      reduce: ({ users }, { id }) => {
        users.set(id, { ...known(users, id), factor: undefined, step: undefined })
      }
    },
    'token.issued': {
      fields: [...TOKEN, 'step'],
      reduce: (
        tables,
        { hash, user, abilities, groups, issued, expires, name, step },
        _timeMs,
        by
      ) => {
        if (step !== undefined) tables.users.set(user, { ...known(tables.users, user), step })
        // A user's tokens come from logins, all others from the operator.
        const isOfLogin = by !== null
        const more = {
          ...(groups && { groups }),
          ...(name !== undefined && { name }),
          ...(isOfLogin && { isOfLogin })
        }
        addToken(tables, hash, { user, abilities, issued, expires, ...more })
      }
    },
    'token.revoked': {
      fields: ['hash'],
      reduce: ({ tokens }, { hash }) => {
        tokens.delete(hash)
      }
    },
    'tokens.revoked': {
      fields: ['user'],
      reduce: ({ tokens }, { user }) => endTokens(tokens, user)
    },
    'tokens.kept': {
      fields: ['tokens'],
      rows: ['tokens', [...TOKEN, 'isOfLogin']],
      reduce: (tables, { tokens }) => {
        for (const { hash, ...token } of tokens) addToken(tables, hash, token)
      }
    }
  }
}

/** A removed user after a compaction: only the number is left. */
const REMOVED = {
  email: '',
  name: '',
  abilities: [],
  passwordHash: undefined,
  passwords: 1,
  isRemoved: true as const
}

function addUser({ users, addresses, names }: Tables, id: number, kept: KeptUser): void {
  const { email, name, abilities, groups, passwordHash, firstPassword, factor, step, isLocked } =
    kept
  const user = {
    id,
    email,
    name,
    abilities,
    groups,
    passwordHash,
    passwords: 1,
    firstPassword,
    factor,
    step,
    isLocked
  }
  users.set(id, user)
  setAddress(addresses, user)
  names.add(groups)
}

function addToken({ users, tokens, names }: Tables, hash: string, token: Token): void {
  known(users, token.user)
  tokens.set(hash, token)
  names.add(token.groups)
}
