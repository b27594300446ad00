/** What opens most closes: a protected service with all that is switched on. */
import { ALL_ON, leavesNothingOnceClosed } from './openings.ts'

leavesNothingOnceClosed(ALL_ON)
