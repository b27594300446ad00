/** A password in a dialog: hidden until asked for, and again after a while; its length is hidden too. */
import { say } from './language.ts'
import { showSecret } from './showing.ts'
import { REVEALED_MS } from './wait.ts'

const DOTS = '•'.repeat(8)

/**
 * Dots, and the button that shows the password in their place and hides it again; the focus stays on it. `read` gives
 * the password, or undefined if it may not be shown (any more).
 */
export function createSecret(read: () => string | Promise<string | undefined>): HTMLElement {
  const secret = document.createElement('span')
  secret.className = 'secret'
  const text = document.createElement('span')
  text.className = 'code'
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'second'
  let hiding: ReturnType<typeof setTimeout> | undefined
  const show = (password: string | undefined): void => {
    clearTimeout(hiding)
    secret.classList.toggle('revealed', password !== undefined)
    text.ariaHidden = password === undefined ? 'true' : null
    button.textContent = say(password === undefined ? 'reveal' : 'hide')
    button.ariaLabel = say(password === undefined ? 'revealThis' : 'hideThis')
    if (password === undefined) {
      text.textContent = DOTS
      return
    }
    showSecret(text, password)
    hiding = setTimeout(() => show(undefined), REVEALED_MS)
  }
  button.addEventListener('click', async () => {
    if (secret.classList.contains('revealed')) return show(undefined)
    button.ariaBusy = 'true'
    const password = await read()
    button.ariaBusy = null
    if (password !== undefined && secret.isConnected) show(password)
  })
  show(undefined)
  secret.append(text, button)
  return secret
}
