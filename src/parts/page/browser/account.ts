/** The dialog of one's account: who is logged in, what the account allows, and one's own password. */
import { closeModal, openModal } from './dialogs.ts'
import { find, part } from './dom.ts'
import { Form } from './form.ts'
import { say } from './language.ts'
import { plainText } from './plain.ts'
import { api, rights } from './state.ts'

const NAMED = ['listPassword', 'createPassword', 'updatePassword', 'deletePassword', 'restorePassword'] as const

/** Lets a person open it; `onPasswordChanged` is called when the password was changed, which ends the session. */
export function startAccount(onPasswordChanged: () => void): void {
  const account = find(HTMLDialogElement, '#account')
  const own = find(HTMLDialogElement, '#own')
  const form = new Form(find(HTMLFormElement, '#own form'), async texts => {
    const answer = await api.changePassword(texts['password']!, texts['newPassword']!)
    if (!answer.ok) return answer.errors['password'] === undefined ? answer : 'badCurrent'
    closeModal(own)
    onPasswordChanged()
    return undefined
  })
  part('show-account').addEventListener('click', () => {
    const { name = '', email = '' } = api.user ?? {}
    part('account-who').textContent = say('loggedInAs', { name: plainText(name), email })
    const allowed = NAMED.filter(operation => rights.may(operation))
    const named = allowed.length > 0 ? allowed : NAMED
    const what = named.map(operation => say(`ability_${operation}`)).join(', ')
    part('account-may').textContent = say(allowed.length > 0 ? 'accountMay' : 'limits', { what })
    part('show-own').hidden = !rights.may('changeOwnPassword')
    openModal(account)
  })
  part('show-own').addEventListener('click', () => {
    closeModal(account)
    form.clear()
    find(HTMLInputElement, '#own-email').value = api.user?.email ?? ''
    openModal(own)
  })
  // Nothing under way stays in the form.
  own.addEventListener('close', () => { if (!own.open) form.clear() })
}
