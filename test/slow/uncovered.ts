/** Code that nothing runs while coverage is measured, and why: by source, then by its line as JavaScript. */

const NEVER = 'it guards what nothing else lets happen, so no test comes there'
const ETCD = 'with the journal in etcd: test/etcd'
const HOSTILE = 'test/program/hostile.test.ts, which looks at memory and so is not measured'
const SOUND = 'a look at a state that is sound: a test runs it after each step, and it finds nothing'
const SOMETIMES = 'now and then, as the timing has it'

/** The reasons that `coverage.ts` goes by. What begins with "now and then" may have run. */
export const REASONS: { readonly [source: string]: { readonly [line: string]: string } } = {
  'admin.ts': {
    "const kept = command.journal?.(flags) ?? (given.journal === 'etcd' ? 'etcd' : 'file');": ETCD,
    'return isForeseen ? 1 : undefined;': NEVER,
    'throw error;': NEVER
  },
  'api/entries.ts': {
    'return password === undefined ? UNKNOWN : updated(password);': 'an entry that was there before the body is there',
    'handle: async ({ params, session }) => await store.deleteEntry(idOf(params), userOf(session)) ? DELETED : UNKNOWN':
      'an entry that was there before is there'
  },
  'api/pipeline.ts': {
    'if (current === undefined || this.#needsNothingNew(found.target))': ETCD,
    'current().then(() => this.#run(() => {': ETCD,
    '#needsNothingNew({ mayBeStale, isPublic }) {': ETCD,
    "if (isBusy && this.#options.tellsFailures !== true)": ETCD,
    'return this.#send(BUSY);': ETCD
  },
  'certificate.ts': {
    'let renew = (_certificate) => { };': 'a certificate that changes before anybody listens'
  },
  'errors.ts': {
    'return String(error);': 'what is thrown is an Error, but for what an embedder may throw'
  },
  'http/client.ts': {
    "resolve({ status: response.statusCode ?? 0, body: text === '' ? undefined : JSON.parse(text) });":
      'the types allow it; the service on that socket always sends a status and a body'
  },
  'http/listener.ts': {
    'const sockets = new Sockets(address => isTrusted(address, trustedProxies));': HOSTILE,
    "server.on('error', error => warn?.(`a connection could not be accepted: ${systemCode(error)}`));":
      'a system that is out of descriptors or memory'
  },
  'http/sockets.ts': {
    'if (count > MAX_CONNECTIONS_PER_CLIENT && !this.#isExempt(address)) {': HOSTILE,
    'socket.destroy();': HOSTILE
  },
  'index.ts': {
    'const onAbort = () => void service.close().catch(error => log.warn(String(error)));':
      'a close that fails, as test/journal/file.test.ts makes one'
  },
  'journal/files.ts': {
    'catch {': 'under the permission model: test/program/restricted.test.ts'
  },
  'journal/rewrite.ts': {
    'return { find: name => name === newest.name ? newest : undefined };': NEVER
  },
  'journal/writer.ts': {
    "return new Failure('journal-latched', this.#fault);": 'the file is replaced while a failed write is being cut back'
  },
  'json/parse.ts': {
    'throw error;': NEVER
  },
  'open-store.ts': {
    "const openEtcd = settings.journal === 'etcd' ? await inEtcd(settings, keyFile, sources) : undefined;": ETCD,
    'const store = new Store(fold => journal = openEtcd?.(fold) ?? openFileJournal({': ETCD,
    "log.info(`etcd           ${path} at ${endpoints.join(', ')}`);": ETCD,
    'async function inEtcd(settings, keyFile, sources) {': ETCD
  },
  'operator/copy.ts': {
    'export async function saveLines(context, part, status) {': ETCD,
    'async function copyToFile(context) {': ETCD,
    'async function copyToEtcd(context) {': ETCD,
    'function sourceOf(to) {': ETCD,
    'journal: ({ to }) => sourceOf(to),': ETCD,
    "run: context => sourceOf(context.flags['to']) === 'file' ? copyToEtcd(context) : copyToFile(context)": ETCD
  },
  'operator/journal.ts': {
    "return by === null ? '-' : state.users.get(by)?.email ?? String(by);": NEVER,
    'const look = async () => {': SOMETIMES,
    'const timer = setInterval(() => void look(), 200);': SOMETIMES,
    'await saveLines(context, part, status);': ETCD,
    'if (isInEtcd && given === undefined)': ETCD,
    "throw new Misuse('in etcd key rewrite needs --to-prefix, such as /pes-2');": ETCD,
    'return given === undefined ? undefined : keyPrefix(String(given));': ETCD,
    'catch (error) {': ETCD,
    'const { keyFile } = await statusOf(context);': ETCD,
    'context.terminal.print(`the journal is in ${to}; set ETCD_PREFIX to that for every instance and restart it`);': ETCD
  },
  'operator/reach.ts': {
    'asked = await socket() ?? folder;': SOMETIMES,
    'if (answer.status !== 503 || tries === TRIES)': SOMETIMES,
    'look: async (path) => {': SOMETIMES,
    'catch {': SOMETIMES,
    'return new Refusal(errors === undefined ? message : sentenceOf(errors));':
      'the commands themselves refuse what these routes would'
  },
  'operator/read.ts': {
    'throw new Refusal(`there is no key file ${keyFile}`);': 'the key file goes between the question and the answer',
    'const { readEtcd } = await import("../etcd/copy.js");': ETCD,
    'export function etcdPlaceOf({ store: { settings } }) {': ETCD
  },
  'page.ts': {
    "const FOLDER = join(import.meta.dirname, import.meta.filename.endsWith('.ts') ? '../dist/web' : 'web');":
      'what is measured is compiled'
  },
  'place.ts': {
    'export function etcdAccess(settings, files) {': ETCD
  },
  'server.ts': {
    'throw error;': NEVER
  },
  'serving.ts': {
    'const sweeping = setInterval(() => store.accounts.sweep(), TOKEN_SWEEP_MS).unref();':
      'a timer of minutes; test/store/accounts.test.ts sweeps',
    "const url = `${isTls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${listener.port}`;":
      'an IPv6 address to listen on, which not every machine has'
  },
  'store/entries.ts': {
    'throw new Error(`entry ${id} would leave a gap`);': NEVER,
    'throw new Error(`entry ${id} is not whole`);': SOUND,
    'throw new Error(`page ${i} is out of date`);': SOUND,
    'throw new Error(`${deleted} entries are deleted, and not ${this.#deleted}`);': SOUND,
    "throw new Error('a page is missing');": SOUND
  },
  'store/password.ts': {
    "scrypt(password.normalize('NFC'), salt, HASH_BYTES, { N, r, p, maxmem: 256 * N * r }, (error, hash) => error === null ? resolve(hash) : reject(error));":
      'a system that is out of memory'
  }
}
