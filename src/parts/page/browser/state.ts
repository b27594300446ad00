/** What the page knows; all of it is forgotten when the session ends or the page is left. */
import { Api, type Operation } from './api.ts'
import { Entries } from './entries.ts'

export const api: Api = new Api()
export const entries: Entries = new Entries()
/** What the token was refused for want of an ability; the contract has no other way to find out. */
export const denied: Set<Operation> = new Set()

/** Whether this session has had the list yet. */
export const loaded = { is: false }
