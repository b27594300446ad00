/** What embedders import. */
export { openService, type Log, type Service } from './service.ts'
export { readSettings, type Settings } from './config.ts'
export { Failure, type FailureCode } from './errors.ts'
export { Store } from './store/store.ts'
export type { Entry, EntryFields } from './store/record.ts'
