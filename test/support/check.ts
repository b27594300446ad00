/** Whether a state agrees with itself: asked after every test, by the operator's own check, while that part is there. */
import type { State } from '../../src/store/state.ts'

const path = '../../src/parts/operator/check.ts'
const operator: { checkState(state: State): void } | undefined = await import(path).catch(error => {
  if (error.code === 'ERR_MODULE_NOT_FOUND') return undefined
  throw error
})

export function checkState(state: State): void { operator?.checkState(state) }
