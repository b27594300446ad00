/**
 * Full houses against honest clients, for a build of the program: PLACES (172), SECONDS (12) of each attack, TLS=1,
 * PER_SECOND new connections of the attackers (as many as there are places, at most 600), ATTACKS a pattern.
 * `node --import tsx test/campaigns/places.ts [DIST]`
 */
import { join } from 'node:path'
import { DESCRIPTOR_RESERVE } from '../../src/limits.ts'
import { ATTACKS, besiege, openHouse } from '../support/places.ts'
import { SERVER } from '../support/program.ts'
import { within } from '../support/service.ts'

const { PLACES = '172', SECONDS = '12', TLS = '', ATTACKS: pattern = '' } = process.env
const places = Number(PLACES)
const perSecond = Number(process.env['PER_SECOND'] ?? Math.min(places, 600))
const server = process.argv[2] === undefined ? SERVER : join(process.argv[2], 'server.js')
const limited = `ulimit -n ${places + DESCRIPTOR_RESERVE}; exec "$0" "$@"`
const sums: { [honest: string]: { asked: number, served: number, again: number } } = {}

for (const kind of ATTACKS.filter(kind => new RegExp(pattern).test(kind))) {
  await within(async t => {
    const house = await openHouse(t, places, TLS !== '', ['sh', '-c', limited, process.execPath, server])
    const results = await besiege(house, kind, Number(SECONDS), perSecond)
    const cells = Object.entries(results).map(([honest, { asked, served, again }]) => {
      const sum = sums[honest] ??= { asked: 0, served: 0, again: 0 }
      sum.asked += asked
      sum.served += served
      sum.again += again
      return `${honest} ${served}/${asked}${again > 0 ? ` (${again} came again)` : ''}`
    })
    console.log(`${kind}: ${cells.join(', ')}`)
  })
}
console.log(`all: ${Object.entries(sums).map(([honest, { asked, served, again }]) =>
  `${honest} ${served}/${asked}${again > 0 ? ` (${again} came again)` : ''}`).join(', ')}`)
