/** What is under way when a service ends: over TCP, and embedded. */
import { endsEmbedded, endsInTime } from './under-way.ts'

endsInTime('TCP', false)
endsEmbedded()
