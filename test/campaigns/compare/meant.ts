/**
 * The differences over the wire between version 1.1.0 and the tree before its last round that are meant. Each has the
 * sentence of CHANGELOG.md that tells it to authors of clients.
 */
/** An answer as it is compared: `status` is the status line; header fields by lower-case names; `body`. */
export interface Shown { readonly [name: string]: string | undefined }

export interface Meant {
  /** As CHANGELOG.md has it, in the section of the coming version. */
  readonly said: string
  /** Its heading; without one, the authors of clients are told. */
  readonly section?: string
  /** For which requests, by method and path; by all bytes if what was sent is no request. */
  readonly of: RegExp
  /** What both answers must have in common, by the old one and the new one. */
  readonly commonOf?: (answer: Shown, isNew: boolean) => Shown
  /** Whether the two answers are another for a reason: nothing behind them on the connection is compared. */
  readonly isOther?: (old: Shown, young: Shown) => boolean
}

/** The names in which two answers differ. */
export function differing(one: Shown, other: Shown): string[] {
  return [...new Set(['status', 'body', ...Object.keys(one), ...Object.keys(other)])]
    .filter(name => one[name] !== other[name])
    .sort((a, b) => Number(a === 'content-length') - Number(b === 'content-length'))
}

/** What is left of the difference between two answers when all that is meant is taken away, and why that is meant. */
export function judge(rows: readonly Meant[], request: string, old: Shown, young: Shown):
{ readonly left: readonly string[], readonly why: readonly string[], readonly isOther: boolean } {
  if (differing(old, young).length === 0) return { left: [], why: [], isOther: false }
  const fitting = rows.filter(({ of }) => of.test(request))
  const leftBy = (some: readonly Meant[]): string[] => {
    const [one, other] = [false, true].map(isNew => some.reduce<Shown>((answer, { commonOf }) =>
      commonOf?.(answer, isNew) ?? answer, isNew ? young : old))
    return differing(one!, other!)
  }
  const left = leftBy(fitting)
  if (left.length > 0) {
    const reason = fitting.find(({ isOther }) => isOther?.(old, young))
    if (reason !== undefined) return { left: [], why: [reason.said], isOther: true }
  }
  const needed = fitting.filter(one => leftBy(fitting.filter(other => other !== one)).length > left.length)
  return { left, why: needed.map(({ said }) => said), isOther: false }
}

/** The answer with another body; its length is not compared any more. */
function withBody(answer: Shown, body: string): Shown {
  return answer['body'] === body ? answer : { ...withoutLength(answer), body }
}

/** For answers whose bodies have other lengths, also to a HEAD. */
function withoutLength(answer: Shown): Shown {
  return 'content-length' in answer ? { ...answer, 'content-length': '…' } : answer
}

/** Changes what a JSON body has; every other body stays. */
function inJson(change: (json: any) => unknown): (answer: Shown) => Shown {
  return answer => {
    const { body = '', 'content-type': type = '' } = answer
    if (!type.includes('json')) return answer
    return withoutLength(body === '' ? answer : withBody(answer, JSON.stringify(change(JSON.parse(body)))))
  }
}

const without = (...names: readonly string[]) => (answer: Shown): Shown =>
  Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, names.includes(name) ? '…' : value]))

const has = (code: number) => ({ status }: Shown): boolean => status?.split(' ')[1] === String(code)
const isUnknownPath = has(404)
const isNow = (...codes: readonly number[]) => (_old: Shown, young: Shown): boolean =>
  codes.some(code => has(code)(young))

const GROUP = /,"grupo":"(?:[^"\\]|\\.)*"/g

/** Changes of the other fields are new. */
const isOlder = (field: string): boolean => field !== 'grupo' && field !== 'otp'

const NEW_ROUTES = '`listEntries` (entries without secrets), `whoKnows`, `formerPassword` and `formerNotes`.'
const NETWORK = 'Operators: network, logs, installation'
const OWN = /\/api\/changeOwnPassword/

