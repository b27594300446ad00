/** The page: puts its parts together and starts them. */
import { Acts } from './acts.ts'
import { part } from './dom.ts'
import { Editor } from './editor.ts'
import { Grid } from './grid.ts'
import { inEachLanguage, startLanguage } from './language.ts'
import { More, startHistory } from './more.ts'
import { startKeys } from './keys.ts'
import { Notice } from './notice.ts'
import { Removals } from './removal.ts'
import { Session } from './session.ts'
import { api, entries, loaded } from './state.ts'
import { clearSearch, show, showAbilities, startView } from './view.ts'

startLanguage()
const acts = new Acts()
const notice = new Notice()
const grid = new Grid((act, entry) => acts.do(act, entry))
const editor = new Editor({
  save: (entry, fields, close) => acts.save(entry, fields, close),
  sharing: (password, entry) => entries.sharing(password, entry?.id),
  onOpen: () => resetHistory()
})
const removals = new Removals(entry => acts.carryOut(entry))
const session = new Session({ grid, editor, removals, notice, load: () => acts.load() })
acts.connect({ grid, editor, removals, notice, session })
const more = new More({
  api,
  onRestored: entry => {
    entries.put({ ...entry, status: 1 })
    clearSearch()
    show(grid)
  },
  onPasswordChanged: () => session.end('ownChanged')
})
const resetHistory = startHistory(api, () => more.has('historyPassword'), () => editor.entry)
const create = (): void => editor.open()

startView(grid, create)
startKeys({
  isReady: () => session.isOpen && !part('tools').hidden,
  focused: () => grid.focused,
  copy: entry => void acts.copy(entry),
  copyUser: entry => void acts.copyUser(entry),
  create,
  help: () => more.open(),
  undo: () => acts.undo()
})
part('create').addEventListener('click', create)
part('refresh').addEventListener('click', () => void acts.load())
addEventListener('offline', () => { if (session.isOpen) void acts.load() })
addEventListener('beforeunload', event => { if (editor.draft() !== undefined) event.preventDefault() })
inEachLanguage(() => {
  notice.renew()
  showAbilities(grid)
  if (loaded.is) show(grid)
})
void more.start()
session.start()
void acts.load()
