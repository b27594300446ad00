/** The page's routes, and the limits that a browser keeps for its files. */
import { extname, join } from 'node:path'
import type { Route } from '../../http/route.ts'
import { Failure, systemCode } from '../../errors.ts'
import type { Files } from '../../journal/files.ts'
import type { Head } from '../../http/head.ts'
import { jsonReply, type Reply } from '../../http/reply.ts'
import { ANY_ABILITY, covers } from '../../store/session.ts'
import { Asset } from './asset.ts'

/** Missing in a bundle in CommonJS. */
const { dirname, filename = '' } = import.meta

/** The page is always the compiled one, even if this program runs from its sources. */
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

/** Only the service's own files are loaded, asked and run; no text becomes markup or script. */
const POLICY = [
  "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
  "manifest-src 'self'",
  "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
  "trusted-types 'none'"
].join('; ')

const HEADERS = [
  'Content-Security-Policy', POLICY,
  'X-Frame-Options', 'DENY',
  'Referrer-Policy', 'no-referrer',
  'Cross-Origin-Opener-Policy', 'same-origin',
  'Cross-Origin-Resource-Policy', 'same-origin',
  'Permissions-Policy',
  'clipboard-read=(), clipboard-write=(self), camera=(), geolocation=(), microphone=(), usb=()'
]

/**
 * The page at `/`, its files and the `served` operations under `/web/`. Throws `page-unusable` if a file is unreadable.
 */
export function pageRoutes(files: Files, served: () => readonly Route[], hasUsers: () => boolean): readonly Route[] {
  const route = (name: string, answer: (head: Head) => Reply): Route => {
    const path = name === 'page.html' ? '/' : `/web/${name}`
    return {
      operation: 'page', method: 'GET', path, isPublic: true, handle: ({ head }) => answer(head)
    }
  }
  if (dirname === undefined) throw unusable('a bundle in CommonJS does not have its files')
  const folder = join(dirname, BROWSER)
  const fileRoute = (name: string): Route => {
    const asset = new Asset(files.read(join(folder, name)), TYPES[extname(name)]!, HEADERS)
    return route(name, head => asset.reply(head))
  }
  const operations = (): Reply => jsonReply(200, { operations: operationsOf(served()), hasUsers: hasUsers() })
  try {
    const others = files.list(folder).filter(name => extname(name) in TYPES && name !== 'page.html')
    return [...['page.html', ...others].map(fileRoute), route('operations.json', operations)]
  } catch (error) {
    throw unusable(`${folder}: ${systemCode(error)}`, error)
  }
}

/** Null: no ability is needed. */
function operationsOf(routes: readonly Route[]): object {
  const asked = routes.filter(({ path }) => path.startsWith('/api/'))
  const known = [ANY_ABILITY, ...new Set(asked.flatMap(({ ability }) => ability ?? []))]
  return Object.fromEntries(asked.map(({ operation, ability }) =>
    [operation, ability === undefined ? null : known.filter(one => covers([one], ability))]))
}

function unusable(why: string, cause?: unknown): Failure {
  return new Failure('page-unusable', `${why}; PAGE=off, or the option page: false, serves without it`, { cause })
}