export const MEANT: readonly Meant[] = [
  {
    said: 'If a body is not valid JSON, `errors.body` names the byte, counted from 0, and no longer line and column.',
    of: /^POST /,
    commonOf: answer => withBody(answer, answer['body']!.replace(/\((line \d+, column \d+|at byte \d+)\)/, '(…)'))
  },
  {
    said: 'For a body that is not UTF-8 it names none.', of: /^POST /,
    commonOf: answer => !answer['body']!.includes('not valid UTF-8') ? answer
      : withBody(withoutLength(answer), answer['body']!.replace(/(not valid UTF-8) \((at byte \d+|…)\)/, '$1'))
  },
  { said: 'an id that is percent-encoded (404)', of: / \/api\/\w+\/%3\d/, isOther: isNow(404) },
  {
    said: NEW_ROUTES,
    of: /\/api\/whoKnows/, isOther: isUnknownPath,
    commonOf: inJson(({ knows, ...others }) => ({ ...others,
      knows: knows?.map(({ how, ...who }: any) => ({ ...who, how: how === 'set' ? 'read' : how })) }))
  },
  {
    said: NEW_ROUTES,
    of: /\/api\/former(Password|Notes)/, isOther: isUnknownPath,
    commonOf: inJson(({ fields, password = fields?.password, ...others }) => ({ password, ...others }))
  },
  {
    said: '`GET /api/oneTimeCode/{id}` answers with the code of this moment.',
    of: /\/api\/oneTimeCode/, isOther: isUnknownPath
  },
  {
    said: 'The answer has `expires`, and of the user `abilities`, `secondFactor` and `hasPassword`.',
    of: / \/api\/login/,
    commonOf: answer => !answer['body']!.includes('"user":') ? answer
      : withBody(withoutLength(answer), answer['body']!.replace(/,"(secondFactor|hasPassword|firstPassword)":\w+/g, ''))
  },
  { said: 'New are `ownSessions` and `endOwnSessions`.', of: /\/api\/(o|endO)wnSessions/, isOther: isUnknownPath },
  {
    said: 'With tokens `changeOwnPassword` is always served, and needs no ability.',
    of: OWN, isOther: old => has(404)(old) || has(403)(old)
  },
  { said: 'It takes any token of a login, and none of the operator (403).', of: OWN, isOther: isNow(403) },
  { said: 'A new password that is too easy to guess is refused (400).', of: OWN, isOther: isNow(400) },
  {
    said: 'which 1.0.0 ignored. If one of them is not suitable, the answer is 400.',
    of: /^POST \/api\/(create|update)Password/, isOther: (old, young) =>
      has(200)(old) && has(400)(young) && /"errors":\{"(grupo|otp)"/.test(young['body']!)
  },
  {
    said: 'Entries may have `url`, `notas`, `grupo` and `otp`', of: / \/api\/(list|get|update|deleted)\w+/,
    commonOf: answer => withBody(withoutLength(answer), answer['body']!.replace(GROUP, ''))
  },
  {
    said: NEW_ROUTES, of: / \/api\/listEntries/,
    commonOf: answer => withBody(withoutLength(answer), answer['body']!.replace(/,"(notas|otp)":true/g, ''))
  },
  {
    said: NEW_ROUTES,
    of: / \/api\/listEntries/,
    commonOf: answer => withBody(withoutLength(answer), answer['body']!
      .replace(/,"(exposed":\d+|exposedTo":\[[^\]]*\]|unrecordedBefore":"[^"]*")/g, ''))
  },
  {
    said: 'Beyond the newest id it is 200 with an empty list.',
    of: /\/api\/deletedPasswords\//, isOther: (old, young) => has(404)(old) && has(200)(young)
  },
  {
    said: 'The answer of `deletedPasswords` has no passwords and notes any more',
    of: /\/api\/deletedPasswords/,
    commonOf: inJson(({ passwords, ...others }) => ({ ...others,
      passwords: passwords?.map(({ password, notas, deleted, deletedBy, ...open }: any) => open) }))
  },
  {
    said: 'The answer of `historyPassword` has the names of the fields that a change set',
    of: /\/api\/historyPassword/,
    commonOf: inJson(({ history, ...others }) => ({ ...others,
      history: history?.map(({ version, fields = [], values, ...change }: any) =>
        ({ ...change, fields: (Array.isArray(fields) ? fields : Object.keys(fields)).filter(isOlder) }))
        .filter(({ change, fields }: any) => change !== 'updated' || fields.length > 0) }))
  },
  {
    said: 'Every 429 says `X-RateLimit-Remaining: 0`.', of: /./,
    commonOf: answer => has(429)(answer) ? without('x-ratelimit-remaining')(answer) : answer
  },
  {
    said: 'Pages of other origins may send `If-None-Match` and read `X-Request-Id`.', of: /./,
    commonOf: answer => Object.fromEntries(Object.entries(answer).map(([name, value]) =>
      [name, name.startsWith('access-control-') ? value?.replace(/, (If-None-Match|X-Request-Id)$/, '') : value]))
  },
  {
    said: 'With `RATE_LIMIT_BY=user`, `logout` and the routes of own sessions and passwords count by address.',
    of: /\/api\/(logout|changeOwnPassword|ownSessions|endOwnSessions)/,
    commonOf: without('x-ratelimit-remaining'), isOther: (old, young) => has(429)(old) !== has(429)(young)
  },
  {
    said: 'A HEAD of an answer with passwords has no `Content-Length`.', of: /^HEAD \/api\/(list|get|former)Password/,
    commonOf: answer => Object.fromEntries(Object.entries(answer).filter(([name]) => name !== 'content-length'))
  },
  {
    // With tokens the first answer is recorded, and the second request comes before that has ended.
    said: 'With tokens a first read waits for the disk, so even a GET that is sent at once behind it ' +
      'is not carried out.',
    of: / \/api\/(list|get)Password.* and others$/,
    isOther: (old, young) => old['connection'] === 'keep-alive' && young['connection'] === 'close'
  },
  {
    said: '`/openapi.json` describes all of this.', of: / \/openapi\.json/,
    commonOf: without('body', 'content-length', 'etag')
  },
  {
    said: 'The page is new', section: 'Users of the page', of: /^(GET|HEAD) \/( |$|web\/)/,
    commonOf: without('body', 'content-length', 'etag')
  },
  {
    said: 'the metric `pes_access_log_lost_lines_total` counts them', section: NETWORK, of: / \/metrics/,
    commonOf: answer => withBody(answer, answer['body']!.split('\n')
      .filter(line => !line.includes('pes_access_log_lost_lines_total')).join('\n'))
  },
  {
    said: '`pes_certificate_end_seconds` says when it ends.', section: NETWORK, of: / \/metrics/,
    commonOf: answer => withBody(answer, answer['body']!.split('\n')
      .filter(line => !line.includes('pes_certificate_end_seconds')).join('\n'))
  },
  {
    said: 'With `METRICS=local` they also refuse what came through a proxy that sends `Forwarded`, `Via`, ' +
      '`X-Real-IP` or `X-Forwarded-Host` alone.',
    section: NETWORK, of: / \/(healthz|livez|metrics)/, isOther: isNow(403)
  },
  {
    said: 'answers that went out by HTTPS through a trusted proxy have `Strict-Transport-Security`, too',
    section: NETWORK, of: /./, commonOf: answer => ({ ...answer, 'strict-transport-security': '…' })
  }
]
