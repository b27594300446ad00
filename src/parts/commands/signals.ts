export const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
type EndingSignal = (typeof ENDING_SIGNALS)[number]
/** 128 + the signal's number, as shells do. */
const SIGNAL_CODES: { readonly [S in EndingSignal]: number } = {
  SIGHUP: 129,
  SIGINT: 130,
  SIGTERM: 143
}

export type Signalled = Pick<NodeJS.Process, 'stderr' | 'on' | 'off' | 'exit'>

/**
 * A signal during `act` ends the program at its next `breath`. `onEnd` puts things in order, and
 * says how they are.
 */
export type Ending = <T>(onEnd: () => string, act: () => Promise<T>) => Promise<T>

export async function endingAtSignal<T>(
  program: Signalled,
  onEnd: () => string,
  act: () => Promise<T>
): Promise<T> {
  const end = (signal: EndingSignal): void => {
    program.stderr.write(`\nended by ${signal}: ${onEnd()}\n`)
    program.exit(SIGNAL_CODES[signal])
  }
  for (const signal of ENDING_SIGNALS) program.on(signal, end)
  try {
    return await act()
  } finally {
    for (const signal of ENDING_SIGNALS) program.off(signal, end)
  }
}

/** Node looks for signals between two turns of its loop. */
export function breath(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
