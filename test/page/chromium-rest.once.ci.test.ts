/** The page in Chromium: what is left to CI. */
import test from 'node:test'
import { useEngine } from '../support/page.ts'

// Called in this file, so that a report names it.
useEngine('chromium', (name, options, body) => test(name, options, body))
await import('./cases/rarer.ts')
