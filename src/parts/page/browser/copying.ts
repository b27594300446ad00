/**
 * Copies a text, says so, and says when a secret is no longer in the clipboard, or may still be.
 */
import { clearNow, copy } from './clipboard.ts'
import { announce, sayCopied, tell } from './dialogs.ts'
import { say } from './language.ts'

/** Undefined, after a message, if there is nothing to copy. */
export async function copySecret(
  text: Promise<string | undefined>,
  button?: HTMLElement
): Promise<void> {
  const isCopied = await copy(text, outcome => {
    if (outcome === 'cleared') announce(say('cleared'))
    else tell(say('maybeCopied'), { label: say('clear'), act: () => void clear() })
  })
  if (isCopied !== undefined) tellCopied(isCopied, button)
}

export async function copyText(text: string, button?: HTMLElement): Promise<void> {
  tellCopied((await copy(Promise.resolve(text))) === true, button)
}

async function clear(): Promise<void> {
  if (await clearNow()) announce(say('cleared'))
}

function tellCopied(isCopied: boolean, button: HTMLElement | undefined): void {
  if (!isCopied) tell(say('notCopied'))
  else if (button === undefined) announce(say('copied'))
  else sayCopied(button)
}
