/**
 * The clipboard. The page writes to it when it is asked, and never reads it. What it copied it clears after a while,
 * but only if it kept the focus since: whatever a person did elsewhere may have put something else there.
 */

const CLEARED_MS = 30_000

/** What can be said of a copied password: that it was cleared, or that it may still be there. */
type OnEnd = (outcome: 'cleared' | 'left') => void

/** Ends what was to be done about the copy before. */
let forgetCopy = (): void => {}
let last = {}

/**
 * Puts a text into the clipboard, within the click though the text is still on its way. Gives whether that worked;
 * undefined: there was none, or another copy was asked for before it came. With `onEnd` it is a secret: `left` is said
 * when the person is back from elsewhere, or when the browser does not let the page clear it.
 */
export async function copy(text: Promise<string | undefined>, onEnd?: OnEnd): Promise<boolean | undefined> {
  const own = last = {}
  forgetCopy()
  const wanted = text.then(known => own === last ? known : undefined)
  const isWritten = await writeLater(wanted)
  const known = await wanted
  if (known === undefined) return undefined
  const isCopied = isWritten || await write(known) || writeOldWay(known)
  if (isCopied && onEnd !== undefined) clearLater(onEnd)
  return isCopied
}

export async function clearNow(): Promise<boolean> {
  forgetCopy()
  return await write('') || writeOldWay('')
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
  addEventListener('blur', () => { wasAway = true }, { signal })
  addEventListener('focus', () => { if (wasAway) left() }, { signal })
  // Phones hide a page that keeps the focus.
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && wasAway) left()
    wasAway ||= document.hidden
  }, { signal })
  const timer = setTimeout(async () => {
    // Who is away is told on return.
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
    const blob = text.then(known => known === undefined ? Promise.reject(new Error('nothing to copy'))
      : new Blob([known], { type: 'text/plain' }))
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

/** Browsers have no other way without HTTPS, but on the machine itself. */
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
