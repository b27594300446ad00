/** Every test of the page; each says in which engines it runs. */
import './everyday.ts'
import './rarer.ts'
