/** Code that nothing runs while coverage is measured, and why: by source, then by its line as JavaScript. */

const NEVER = 'it guards what nothing else lets happen, so no test comes there'
const ETCD = 'with the journal in etcd: test/etcd'
const HOSTILE = 'test/program/hostile.test.ts, which looks at memory as well'
const SOUND = 'the look at a state that is sound; simulation and tests after each step find no other'
const TYPE = 'what the type allows, and Node never gives'
const GONE = 'the server that was just asked leaves in that instant; test/program/admin.test.ts meets it now and then'
const RACE = 'somebody else acts in the instant between two looks'

/** The reasons that `coverage.ts` goes by. */
export const REASONS: { readonly [source: string]: { readonly [line: string]: string } } = {
}
