/**
 * Each route with each right: whatever answer has a password of the store in it tells only who is recorded by then. A
 * route that is added is asked, too.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import { ANA, call, startProtected, tokenOf } from '../support/accounts.ts'

/** The routes that may answer with notes (SECURITY.md, Where secrets leave). */
const OF_NOTES = /\/(getPassword|listPassword|updatePassword|formerNotes)\b/
const OTP = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'

/** By id, from 1. The first password of each stands in no other field. */
const ENTRIES = [1, 2, 3].map(n => ({ password: `SECRET-${n}-ÑANDÚ`, sistema: `s${n}`, usuario: `u${n}`,
  notas: 'a note', otp: OTP }))

test('a password is sent only to who is recorded as knowing it, notes by four routes, otp never', async t => {
  const started = await startProtected(t, { 'extra-routes': 'on', 'rate-limit': '0', 'login-limit': '0' })
  const { url, service: { store, accounts } } = started
  for (const fields of ENTRIES) await createEntry(store, fields, null)
  await updateEntry(store, 1, { password: `${ENTRIES[0]!.password}-2` }, null)
  await deleteEntry(store, 3, null)
  const all = await tokenOf(started)
  const { paths } = (await call(t, url, 'GET', '/openapi.json')).json as { paths: Record<string, Record<string, any>> }
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({ path, method: method.toUpperCase(), ability: one['x-ability'],
      one })))
  const { history } = (await call(t, url, 'GET', '/api/historyPassword/1', { token: all })).json
  let seen = 0
  const ofNotes = new Set<string>()
  for (const { path, method, ability, one } of routes) {
    if (/log(in|out)$|changeOwnPassword$|endOwnSessions$/.test(path)) continue // they end the token
    const examples = one.requestBody?.content['application/json'].examples ?? {}
    const bodies = path.startsWith('/api/updatePassword') ? [{}, { usuario: 'x' }]
      : Object.values<any>(examples).map(({ value }) => value)
    for (const id of path.includes('{id}') ? [1, 2, 3] : [0]) {
      const versions = path.includes('{version}') ? history.map(({ version }: { version: number }) => version) : [0]
      for (const version of versions) {
        for (const body of bodies.length === 0 ? [undefined] : bodies) {
          // A user of its own, who knows nothing yet.
          const email = `user${++seen}@example.org`
          await accounts!.addUser(email, undefined, ability === undefined ? ['*'] : [ability],
            'correct horse battery staple')
          const token = await tokenOf(started, email)
          const user = store.state.userOf(email)!.id
          const passwords = [...store.state.entries.entries()].slice(0,
            ENTRIES.length).map(entry => [entry.id, entry.password] as const)
          const { text } = await call(t, url, method, path.replace('{id}', `${id}`).replace('{version}', `${version}`),
            { token, body })
          const what = `${method} ${path}, ${id}`
          assert.ok(OF_NOTES.test(path) || !text.includes('a note'), `${what} has notes`)
          assert.ok(!text.includes(OTP), `${what} has the secret of codes`)
          if (text.includes('a note')) ofNotes.add(OF_NOTES.exec(path)![1]!)
          for (const [known, password] of passwords) {
            const isTold = text.includes(JSON.stringify(password))
            const isKnown = store.state.knowledge.knows(user, known)
            if (isTold) assert.ok(isKnown, `${what} has told ${known}`)
            if (!isTold && !path.startsWith('/api/createPassword')) assert.ok(!isKnown, `${what} has not told ${known}`)
          }
        }
      }
    }
  }
  const tellers = routes.filter(({ path }) =>
    /getPassword|listPassword|updatePassword|formerPassword|formerNotes/.test(path))
  assert.equal(tellers.length, 5, 'these were among them')
  assert.equal(ofNotes.size, 4)
  assert.ok(seen > 20)
  assert.ok(store.state.userOf(ANA) !== undefined)
})
