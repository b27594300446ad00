/** What people do with the page every day, what they may do, and what they are told when it fails. */
import './dialog.ts'
import './failures.ts'
import './keyboard.ts'
import './list.ts'
import './rights.ts'
import './safety.ts'
import './session.ts'
import './values.ts'
