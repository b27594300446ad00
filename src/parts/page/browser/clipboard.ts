/** The clipboard: written to when asked, and emptied after a while, so that no password stays in it. */

/** How long a password stays in the clipboard, in seconds. */
export const CLEAR_AFTER_SECONDS = 30

/** When a browser that refused to let the page empty the clipboard may allow it; some, only after a person's input. */
const CHANCES = ['focus', 'click', 'keydown']

/** Ends the wait for the clipboard to be emptied. */
let waiting = new AbortController()
/** Begins that wait again, for what is still to be emptied. */
let waitAgain = (): void => {}
/** The copy that was asked for last. */
let last = {}

/**
 * What became of a copy. `copied`: it is emptied after a while. `copiedTillInput`: this browser allows that only after
 * the next click or key on the page. `copiedForGood`: the page cannot empty it. `notCopied`: it could not even copy.
 */
export type Copied = 'copied' | 'copiedTillInput' | 'copiedForGood' | 'notCopied'

/**
 * Puts a text into the clipboard; one that is still on its way as well, since browsers allow that only at once after a
 * click. Undefined: there was none, or another copy was asked for before it came. `onCleared` is called once the
 * clipboard was emptied.
 */
export async function copyForAWhile(
  text: Promise<string | undefined>, onCleared: () => void
): Promise<Copied | undefined> {
  const own = beginCopy(text)
  const isWritten = await writeLater(own)
  const known = await own
  if (known === undefined) return undefined
  if (!isWritten && !await write(known)) return writeOldWay(known) ? 'copiedForGood' : 'notCopied'
  waitAgain = () => {
    waiting.abort()
    waiting = new AbortController()
    emptyLater(known, waiting, onCleared)
  }
  waitAgain()
  return await isAllowed('clipboard-write') ? 'copied' : 'copiedTillInput'
}

/** Puts a text into the clipboard that holds nothing secret; undefined as above. */
export async function copyForGood(text: Promise<string | undefined>): Promise<boolean | undefined> {
  const own = beginCopy(text)
  const isWritten = await writeLater(own)
  const known = await own
  const isCopied = known !== undefined && (isWritten || await write(known) || writeOldWay(known))
  if (isCopied) {
    waiting.abort()
    waitAgain = () => {}
  }
  return known === undefined ? undefined : isCopied
}

/**
 * The text, where no other copy was asked for until it came: what comes late must not replace that one's. What was
 * copied before must not be emptied by the very click that copies; but later, if nothing comes of that.
 */
async function beginCopy(text: Promise<string | undefined>): Promise<string | undefined> {
  waiting.abort()
  setTimeout(waitAgain)
  const own = last = {}
  const known = await text
  return own === last ? known : undefined
}

/** Empties it now where it was to be emptied later; where the browser refuses, that is still done later. */
export function emptyNow(): void { dispatchEvent(new Event('empty')) }

function emptyLater(text: string, wait: AbortController, onCleared: () => void): void {
  const { signal } = wait
  const empty = async (): Promise<void> => {
    // Where the page may read, it leaves alone what has come into the clipboard since.
    const isOurs = !await isAllowed('clipboard-read') ||
      await navigator.clipboard.readText().catch(() => text) === text
    if (signal.aborted || (isOurs && !await write('')) || signal.aborted) return
    wait.abort()
    waitAgain = () => {}
    if (isOurs) onCleared()
  }
  const timer = setTimeout(() => {
    for (const chance of CHANCES) addEventListener(chance, () => void empty(), { signal })
    void empty()
  }, CLEAR_AFTER_SECONDS * 1000)
  signal.addEventListener('abort', () => clearTimeout(timer))
  addEventListener('empty', () => void empty(), { signal })
  // A person who leaves may not come back, and there is no time to read.
  addEventListener('beforeunload', event => { if (!event.defaultPrevented) void write('') }, { signal })
  addEventListener('pagehide', () => void write(''), { signal })
}

/** Whether the browser has said that the page may do this at any time. */
async function isAllowed(name: string): Promise<boolean> {
  try {
    return (await navigator.permissions.query({ name: name as PermissionName })).state === 'granted'
  } catch {
    return false
  }
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
  const focused = document.activeElement
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'unseen'
  // Behind an open dialog nothing can be selected.
  const place = focused?.closest('dialog') ?? document.body
  place.append(field)
  field.select()
  const isDone = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true })
  return isDone
}
