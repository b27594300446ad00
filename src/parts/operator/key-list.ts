/** The keys of the key file, and what of the journal each has sealed. */
import { disk } from '../../journal/files.ts'
import { readKeyFile } from '../../journal/keys.ts'
import { OperatorError, type Command, type Context } from '../command.ts'

/** The name of the key that sealed a line of the journal. */
export function sealingKey(line: string): string { return /"key":"([0-9a-f]{8})"/.exec(line)![1]! }

/** Of a key: its line in the file, when it first sealed a record, how many it sealed, and whether they need it. */
interface ListedKey {
  readonly key: string
  readonly line: number
  readonly since: string | null
  readonly records: number
  readonly needed: 'yes' | 'no' | 'newest'
}

async function listKeys({ store, terminal }: Context): Promise<void> {
  const status = await store.status()
  const names = readKeyFile(disk, status.keyFile)?.names
  if (names === undefined) throw new OperatorError(`there is no key file ${status.keyFile}; is KEY_FILE right?`)
  const sealed = new Map<string, { readonly since: string, records: number }>()
  await store.read(status, ({ time }, _state, text) => {
    const key = sealingKey(text)
    const known = sealed.get(key)
    if (known === undefined) sealed.set(key, { since: time, records: 1 })
    else known.records++
  })
  const keys = names.map((key, i): ListedKey => {
    const { since = null, records = 0 } = sealed.get(key) ?? {}
    const needed = records > 0 ? 'yes' : 'no'
    return { key, line: i + 1, since, records, needed: i === names.length - 1 ? 'newest' : needed }
  })
  terminal.list(keys, 'no keys')
}

/** `key list`. */
export const COMMANDS: readonly Command[] = [{
  name: 'key list',
  help: 'lists the keys by their lines in the key file: since when each sealed, and whether the journal needs it',
  run: listKeys
}]
