/** What people do with the page every day. */
import './dialog.ts'
import './list.ts'
import './clipboard.ts'
import './nothing-lost.ts'
import './idle.ts'
