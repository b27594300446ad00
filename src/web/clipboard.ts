/** The clipboard: written to when asked, and emptied after a while, so that a password does not stay in it. */

/** How long a password stays in the clipboard, in seconds. */
export const CLEAR_AFTER_SECONDS = 30

/** When a browser that refused to let the page empty the clipboard may allow it; some, only at what a person does. */
const CHANCES = ['focus', 'click', 'keydown']

/** Ends the wait for the clipboard to be emptied. */
let waiting = new AbortController()

/**
 * Puts a text into the clipboard. `copied`: it is emptied later, which may be when the person comes back to the page;
 * then `onCleared` is called. `copiedForGood`, `notCopied`: the browser lets the page not empty it, or not even copy.
 */
export async function copyForAWhile(
  text: string, onCleared: () => void
): Promise<'copied' | 'copiedForGood' | 'notCopied'> {
  waiting.abort()
  if (!await write(text)) return writeOldWay(text) ? 'copiedForGood' : 'notCopied'
  waiting.abort() // what another copy meanwhile has begun
  waiting = new AbortController()
  emptyLater(text, waiting, onCleared)
  return 'copied'
}

function emptyLater(text: string, wait: AbortController, onCleared: () => void): void {
  const { signal } = wait
  const empty = async (): Promise<void> => {
    // Where the page may look, it leaves alone what has come into the clipboard since.
    const isOurs = await isGranted() ? await navigator.clipboard.readText().catch(() => text) === text : true
    if (signal.aborted || (isOurs && !await write('')) || signal.aborted) return
    wait.abort()
    if (isOurs) onCleared()
  }
  const timer = setTimeout(() => {
    for (const chance of CHANCES) addEventListener(chance, () => void empty(), { signal })
    void empty()
  }, CLEAR_AFTER_SECONDS * 1000)
  signal.addEventListener('abort', () => clearTimeout(timer))
  // Whoever leaves may not come back, and there is no time to look.
  addEventListener('beforeunload', () => void write(''), { signal })
}

async function isGranted(): Promise<boolean> {
  try {
    return (await navigator.permissions.query({ name: 'clipboard-read' as PermissionName })).state === 'granted'
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

/** Without HTTPS, and not on the machine itself, browsers have no other way. */
function writeOldWay(text: string): boolean {
  const focused = document.activeElement
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'unseen'
  document.body.append(field)
  field.select()
  const isDone = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true })
  return isDone
}
