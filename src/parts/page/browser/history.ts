/** The changes of an entry in its dialog, asked for when they are opened. */
import type { Change, Entry } from './api.ts'
import { find } from './dom.ts'
import { moment, say } from './language.ts'
import { explain } from './notice.ts'
import { plainText, sentences } from './plain.ts'
import { showName } from './showing.ts'
import { createSecret } from './secret.ts'
import { api, rights } from './state.ts'

const details = find(HTMLDetailsElement, '#history')
const changes = find(HTMLElement, 'ol', details)

/** Lets a person open the history; `entry` gives the entry that is looked at. */
export function startHistory(entry: () => Entry | undefined): void {
  details.addEventListener('toggle', async () => {
    const id = entry()?.id
    if (!details.open || id === undefined) return changes.replaceChildren()
    changes.replaceChildren(say('loading'))
    const answer = await api.history(id)
    if (entry()?.id !== id || !details.open) return
    changes.replaceChildren(...answer.ok ? answer.value.map(itemOf) : [sentences(...explain(answer))])
  })
}

/** Closes it, so that nothing of another entry is left. */
export function resetHistory(): void {
  details.open = false
  details.hidden = !rights.may('historyPassword')
  changes.replaceChildren()
}

function itemOf({ time, by, change, fields }: Change): HTMLElement {
  const item = document.createElement('li')
  const head = document.createElement('p')
  const facts = [moment(time), say(`history_${change}`), plainText(by ?? '')]
  head.textContent = facts.filter(text => text !== '').join(' · ')
  item.append(head)
  for (const name of ['sistema', 'usuario', 'password'] as const) {
    const text = fields[name]
    if (text === undefined) continue
    const line = document.createElement('p')
    line.append(`${say(name)}: `, name === 'password' ? createSecret(() => text) : nameIn(text))
    item.append(line)
  }
  return item
}

function nameIn(text: string): HTMLElement {
  const name = document.createElement('bdi')
  showName(name, text)
  return name
}
