/** Refusals that say what to do next, and that have no other place. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { admin, done, initialized, refused } from '../support/admin.ts'
import { SERVER } from '../support/program.ts'
import { missing } from '../support/programs.ts'
import { freshFolder } from '../support/service.ts'

const NOT_ROOT = process.geteuid?.() === 0 ? missing('unshare', 'setpriv') : 'only root can take away a right'

test('a port below 1024 without the right to take it: the start says how to get that, or to take another port', {
  skip: NOT_ROOT
}, t => {
  // In a network of its own, whose lowest free port is 1024 whatever the machine says.
  const words = ['-n', 'setpriv', '--bounding-set=-net_bind_service', process.execPath, SERVER,
    '--data', freshFolder(t), '--host', '0.0.0.0', '--port', '81']
  const { status, stderr } = spawnSync('unshare', words, { encoding: 'utf8', env: {}, timeout: 60_000 })
  const why = new RegExp('PORT 81: EACCES; this user may not take a port below 1024 ' +
    '\\(systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE\\): --port takes another one$', 'm')
  assert.match(stderr, why)
  assert.equal(status, 1)
})

test('a second backup within the same second is refused, says so, and leaves the first', async t => {
  const folder = await initialized(t)
  const there = freshFolder(t)
  for (let second = 0; second < 120; second++) {
    const time = new Date(Date.now() + second * 1000).toISOString().replace(/[-:]|\.\d+/g, '')
    writeFileSync(join(there, `b-${time}.jsonl`), 'the first')
  }
  const before = readdirSync(there)
  await refused(folder, `journal backup ${there}/b.jsonl --timestamp`, 1,
    /b-\d{8}T\d{6}Z\.jsonl exists already; run the command again in a second$/m)
  assert.deepEqual(readdirSync(there), before)
  await done(folder, `journal backup ${there}/b.jsonl`)
  await refused(folder, `journal backup ${there}/b.jsonl`, 1, /exists already; --timestamp adds the time to the name$/m)
  await done(folder, `journal backup ${there}/plain.jsonl`)
  await done(folder, `journal backup ${there}/plain.jsonl --timestamp`)
  const made = readdirSync(there).filter(name => name.startsWith('plain'))
  assert.deepEqual(made.map(name => name.replace(/\d{8}T\d{6}Z/, 'TIME')).sort(), ['plain-TIME.jsonl', 'plain.jsonl'])
})

test('a backup under the name of a left-over, which the next start would remove, is refused', async t => {
  const folder = await initialized(t)
  await refused(folder, `journal backup ${folder}/journal.jsonl.1.part`, 1,
    /has the name of a killed command's left-over, which a start removes; name another file$/m)
})

test('a restore into a file while JOURNAL says etcd warns that none uses the file, and how etcd gets it', async t => {
  const folder = await initialized(t)
  const copy = join(freshFolder(t), 'copy.jsonl')
  await done(folder, 'entry add --system s --user u --generate')
  await done(folder, `journal backup ${copy}`)
  const fresh = freshFolder(t)
  const env = { JOURNAL: 'etcd', ETCD_ENDPOINTS: 'http://127.0.0.1:1', KEY_FILE: join(folder, 'journal.key') }
  const { code, error } = await admin(fresh, `journal restore ${copy}`, '', env)
  assert.equal(code, 0, error)
  assert.match(error, /, which no service with JOURNAL=etcd uses: journal copy --to etcd copies it there$/m)
})
