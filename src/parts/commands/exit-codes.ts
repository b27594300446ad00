import { Failure, systemCode, type FailureCode } from '../../errors.ts'
import { LossError, OperatorError, UsageError } from './command.ts'

export const EXIT = { done: 0, refused: 1, usage: 2, lost: 3, tail: 4 } as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export const MEANINGS: { readonly [E in ExitCode]: string } = {
  [EXIT.done]: 'done',
  [EXIT.refused]: 'refused or failed, or audit and entry list --exposed cannot know everything',
  [EXIT.usage]: 'called in a wrong way: a word, a flag, a setting or a value is not valid',
  [EXIT.lost]: 'the journal or its keys are damaged, or something is lost',
  [EXIT.tail]: 'journal verify found an unfinished write behind the last record'
}

export const EXIT_CODES: string = `Exit codes: ${Object.entries(MEANINGS)
  .map(([code, meaning]) => `${code} ${meaning}`)
  .join('; ')}.`

const OF_FAILURES: { readonly [C in FailureCode]?: ExitCode } = {
  'setting-invalid': EXIT.usage,
  'input-invalid': EXIT.usage,
  'journal-damaged': EXIT.lost,
  'journal-newer': EXIT.lost,
  'key-missing': EXIT.lost,
  'key-invalid': EXIT.lost,
  'key-unknown': EXIT.lost
}

/** `code`: the exit code that the service named. */
export function refusalOf(message: string, code: unknown): Error {
  if (code === EXIT.usage) return new UsageError(message)
  return code === EXIT.lost ? new LossError(message) : new OperatorError(message)
}

/** Undefined for an error that nobody foresaw. */
export function exitCodeOf(error: unknown): ExitCode | undefined {
  if (error instanceof UsageError) return EXIT.usage
  if (error instanceof LossError) return EXIT.lost
  if (error instanceof Failure) return OF_FAILURES[error.code] ?? EXIT.refused
  const isForeseen =
    error instanceof OperatorError || systemCode(error) !== (error as Error).message
  return isForeseen ? EXIT.refused : undefined
}
