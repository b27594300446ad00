/** System errors in the operator's words, with what to do. */
import type { Buffer } from 'node:buffer'
import { disk, fileFault, isFull } from '../../journal/files.ts'
import { systemCode } from '../../errors.ts'
import { OperatorError } from '../commands/command.ts'

type Denied = Error & { readonly permission?: string; readonly resource?: string }

const OWNER =
  'the user that runs this command may not open it: name a file in a folder of that user, or - ' +
  '(standard input or output), if the command takes it'

const ADVICE: { readonly [code: string]: string } = {
  EACCES: OWNER,
  EPERM: OWNER,
  EISDIR: 'this is a folder; name a file',
  ENOTDIR: 'a part of this name is no folder; is it right?',
  EROFS: 'its file system is read-only; name another place',
  EIO: 'the device failed; look into the log of the system'
}

const SERVICE = 'the user that the service runs as must be able to write there'

/** The process that has the journal open may be another user's. */
export const TEXTS_OF_SERVICE: typeof ADVICE = {
  ...ADVICE,
  EACCES: SERVICE,
  EPERM: SERVICE,
  EROFS: SERVICE
}

/** Adds the path, which errors on open files lack. */
export function ofFile(error: unknown, path: string): unknown {
  const { syscall, path: known } = error as NodeJS.ErrnoException
  return syscall === undefined || known !== undefined
    ? error
    : Object.assign(error as Error, { path })
}

/** Throws an `OperatorError` if it is larger. */
export function readGiven(path: string, maxBytes: number): Buffer {
  const bytes = disk.stat(path)?.size ?? 0
  if (bytes > maxBytes)
    throw new OperatorError(`${path} is larger than ${maxBytes} bytes; split it`)
  try {
    return disk.read(path)
  } catch (error) {
    throw ofFile(error, path)
  }
}

/** Errors that are not the system's stay as they are. */
export function explained(error: unknown, texts: typeof ADVICE = ADVICE): unknown {
  const code = systemCode(error)
  const text =
    code === 'ERR_ACCESS_DENIED'
      ? denied(error as Denied)
      : faultOf(error as NodeJS.ErrnoException, code, texts)
  return text === undefined ? error : new OperatorError(text, { cause: error })
}

function faultOf(
  error: NodeJS.ErrnoException & { readonly state?: string },
  code: string,
  texts: typeof ADVICE
): string | undefined {
  if (error.path === undefined) return undefined
  if (code === 'ENOENT') return `there is no file or folder ${error.path}`
  const todo = isFull(error)
    ? `there is no room for it${error.state === undefined ? '' : `, and it ${error.state}`}; ` +
      'make some, and run the command again'
    : texts[code]
  if (todo !== undefined) return `${fileFault(disk, error, error.path)}; ${todo}`
  return error.message.includes(error.path) ? undefined : `${error.path}: ${error.message}`
}

function denied({ message, permission = '', resource = '' }: Denied): string {
  const what = resource === '' ? message.replace(/\.$/, '') : `${permission} of ${resource}`
  return (
    `Node's permission model refuses this (${what}), and nothing was changed; ` +
    'run the command without these flags of Node, and if the service was started with ' +
    'them, stop it first'
  )
}
