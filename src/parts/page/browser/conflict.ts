/** The dialog for an entry that somebody else has changed or deleted since it was opened: it shows both, and asks. */
import type { Entry, EntryFields } from './api.ts'
import { closeModal, openModal } from './dialogs.ts'
import { find, part } from './dom.ts'
import { moment, say } from './language.ts'
import { plainText, sentences } from './plain.ts'
import { showLong } from './showing.ts'
import { createSecret } from './secret.ts'
import { api, rights } from './state.ts'

/** What to do: save what was typed all the same, give it up, or go on editing, which loses nothing. */
export type Choice = 'mine' | 'theirs' | 'back'

const FIELDS = ['sistema', 'usuario', 'password'] as const

/** Shows what was typed beside what is stored now, which is undefined where the entry is gone for good; and asks. */
export async function askWhich(id: number, mine: EntryFields, theirs: Entry | undefined): Promise<Choice> {
  const dialog = find(HTMLDialogElement, '#conflict')
  const isGone = theirs === undefined || theirs.status === 0
  part('conflict-text').textContent = sentences(say(isGone ? 'conflictGone' : 'conflictChanged'), await lastChange(id))
  const lines = FIELDS.flatMap(name => linesOf(name, mine[name], isGone ? undefined : theirs[name]))
  part('versions').replaceChildren(...lines)
  part('take-mine').hidden = isGone && !rights.may('createPassword') && !rights.may('restorePassword')
  part('take-mine').textContent = say(isGone ? 'saveAgain' : 'saveMine')
  part('take-theirs').textContent = say(isGone ? 'discard' : 'takeTheirs')
  return new Promise(resolve => {
    const choose = (choice: Choice): void => {
      part('versions').replaceChildren()
      closeModal(dialog)
      resolve(choice)
    }
    part('take-mine').onclick = () => choose('mine')
    part('take-theirs').onclick = () => choose('theirs')
    part('take-none').onclick = () => choose('back')
    dialog.onclose = () => { if (!dialog.open) choose('back') }
    openModal(dialog)
    part('take-none').focus()
  })
}

/** Who has changed it last, and when, where the service tells that. */
async function lastChange(id: number): Promise<string> {
  if (!rights.may('historyPassword')) return ''
  const answer = await api.history(id)
  const [last] = answer.ok ? answer.value : []
  if (last === undefined) return ''
  const who = last.by === null ? '' : `, ${plainText(last.by)}`
  return `${moment(last.time)}${who}: ${say(`history_${last.change}`)}`
}

function linesOf(name: typeof FIELDS[number], mine: string, theirs: string | undefined): readonly HTMLElement[] {
  const term = document.createElement('dt')
  term.textContent = say(name)
  if (mine === theirs) return [term, lineOf(name, 'both', mine)]
  return [term, lineOf(name, 'mine', mine), ...theirs === undefined ? [] : [lineOf(name, 'theirs', theirs)]]
}

function lineOf(name: typeof FIELDS[number], side: 'mine' | 'theirs' | 'both', text: string): HTMLElement {
  const line = document.createElement('dd')
  line.dataset['side'] = side
  const label = document.createElement('span')
  label.className = 'side'
  label.textContent = say(side)
  const value = name === 'password' ? createSecret(() => text) : document.createElement('bdi')
  if (name !== 'password') showLong(value, text)
  line.append(label, value)
  return line
}
