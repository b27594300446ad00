/** The page in Chromium. */
import { useEngine } from '../support/page.ts'

useEngine('chromium')
await import('./cases/all.ts')
