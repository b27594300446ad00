/** The files of the page are compressed once in a process, and not for each of its services. */
import { Buffer } from 'node:buffer'
import { syncBuiltinESMExports } from 'node:module'
import zlib from 'node:zlib'

const compressed = new Map<string, Buffer>()
for (const name of ['brotliCompressSync', 'gzipSync'] as const) {
  const compress: (bytes: Buffer, options?: object) => Buffer = zlib[name]
  zlib[name] = (bytes: zlib.InputType, options?: object) => {
    const key = `${name} ${(bytes as Buffer).toString('latin1')}`
    const known = compressed.get(key) ?? compress(bytes as Buffer, options)
    compressed.set(key, known)
    return known
  }
}
syncBuiltinESMExports()
