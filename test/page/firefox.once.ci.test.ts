/** The page in Firefox. */
import test from 'node:test'
import { useEngine } from '../support/page.ts'

// Called in this file, so that a report names it.
useEngine('firefox', (name, options, body) => test(name, options, body))
await import('./cases/all.ts')
await import('./cases/firefox.ts')
