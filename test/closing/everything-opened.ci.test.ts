/** Everything else that opens closes, also if a part of it cannot be opened. */
import { PARTS } from '../../src/settings.ts'
import { closesWhatWasOpened } from './opened-parts.ts'
import { ALL_ON, leavesNothingOnceClosed, OPENINGS } from './openings.ts'

for (const name of Object.keys(OPENINGS)) if (name !== ALL_ON) leavesNothingOnceClosed(name)
for (const part of [...PARTS, undefined]) closesWhatWasOpened(part)
