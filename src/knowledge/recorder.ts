import type { Recorder } from '../http/pipeline.ts'
import type { Reply } from '../http/reply.ts'
import type { Commits } from '../store/store.ts'
import { disclosed, isRecorded } from './disclosure.ts'

export function recorderOn(commits: Commits): Recorder {
  return {
    isRecorded: ({ session }, { tells }) =>
      tells === undefined || isRecorded(commits, session, tells),
    recorded: (call, { again }) => {
      const { session, route } = call
      const read = again ?? ((): Reply => route.handle(call) as Reply)
      return disclosed(commits, session, route.operation, read)
    }
  }
}
