import test from 'node:test'
import { useEngine } from '../support/page.ts'
useEngine('chromium', (name, options, body) => test(name, options, body))
await import('./cases/requests.ts')
await import('./cases/fits.ts')
