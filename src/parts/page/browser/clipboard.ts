/**
 * The clipboard, written and never read. A password is cleared only if the page kept the focus:
 * otherwise the clipboard may hold something else.
 */

const CLEARED_MS = 30_000

/** `left`: the password may still be in the clipboard. */
type OnEnd = (outcome: 'cleared' | 'left') => void

let forgetCopy = (): void => {}
let last = {}

/**
 * Copies within the click, even if the text comes later. Undefined: no text, or a later copy.
 * `onEnd`: the text is a secret, to be cleared.
 */
export async function copy(
  text: Promise<string | undefined>,
  onEnd?: OnEnd
): Promise<boolean | undefined> {
  const own = (last = {})
  forgetCopy()
  const wanted = text.then(known => (own === last ? known : undefined))
  const isWritten = await writeLater(wanted)
  const known = await wanted
  if (known === undefined) return undefined
  const isCopied = isWritten || (await write(known)) || writeOldWay(known)
  if (isCopied && onEnd !== undefined) clearLater(onEnd)
  return isCopied
}

export async function clearNow(): Promise<boolean> {
  forgetCopy()
  return (await write('')) || writeOldWay('')
}

function clearLater(onEnd: OnEnd): void {
  const ended = new AbortController()
  const { signal } = ended
  let wasAway = !document.hasFocus()
  forgetCopy = () => ended.abort()
  const left = (): void => {
    ended.abort()
    onEnd('left')
  }
  addEventListener(
    'blur',
    () => {
      wasAway = true
    },
    { signal }
  )
  addEventListener(
    'focus',
    () => {
      if (wasAway) left()
    },
    { signal }
  )
  // Copied by hand: the clipboard no longer holds the password.
  for (const copied of ['copy', 'cut'] as const)
    document.addEventListener(copied, forgetCopy, { signal })
  // Phones hide a page that keeps the focus.
  document.addEventListener(
    'visibilitychange',
    () => {
      if (!document.hidden && wasAway) left()
      wasAway ||= document.hidden
    },
    { signal }
  )
  const timer = setTimeout(async () => {
    // A person elsewhere is told on return.
    if (wasAway || !document.hasFocus()) {
      wasAway = true
      return
    }
    const isCleared = await write('')
    if (signal.aborted) return
    if (!isCleared) return left()
    ended.abort()
    onEnd('cleared')
  }, CLEARED_MS)
  signal.addEventListener('abort', () => clearTimeout(timer))
}

/** Safari takes a promise within the click, and nothing after it. */
async function writeLater(text: Promise<string | undefined>): Promise<boolean> {
  try {
    const blob = text.then(known =>
      known === undefined
        ? Promise.reject(new Error('nothing to copy'))
        : new Blob([known], { type: 'text/plain' })
    )
    blob.catch(() => {})
    await navigator.clipboard.write([new ClipboardItem({ 'text/plain': blob })])
    return true
  } catch {
    return false
  }
}

async function write(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}

/** Without HTTPS, except on localhost, browsers have no other way. */
function writeOldWay(text: string): boolean {
  const put = (event: ClipboardEvent): void => {
    event.preventDefault()
    event.clipboardData?.setData('text/plain', text)
  }
  document.addEventListener('copy', put, { once: true, capture: true })
  const isDone = document.execCommand('copy')
  document.removeEventListener('copy', put, { capture: true })
  return isDone
}
