/** What the page knows; all of it is forgotten when the session ends or the page is left. */
import { Api } from './api.ts'
import { Entries } from './entries.ts'
import { Rights } from './rights.ts'

export const api: Api = new Api()
export const entries: Entries = new Entries()
export const rights: Rights = new Rights()

/** Whether this session has had a list yet, or the beginning of one. */
export const loaded = { is: false }
