/** The clipboard: written to when asked, and emptied after a while, so that a password does not stay in it. */

/** How long a password stays in the clipboard, in seconds. */
export const CLEAR_AFTER_SECONDS = 30

let timer: ReturnType<typeof setTimeout> | undefined

/**
 * Puts a text into the clipboard. `copied`: it is emptied later, which may be when the person comes back to the page;
 * then `onCleared` is called. `copiedForGood`, `notCopied`: the browser lets the page not empty it, or not even copy.
 */
export async function copyForAWhile(
  text: string, onCleared: () => void
): Promise<'copied' | 'copiedForGood' | 'notCopied'> {
  const canEmpty = await write(text)
  if (!canEmpty && !writeOldWay(text)) return 'notCopied'
  clearTimeout(timer)
  if (!canEmpty) return 'copiedForGood'
  timer = setTimeout(() => void clear(text, onCleared), CLEAR_AFTER_SECONDS * 1000)
  return 'copied'
}

async function clear(text: string, onCleared: () => void): Promise<void> {
  if (!document.hasFocus()) {
    addEventListener('focus', () => void clear(text, onCleared), { once: true })
    return
  }
  // Where the page may look, it leaves alone what has come into the clipboard since.
  const isOurs = await isGranted() ? await navigator.clipboard.readText().catch(() => text) === text : true
  if (isOurs && await write('')) onCleared()
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
