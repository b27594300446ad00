/** The page in WebKit. */
import { useEngine } from '../support/page.ts'

useEngine('webkit')
await import('./cases/all.ts')
