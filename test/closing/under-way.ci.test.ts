/** What is under way when a service ends: over TLS, and beside clients that never end. */
import { describe } from 'node:test'
import { endsInTime } from './under-way.ts'

describe('the program, told to stop', { concurrency: 2 }, () => {
  endsInTime('TLS', false)
  endsInTime('TCP', true)
  endsInTime('TLS', true)
})
