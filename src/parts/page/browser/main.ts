/** The page: puts its parts together and starts them. */
import { startAccount } from './account.ts'
import { Acts } from './acts.ts'
import { startDialogs } from './dialogs.ts'
import { part } from './dom.ts'
import { Editor } from './editor.ts'
import { Grid } from './grid.ts'
import { inEachLanguage, startLanguage } from './language.ts'
import { startKeys } from './keys.ts'
import { Notice } from './notice.ts'
import { Removals } from './removal.ts'
import { Saving } from './saving.ts'
import { Session } from './session.ts'
import { api, entries, loaded, rights } from './state.ts'
import { Trash } from './trash.ts'
import { clearSearch, show, showRights, startView } from './view.ts'
import { Viewer } from './viewer.ts'

// The first to be asked: while work is unsaved a person may stay, and then nothing has changed.
addEventListener('beforeunload', event => {
  if (editor.draft() !== undefined || session.isKeeping) event.preventDefault()
})
startLanguage()
const acts = new Acts()
startDialogs(() => acts.focusList())
const notice = new Notice()
const grid = new Grid((act, entry) => acts.do(act, entry))
const editor: Editor = new Editor({
  save: (changed, close) => saving.save(changed, close),
  sharing: (password, entry) => entries.sharing(password, entry?.id)
})
const viewer = new Viewer({
  act: (act, entry) => acts.do(act, entry),
  read: async entry => (await acts.permitted(entry))?.password
})
const removals = new Removals({ remove: entry => acts.carryOut(entry), restore: entry => acts.restore(entry) })
const session = new Session({
  grid, editor, removals, notice, load: () => acts.load(), stopLoading: () => acts.stopLoading()
})
const saving = new Saving({ acts, grid })
acts.connect({ grid, editor, viewer, removals, notice, session })
api.connect({
  onLoginNeeded: () => session.askForLogin(),
  onForbidden: operation => {
    rights.deny(operation)
    showRights(grid)
  }
})
new Trash(entry => {
  entries.put(entry)
  clearSearch()
  show(grid)
})
startAccount(() => session.end('ownChanged'))
const create = (): void => editor.open()

startView(grid, create)
startKeys({
  isReady: () => session.isOpen && !part('tools').hidden,
  focused: () => grid.focused,
  copy: entry => void acts.copy(entry),
  copyUser: entry => void acts.copyUser(entry),
  create,
  undo: () => removals.undo()
})
part('create').addEventListener('click', create)
part('refresh').addEventListener('click', () => void acts.load())
addEventListener('offline', () => { if (session.isOpen) void acts.load() })
inEachLanguage(() => {
  notice.renew()
  showRights(grid)
  if (loaded.is) show(grid)
})
session.start()
void start()

/** Asks for a login where the service has one, which it says itself; else for the list. */
async function start(): Promise<void> {
  part('loading').hidden = false
  const served = await api.operations()
  part('loading').hidden = true
  if (served !== undefined) rights.serve(served)
  showRights(grid)
  if (rights.has('login')) session.askForLogin()
  else void acts.load()
}
