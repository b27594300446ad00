/** The one-time code of an entry, in the viewer: hidden until it is asked for, then with a ring of its seconds. */
import { iconButton, make, setIcon } from './dom.ts'
import { explained, say } from './language.ts'
import { hideLater } from './showing.ts'
import { api } from './state.ts'
import { tell } from './dialogs.ts'

/** Of most codes; the ring of a longer one stays full at first. */
const PERIOD_SECONDS = 30

export function codeOf(id: number): { readonly text: HTMLElement, readonly button: HTMLButtonElement } {
  const digits = make('span', { className: 'code' })
  const ring = make('span', { className: 'ring', role: 'timer', hidden: true })
  const text = make('span', { className: 'secret one-time' }, digits, ring)
  const button = iconButton('eye', '')
  let counting: ReturnType<typeof setInterval> | undefined
  let hiding: ReturnType<typeof setTimeout> | undefined
  const hide = (): void => {
    clearInterval(counting)
    clearTimeout(hiding)
    text.classList.remove('revealed')
    digits.textContent = '•'.repeat(6)
    digits.ariaHidden = 'true'
    ring.hidden = true
    button.ariaLabel = button.title = say('revealCode')
    setIcon(button, 'eye')
  }
  const show = async (): Promise<void> => {
    const answer = await api.code(id)
    if (!text.isConnected) return
    if (!answer.ok) return void tell(explained(answer))
    const { code, seconds } = answer.value
    const endMs = performance.now() + seconds * 1000
    if (!text.classList.contains('revealed')) hiding = hideLater(digits)
    text.classList.add('revealed')
    digits.ariaHidden = null
    digits.textContent = code.replace(/^(\d{3,4})(\d{3,4})$/, '$1 $2')
    ring.hidden = false
    button.ariaLabel = button.title = say('hideCode')
    setIcon(button, 'hide')
    const count = (): void => {
      const left = Math.ceil((endMs - performance.now()) / 1000)
      ring.title = ring.ariaLabel = say('secondsLeft', { seconds: Math.max(0, left) })
      ring.style.setProperty('--part', String(Math.min(1, left / PERIOD_SECONDS)))
      if (left > 0 && text.isConnected) return
      clearInterval(counting)
      if (text.isConnected) void show()
    }
    clearInterval(counting)
    counting = setInterval(count, 1000)
    count()
  }
  digits.addEventListener('hide', hide)
  button.addEventListener('click', () => {
    if (text.classList.contains('revealed')) hide()
    else void show()
  })
  hide()
  return { text, button }
}
