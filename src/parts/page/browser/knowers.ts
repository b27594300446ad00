/** Who knows the present password of an entry. */
import type { Knower } from './answers.ts'
import { make } from './dom.ts'
import { explained, moment, say } from './language.ts'
import { plainText } from './plain.ts'
import { api } from './state.ts'

/** Asked for when it is opened; it tells no secret. */
export function knowersOf(id: number, isExposed: boolean): HTMLElement {
  const list = make('ul')
  const details = make('details', { id: 'knowers' }, make('summary', {}, say('knownBy')), list)
  details.addEventListener('toggle', async () => {
    if (!details.open) return list.replaceChildren()
    list.replaceChildren(make('li', {}, say('loading')))
    const answer = await api.whoKnows(id)
    if (!details.open || !details.isConnected) return
    if (!answer.ok) return list.replaceChildren(make('li', {}, explained(answer)))
    const { knows, unrecordedBefore } = answer.value
    const notes = unrecordedBefore === undefined ? [] : [say('unrecorded', { time: moment(unrecordedBefore) })]
    if (knows.length === 0) notes.unshift(say('knownByNobody'))
    list.replaceChildren(...knows.map(itemOf), ...notes.map(text => make('li', { className: 'hint' }, text)))
  })
  details.open = isExposed
  return details
}

function itemOf({ user, operator, how, removed }: Knower): HTMLElement {
  const name = user?.email ?? (operator === undefined ? say('hostKnows') : say('operatorKnows', { name: operator }))
  const gone = removed === true ? [make('span', { className: 'gone' }, say('mayNoLonger'))] : []
  const who = make('bdi', { title: plainText(user?.name ?? '') }, plainText(name))
  return make('li', {}, who, ` · ${say(`knows_${how}`)} `, ...gone)
}
