/** The page in WebKit. */
import test from 'node:test'
import { useEngine } from '../support/page.ts'

// Called in this file, so that a report names it.
useEngine('webkit', (name, options, body) => test(name, options, body))
await import('./cases/all.ts')
