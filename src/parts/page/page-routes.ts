import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { extname, join } from 'node:path'
import type { Route } from '../../http/router.ts'
import { Failure, systemCode } from '../../errors.ts'
import type { Files } from '../../journal/files.ts'
import type { Head } from '../../http/head.ts'
import type { Reply } from '../../http/reply.ts'
import { COMMONEST } from '../../accounts/common-words.ts'
import { ANY_ABILITY, mayCall } from '../../rights/rights.ts'
import { Asset } from './asset.ts'

/** Missing in a bundle in CommonJS. */
const { dirname, filename = '' } = import.meta

/** The compiled page, even if this program runs from its sources. */
const BROWSER = filename.endsWith('.ts') ? '../../../dist/parts/page/browser' : 'browser'

const TYPES: { readonly [extension: string]: string } = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webmanifest': 'application/manifest+json'
}

/**
 * The page loads, asks and runs only the service's own files, and no text becomes markup or script.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'"
].join('; ')

const HEADERS = [
  'Content-Security-Policy',
  POLICY,
  'X-Frame-Options',
  'DENY',
  'Referrer-Policy',
  'no-referrer',
  'Cross-Origin-Opener-Policy',
  'same-origin',
  'Cross-Origin-Resource-Policy',
  'same-origin',
  'Permissions-Policy',
  'clipboard-read=(), clipboard-write=(self), camera=(), geolocation=(), microphone=(), usb=()'
]

/** A browser keeps it, and asks each time whether it is still valid. */
const ASKED_AGAIN = 'no-cache'
/** The path changes with the contents. */
const KEPT = 'public, max-age=31536000, immutable'
const isLater = (name: string): boolean => name.endsWith('.txt')

/**
 * The page at `/`, which says what is served, and its files below a path with a hash of all of
 * them, so that a second visit asks for `/` alone. Lists of words have a path for good: a page that
 * stays open over an upgrade asks for them. Throws `page-unusable` if a file is unreadable.
 */
export function pageRoutes(
  files: Files,
  served: () => readonly Route[],
  hasUsers: () => boolean
): readonly Route[] {
  if (dirname === undefined) throw unusable('a bundle in CommonJS does not have its files')
  const folder = join(dirname, BROWSER)
  const read = (name: string): Buffer => files.read(join(folder, name))
  const route = (path: string, answer: (head: Head) => Reply): Route => ({
    operation: 'page',
    method: 'GET',
    path,
    isPublic: true,
    handle: ({ head }) => answer(head)
  })
  const asset = (name: string, bytes: Buffer, cache: string): Asset =>
    new Asset(bytes, { type: TYPES[extname(name)]!, cache }, HEADERS)
  try {
    const page = String(read('page.html'))
    const others = servedFiles(files.list(folder), read)
    const hash = createHash('sha256')
    for (const [name, bytes] of others) hash.update(`${name} ${bytes.length} `).update(bytes)
    const place = `web/${hash.digest('hex').slice(0, 16)}/`
    const modules = others
      .map(([name]) => name)
      .filter(name => name.endsWith('.js') && !/^(first|main|texts-..)\.js$/.test(name))
      .map(name => `<link rel="modulepreload" href="${place}${name}">`)
    const html = page
      .replaceAll('"web/', `"${place}`)
      .replace('<!-- modules -->', modules.join('\n  '))
    const pageWith = (hasUsers: boolean): Asset => {
      const said = JSON.stringify({ operations: operationsOf(served()), hasUsers }).replaceAll(
        '"',
        '&quot;'
      )
      const whole = html.replace('name="served" content=""', `name="served" content="${said}"`)
      return asset('page.html', Buffer.from(whole), ASKED_AGAIN)
    }
    const pages = new Map<boolean, Asset>()
    const pageNow = (): Asset => {
      const isWith = hasUsers()
      const known = pages.get(isWith) ?? pageWith(isWith)
      pages.set(isWith, known)
      return known
    }
    return [
      route('/', head => pageNow().reply(head)),
      ...others.map(([name, bytes]) => {
        const own = asset(name, bytes, isLater(name) ? ASKED_AGAIN : KEPT)
        return route(isLater(name) ? `/web/${name}` : `/${place}${name}`, head => own.reply(head))
      })
    ]
  } catch (error) {
    throw unusable(`${folder}: ${systemCode(error)}`, error)
  }
}

/** Without the page itself; the style sheets as one, in which the page's own comes first. */
function servedFiles(
  inFolder: readonly string[],
  read: (name: string) => Buffer
): readonly (readonly [name: string, bytes: Buffer])[] {
  const names = inFolder.filter(name => extname(name) in TYPES && name !== 'page.html')
  const isStyle = (name: string): boolean => name.endsWith('.css')
  const styles = ['page.css', ...names.filter(name => isStyle(name) && name !== 'page.css')]
  const own = names.filter(name => !isStyle(name)).map(name => [name, read(name)] as const)
  const all = [...own, ['style.css', Buffer.concat(styles.map(read))] as const]
  return [
    ...all.map(([name, bytes]) => [name, squeezed(name, bytes)] as const),
    ['common.txt', Buffer.from(COMMONEST)] as const
  ].sort(([one], [other]) => (one < other ? -1 : 1))
}

/**
 * Style sheets lose their comments, all files their layout: no script has a text of several lines.
 */
function squeezed(name: string, bytes: Buffer): Buffer {
  if (!/\.(js|css)$/.test(name)) return bytes
  const text = String(bytes)
    .replace(/^\s+/gm, '')
    .replace(/([;{},])\n/g, '$1')
  if (name.endsWith('.js')) return Buffer.from(text)
  return Buffer.from(text.replace(/\/\*[^]*?\*\/\s*/g, '').replace(/([:;{},]) /g, '$1'))
}

/** Null: no ability is needed. */
function operationsOf(routes: readonly Route[]): object {
  const asked = routes.filter(({ path }) => path.startsWith('/api/'))
  const known = [ANY_ABILITY, ...new Set(asked.flatMap(({ abilities }) => abilities ?? []))]
  return Object.fromEntries(
    asked.map(({ operation, abilities }) => [
      operation,
      abilities === undefined ? null : known.filter(one => mayCall([one], abilities))
    ])
  )
}

function unusable(why: string, cause?: unknown): Failure {
  return new Failure(
    'page-unusable',
    `${why}; a bundle in one ES module needs a copy of the folder dist/parts/page/browser ` +
      'beside it; PAGE=off, or the option page: false, serves without it',
    { cause }
  )
}
