/** The page in Firefox. */
import { useEngine } from '../support/page.ts'

useEngine('firefox')
await import('./cases/all.ts')
