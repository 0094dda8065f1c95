/**
 * Sync Express: any REST API, offline too. ES modules beside mss-client.js, no build step, no dependency.
 *
 * `express.fetch` stands for `fetch`: what the path patterns name is cached and served while there is no network, and
 * changes made meanwhile wait in order. What is stored is what the server said, and the changes that wait; what the app
 * sees is the one with the others applied. So a change that is refused leaves nothing behind. (Spec, two-way §1.)
 */
import { ExpressError, childOf, isLost, isRecord, isTemporary, keyIn, keysWithChanges, matchPath, moved, mustWait,
  oneApplied, plainItems, readPattern, replaceKeys, segmentOf, temporariesIn, withChanges, withDependents,
} from './sync-express-rules.js';
import { IndexedDBRows, MemoryRows, isQuota } from './sync-express-rows.js';

export { ExpressError, plainItems, wrappedItems } from './sync-express-rules.js';
export { IndexedDBRows, LocalStorageRows, MemoryRows } from './sync-express-rows.js';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const actions = ['invalidate', 'refresh', 'delete'];
const isGone = (status) => status === 404 || status === 410;
// What a change that waits is sent without: secrets, which `headers` gives, and conditions, as the client overwrites.
const unstored = ['authorization', 'cookie', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'];
const storedOf = ({ row, ...change }) => change;
const isDone = ({ method }, { response }) => response.ok || (method === 'DELETE' && isGone(response.status));

function answerOf(status, value, mark, headers = {}) {
  const type = value === undefined ? {} : { 'Content-Type': 'application/json' };
  return new Response(value === undefined ? null : JSON.stringify(value),
    { status, headers: { ...type, 'X-Sync-Express': mark, ...headers } });
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The body of a change as JSON; undefined: it has none. */
async function bodyOf(request, method, { kind, path }) {
  const text = await request.text();
  const isFree = method === 'DELETE' || kind === 'document' || (method === 'POST' && kind === 'object');
  const what = `${method} ${path}`;
  const body = parsed(text);
  if (text !== '' && body === undefined) throw new ExpressError('invalid', `the body of ${what} is not JSON`);
  if (kind === 'collection' && method !== 'POST') {
    throw new ExpressError('invalid', `${what} is a change of a collection as a whole: change its objects`);
  }
  if (!isFree && !isRecord(body)) throw new ExpressError('invalid', `${what} needs one JSON object as its body`);
  if (['PUT', 'PATCH'].includes(method) && body === undefined) {
    throw new ExpressError('invalid', `${what} needs a body`);
  }
  return body;
}

/**
 * Wraps a REST API. Events, with their data in `detail`. Of changes that waited: `queued` {change}, `sent` {change,
 * status}, `waiting` {change, status} still, `refused` {change, status, body, reason}, `keyReplaced` {collection,
 * temporary, key}. `changed` {uri, action} after a push, `pushRefused` {error} when it was none. `quota` {error}: an
 * answer was not cached; `storeError` {error}.
 */
export class SyncExpress extends EventTarget {
  #base;
  #patterns;
  #options;
  #rows;
  #tail = Promise.resolve();
  #onOnline = () => this.flush().catch((error) => this.#emit('storeError', { error }));

  /**
   * @param {object} options
   * @param {string[]} options.patterns see readPattern; the first that takes a path counts
   * @param {string} [options.base] where they begin: an origin, with or without a path; the page's origin when absent
   * @param {string} [options.name] of the store, one per API and user
   * @param {object} [options.rows] the store; IndexedDB when absent, memory where there is none
   * @param {object} [options.keys] {parameter: member} where the key's member is not named as in the pattern
   * @param {{read, write}} [options.items] plainItems, wrappedItems or your own
   * @param {() => object} [options.headers] fresh for every request, as an Authorization that is not to be stored
   * @param {string} [options.idempotencyHeader] carries the change's id, so that a server applies it once
   * @param {number} [options.timeoutMs] after which a request counts as not answered
   * @param {number} [options.maxChanges] that may wait
   * @throws {ExpressError} `pattern` or `invalid`
   */
  constructor({ patterns, base = globalThis.location?.origin, name = 'default', rows, keys = {}, items = plainItems,
    headers = () => ({}), idempotencyHeader = null, timeoutMs = 30_000, maxChanges = 1_000,
    fetch = (...given) => globalThis.fetch(...given), isOnline = () => globalThis.navigator?.onLine !== false,
    locks = globalThis.navigator?.locks ?? null, page = globalThis } = {}) {
    super();
    if (!Array.isArray(patterns) || patterns.length === 0) {
      throw new ExpressError('pattern', 'patterns is a list of at least one path pattern');
    }
    this.#patterns = patterns.map(readPattern);
    if (!URL.canParse(String(base)) || !/^https?:/.test(base)) {
      throw new ExpressError('invalid', 'base is the http or https address at which the patterns begin');
    }
    for (const [option, number] of Object.entries({ timeoutMs, maxChanges })) {
      if (!Number.isInteger(number) || number < 1) throw new ExpressError('invalid', `${option} is an integer from 1`);
    }
    this.#base = new URL(String(base).replace(/[?#].*$/, '').replace(/\/+$/, ''));
    this.#rows = rows ?? (globalThis.indexedDB ? new IndexedDBRows(name) : new MemoryRows());
    this.#options = { name, keys, items, headers, idempotencyHeader, timeoutMs, maxChanges, fetch, isOnline, locks,
      page };
    page.addEventListener?.('online', this.#onOnline);
  }

  /** Listens to the page no more; what waits is sent by the next one of this name. */
  close() {
    this.#options.page.removeEventListener?.('online', this.#onOnline);
  }

  /**
   * As fetch. What begins with one `/` or a name is below `base`. A path that no pattern takes, or another method, goes
   * to fetch as it is. Answers that are not the server's have `X-Sync-Express`: `cache`, `stale`, or `queued`.
   * @throws {ExpressError} `invalid`, `offline`, `quota`; and what `init.signal` is aborted with
   */
  async fetch(input, init) {
    const url = this.#urlOf(input instanceof Request ? input.url : String(input));
    let request;
    try {
      request = new Request(input instanceof Request ? input : url, init);
    } catch (cause) {
      throw new ExpressError('invalid', `this is no request: ${cause.message}`, { cause });
    }
    const target = this.#locate(url);
    const method = methods.find((known) => known === request.method.toUpperCase());
    if (!target || !method) return this.#options.fetch(request);
    if (method === 'GET') return this.#get(target, request);
    const body = await bodyOf(request, method, target);
    return this.#exclusively(() => this.#change(target, body, request));
  }

  /**
   * Sends what waits, one change at a time in order, until one gets no answer or must wait.
   * @returns {Promise<number>} how many wait still
   */
  async flush() {
    return this.#exclusively(async () => (await this.#drain()).changes.length);
  }

  /** The changes that wait, in order, as `{id, method, path, body, …}`. */
  async pending() {
    return this.#exclusively(async () => (await this.#load()).changes.map(storedOf));
  }

  /**
   * Takes back a change that waits, and those that need the key of what it creates.
   * @returns {Promise<string[]>} their ids; none when it is not waiting any more
   */
  async discard(id) {
    return this.#exclusively(async () => {
      const { changes } = await this.#load();
      const index = changes.findIndex((change) => change.id === id);
      const dropped = index < 0 ? [] : withDependents(changes, index);
      await this.#rows.write(dropped.map(({ row }) => [row, undefined]));
      return dropped.map((change) => change.id);
    });
  }

  /** The newest 100 changes that waited and were refused, as the event `refused` has them. */
  async refused() {
    return (await this.#rows.read(['refused'])).get('refused') ?? [];
  }

  async forgetRefused() {
    await this.#exclusively(() => this.#rows.write([['refused', undefined]]));
  }

  /** Drops every cached answer; changes that wait stay. */
  async clearCache() {
    await this.#exclusively(async () => {
      const names = await Promise.all(['list/', 'object/'].map((prefix) => this.#rows.list(prefix)));
      await this.#rows.write([...await this.#touched(), ...names.flat().map((name) => [name, undefined])]);
    });
  }

  /**
   * Does what a push of resources says, with all of it or, when it is invalid, nothing.
   * @param payload `{"resources":[{"uri", "action": "invalidate"|"refresh"|"delete"}]}` or one of them, or its text
   * @throws {ExpressError} `invalid`
   */
  async applyPush(payload) {
    const found = this.#readPush(payload);
    await this.#exclusively(async () => {
      for (const { target, action } of found) {
        await this.#store(await this.#touched(), action === 'delete' ? await this.#removal(target)
          : await this.#copies(target, (row) => ({ ...row, stale: true })));
      }
    });
    await Promise.all(found.filter(({ action }) => action === 'refresh').map(({ target }) => this.#refresh(target)));
    for (const { uri, action } of found) this.#emit('changed', { uri, action });
  }

  /** Applies the pushes of a business type that a SyncClient takes. One that is invalid is told and confirmed. */
  attach(client, bizType) {
    return client.on(bizType, async (oplog) => {
      try {
        await this.applyPush(oplog.payload);
      } catch (error) {
        if (error.code !== 'invalid') throw error;
        this.#emit('pushRefused', { error });
      }
      client.confirm(oplog);
    });
  }

  // -- where things are

  #urlOf(text) {
    const isWhole = /^([a-z][a-z0-9+.-]*:|\/\/)/i.test(text);
    const address = isWhole ? text : this.#addressOf({ path: `/${text.replace(/^\//, '')}` });
    if (!URL.canParse(address, this.#base)) throw new ExpressError('invalid', `${text} is no address`);
    return new URL(address, this.#base);
  }

  #locate(url) {
    const prefix = `${this.#base.pathname.replace(/\/$/, '')}/`;
    if (url.origin !== this.#base.origin || !url.pathname.startsWith(prefix)) return null;
    const target = this.#match(url.pathname.slice(prefix.length));
    return target && { ...target, query: url.search };
  }

  #match(path) {
    try {
      const segments = path.replace(/^\//, '').replace(/\/$/, '').split('/').map(decodeURIComponent);
      return matchPath(this.#patterns, segments, this.#options.keys);
    } catch (cause) {
      throw new ExpressError('invalid', `${path} is not escaped as a path is`, { cause });
    }
  }

  /** The target with the server's keys in the place of temporary ones. */
  #translated(target, { aliases }) {
    const keys = temporariesIn(target.path).filter((key) => Object.hasOwn(aliases, key));
    if (keys.length === 0) return target;
    const path = target.path.split('/').map((part) => (keys.includes(part) ? segmentOf(String(aliases[part])) : part));
    return { ...this.#match(path.join('/')), query: target.query };
  }

  #readPush(payload) {
    let push = payload;
    try {
      if (typeof payload === 'string') push = JSON.parse(payload);
    } catch (cause) {
      throw new ExpressError('invalid', 'a push of resources is not JSON', { cause });
    }
    const resources = isRecord(push) && !('resources' in push) ? [push] : push?.resources;
    if (!Array.isArray(resources)) throw new ExpressError('invalid', 'a push of resources has no list of them');
    return resources.map((resource, index) => {
      const { uri, action } = resource ?? {};
      if (typeof uri !== 'string' || uri === '' || !actions.includes(action)) {
        throw new ExpressError('invalid', `resource ${index} of a push needs a uri, and one of ${actions.join(', ')}`);
      }
      return { uri, action, target: this.#locate(this.#urlOf(uri)) };
    }).filter(({ target }) => target);
  }

  // -- storing

  /** Runs work after all before it, in all tabs: what is read there nobody changes meanwhile. */
  #exclusively(work) {
    const { locks, name } = this.#options;
    if (locks) return locks.request(`mss-express ${name}`, work);
    const result = this.#tail.then(work);
    this.#tail = result.catch(() => {});
    return result;
  }

  /** `version` rises with each change of what the server said, so that an answer that crossed one is not stored. */
  async #load() {
    const names = await this.#rows.list('change/');
    const rows = await this.#rows.read(['state', ...names]);
    const changes = names.map((row) => ({ ...rows.get(row), row }));
    return { version: 0, next: 1, aliases: {}, ...rows.get('state'), changes };
  }

  #stateOf({ version, next, aliases }) {
    return [['state', { version, next, aliases: Object.fromEntries(Object.entries(aliases).slice(-1_000)) }]];
  }

  async #touched() {
    const book = await this.#load();
    return this.#stateOf({ ...book, version: book.version + 1 });
  }

  /** Names of the rows of a path: its own, with whatever query, and those below it. */
  async #names(path) {
    const found = { own: [], below: [] };
    for (const kind of ['list', 'object']) {
      for (const name of await this.#rows.list(kind + path)) {
        const next = name[kind.length + path.length];
        if (next === undefined || next === '?') found.own.push(name);
        else if (next === '/') found.below.push(name);
      }
    }
    return found;
  }

  /** The cached rows of a target, changed; without a query, those with any. */
  async #copies({ path, query }, change) {
    const { own } = await this.#names(path);
    const rows = await this.#rows.read(own.filter((name) => !query || name.endsWith(path + query)));
    return [...rows].map(([name, row]) => [name, change(row)]);
  }

  /** What forgets a path and all below it, and takes it out of its collection's lists. */
  async #removal({ kind, path, query, collection, key }) {
    if (kind === 'collection' && query) return [[`list${path}${query}`, undefined]];
    const { own, below } = await this.#names(path);
    const lists = collection && collection !== path ? await this.#copies({ path: collection, query: '' },
      (row) => (row.keys ? { ...row, keys: row.keys.filter((other) => other !== key) } : row)) : [];
    return [...lists, ...[...own, ...below].map((name) => [name, undefined])];
  }

  /** Writes all; when the store is full, what must be, without what is only cached. */
  async #store(needed, cached) {
    try {
      await this.#rows.write([...needed, ...cached]);
    } catch (error) {
      if (!isQuota(error)) throw error;
      this.#emit('quota', { error });
      const dropped = cached.filter(([name]) => name !== 'refused').map(([name]) => [name, undefined]);
      if (needed.length > 0) await this.#rows.write([...needed, ...dropped]);
    }
  }

  /** The same where an answer is there already, which is worth more than its copy. */
  async #storing(work) {
    try {
      await work();
    } catch (error) {
      this.#emit('storeError', { error });
    }
  }

  // -- reading

  async #get(located, request) {
    const before = await this.#exclusively(async () => {
      const book = await this.#drain();
      return { ...book, target: this.#translated(located, book) };
    });
    const mayAsk = !before.isCut && temporariesIn(before.target.path).length === 0;
    const answer = mayAsk ? await this.#send(before.target, request, request.signal) : null;
    return this.#exclusively(async () => {
      const book = await this.#load();
      const target = this.#translated(located, book);
      if (answer && book.version === before.version) await this.#storing(() => this.#keep(target, answer));
      const isRefused = answer && !answer.response.ok && !isGone(answer.response.status);
      if (answer && (isRefused || book.changes.length === 0)) return answer.response;
      const seen = await this.#visible(target, book.changes);
      if (seen?.gone) return answerOf(404, undefined, 'cache');
      if (seen) return answerOf(200, seen.value, seen.stale ? 'stale' : 'cache');
      if (answer) return answer.response;
      throw new ExpressError('offline', `${target.path}${target.query} is not cached, and there is no network`);
    });
  }

  async #keep(target, { response, json }) {
    const name = target.path + target.query;
    let rows = [[`list${name}`, undefined], [`object${name}`, undefined]];
    if (isGone(response.status)) rows = await this.#removal(target);
    else if (response.status === 200 && json !== undefined) rows = this.#rowsOf(target, name, json);
    else if (!response.ok) return;
    await this.#store([], rows);
  }

  #rowsOf({ kind, path, member, accepts }, name, json) {
    if (kind !== 'collection') return [[`object${name}`, { value: json }]];
    const { items } = this.#options;
    const found = items.read(json);
    const keys = Array.isArray(found) ? found.map((item) => keyIn(item, member)) : [undefined];
    if (!keys.every((key) => key !== undefined && accepts(key))) return [[`list${name}`, { whole: json }]];
    return [[`list${name}`, { keys, body: items.write(json, []) }],
      ...found.map((value, index) => [`object${childOf(path, keys[index])}`, { value }])];
  }

  /** A target as the app sees it: `{value, stale}`, `{gone: true}`, or undefined: not known here. */
  async #visible(target, changes) {
    const { kind, path, query } = target;
    if (isLost(path, changes)) return { gone: true };
    const name = `${kind === 'collection' ? 'list' : 'object'}${path}${query}`;
    const row = (await this.#rows.read([name])).get(name);
    if (kind !== 'collection') return withChanges(path, row, changes);
    // What was created here has nothing below it but what was created here, too.
    const list = row ?? (temporariesIn(path).length > 0 && !query ? { keys: [] } : undefined);
    const whole = withChanges(path, list, changes);
    if (!whole || whole.gone) return whole;
    if (!list.keys) return { value: list.whole, stale: list.stale };
    const near = changes.filter(({ collection }) => collection === path);
    const paths = keysWithChanges(target, list.keys, near).map((key) => childOf(path, key));
    const rows = await this.#rows.read(paths.map((item) => `object${item}`));
    const seen = paths.map((item) => withChanges(item, rows.get(`object${item}`), near));
    if (seen.includes(undefined)) return undefined;
    const items = seen.filter((item) => !item.gone);
    return { value: this.#options.items.write(list.body, items.map(({ value }) => value)),
      stale: list.stale || items.some(({ stale }) => stale) };
  }

  /** Fetches what is cached of a target. Without a network it stays as it is, marked. */
  async #refresh(target) {
    const names = await this.#copies(target, () => undefined);
    await Promise.all(names.map(async ([name]) => {
      const query = name.includes('?') ? name.slice(name.indexOf('?')) : '';
      const copy = { ...target, query };
      await this.#get(copy, new Request(this.#addressOf(copy))).catch((error) => {
        if (error.code !== 'offline') throw error;
      });
    }));
  }

  // -- changing

  async #change(located, body, request) {
    const book = await this.#drain();
    const target = this.#translated(located, book);
    const change = this.#draft(target, request, replaceKeys(body, book.aliases));
    const isNew = change.method === 'PUT' && temporariesIn(target.path).length === 0;
    if (isLost(target.path, book.changes) || (!isNew && withChanges(target.path, undefined, book.changes)?.gone)) {
      return answerOf(404, undefined, 'cache');
    }
    request.signal.throwIfAborted();
    const isFirst = book.changes.length === 0 && !book.isCut;
    const answer = isFirst ? await this.#send(change, change, request.signal) : null;
    if (!answer) return this.#queue(change, book);
    if (isDone(change, answer)) await this.#storing(() => this.#record(change, answer, book));
    return answer.response;
  }

  #draft({ kind, path, query, object, collection, key, member, accepts }, request, body) {
    const id = crypto.randomUUID().replaceAll('-', '');
    const method = request.method.toUpperCase();
    const headers = Object.fromEntries(request.headers);
    const change = { id, method, path, query, headers, credentials: request.credentials, body };
    if (method === 'POST' && kind !== 'collection') return change;
    if (method !== 'POST') {
      if (method !== 'DELETE' && member && ![undefined, key].includes(keyIn(body, member))) {
        throw new ExpressError('invalid', `${member} in the body of ${method} ${path} is another key`);
      }
      return { ...change, object, collection, key, member };
    }
    const given = body[member] === undefined || body[member] === null ? `~${id}` : keyIn(body, member);
    if (given === undefined || isTemporary(body[member]) || !accepts(given)) {
      throw new ExpressError('invalid', `${member} of what is created in ${path} is no key by the pattern`);
    }
    return { ...change, object: childOf(path, given), collection, key: given, member };
  }

  async #queue({ headers, ...change }, book) {
    if (book.changes.length >= this.#options.maxChanges) {
      throw new ExpressError('quota', `${book.changes.length} changes wait already: this one was not taken`);
    }
    const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !unstored.includes(name)));
    // The client overwrites: a version that it saw days ago must not stop it.
    if (headers['if-match']) kept['if-match'] = '*';
    const waiting = { ...change, headers: kept };
    const row = `change/${String(book.next).padStart(12, '0')}`;
    try {
      await this.#rows.write([[row, waiting], ...this.#stateOf({ ...book, next: book.next + 1 })]);
    } catch (error) {
      if (!isQuota(error)) throw error;
      throw new ExpressError('quota', 'the store is full: the change was not taken, all else is as it was',
        { cause: error });
    }
    this.#emit('queued', { change: waiting });
    if (change.object === undefined || change.method === 'DELETE') return answerOf(202, undefined, 'queued');
    const seen = await this.#visible({ kind: 'object', path: change.object, query: '' }, [...book.changes, waiting]);
    const location = { Location: this.#addressOf({ path: change.object }) };
    return answerOf(202, seen?.value ?? change.body, 'queued', change.method === 'POST' ? location : {});
  }

  /** Sends what waits; `isCut` then says that there is no network. */
  async #drain() {
    const book = { ...await this.#load(), isCut: !this.#options.isOnline() };
    while (book.changes.length > 0 && !book.isCut) {
      const [change] = book.changes;
      const answer = await this.#send(change, change);
      const status = answer?.response.status;
      if (!answer) book.isCut = true;
      else if (isDone(change, answer)) {
        await this.#record(change, answer, book);
        this.#emit('sent', { change, status });
      } else if (mustWait(status)) {
        this.#emit('waiting', { change, status });
        break;
      } else await this.#refuse(book, withDependents(book.changes, 0), status, answer.json);
    }
    return book;
  }

  #addressOf({ path, query = '' }) {
    return this.#base.href.replace(/\/$/, '') + path + query;
  }

  /** @returns the answer, with its JSON if it is some, or null: there was none. */
  async #send({ path, query }, given, signal) {
    const { fetch, timeoutMs, idempotencyHeader } = this.#options;
    const init = given instanceof Request ? given : { method: given.method, headers: given.headers,
      credentials: given.credentials, body: given.body === undefined ? undefined : JSON.stringify(given.body) };
    const headers = new Headers(init.headers);
    for (const [name, value] of Object.entries(await this.#options.headers())) headers.set(name, value);
    if (idempotencyHeader && given.id) headers.set(idempotencyHeader, given.id);
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), timeoutMs);
    try {
      const request = new Request(this.#addressOf({ path, query }), init);
      const response = await fetch(new Request(request, { headers,
        signal: signal ? AbortSignal.any([signal, limit.signal]) : limit.signal }));
      if (!/[/+]json\b/i.test(response.headers.get('Content-Type') ?? '')) return { response };
      return { response, json: parsed(await response.clone().text()) };
    } catch {
      signal?.throwIfAborted();
      return null;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Takes what the server did with a change into the cache, and the change out of those that wait. */
  async #record(change, { json, response }, book) {
    const isNew = change.method === 'POST' && change.object !== undefined;
    const key = isNew ? this.#keyOf(change, json, response) : change.key;
    const rest = book.changes.filter(({ id }) => id !== change.id);
    const needed = change.row ? [[change.row, undefined]] : [];
    let object = change.object;
    if (isNew && key !== undefined && String(key) !== change.key) {
      object = childOf(change.collection, String(key));
      // A temporary key that nobody was told needs no memory.
      const aliases = change.row && isTemporary(change.key) ? { [change.key]: key } : {};
      Object.assign(book.aliases, aliases);
      rest.forEach((other, index) => {
        rest[index] = moved(other, change.object, object, String(key), aliases);
        if (JSON.stringify(rest[index]) !== JSON.stringify(other)) needed.push([other.row, storedOf(rest[index])]);
      });
    }
    const before = book.changes;
    Object.assign(book, { version: book.version + 1, changes: rest });
    const cached = await this.#effects({ ...change, object, key: key && String(key) }, json, key);
    await this.#store([...this.#stateOf(book), ...needed], cached);
    if (change.row && object !== change.object) {
      this.#emit('keyReplaced', { collection: change.collection, temporary: change.key, key });
    }
    const lost = isNew && key === undefined && change.row ? withDependents(before, 0).slice(1) : [];
    if (lost.length > 0) await this.#refuse(book, lost, 0, null, 'the server named no key of what they need');
  }

  /** The key of what was created, as the server says it: in the answer, or at the end of its Location. */
  #keyOf({ collection, path, member, key }, json, response) {
    if (keyIn(json, member) !== undefined && this.#match(childOf(collection, json[member]))) return json[member];
    const location = response.headers.get('Location');
    const address = this.#addressOf({ path });
    const target = location && URL.canParse(location, address) ? this.#locate(new URL(location, address)) : null;
    if (target?.kind === 'object' && target.collection === collection) return target.key;
    return isTemporary(key) ? undefined : key;
  }

  /** The rows that a change made otherwise on the server. */
  async #effects(change, json, key) {
    const { method, path, object, collection, member, body } = change;
    if (method === 'DELETE') return this.#removal({ ...change, path: object });
    const stale = await this.#copies({ path: object ?? path, query: '' }, () => undefined);
    if (object === undefined) return stale;
    if (method === 'POST' && key === undefined) return this.#copies({ path: collection, query: '' }, () => undefined);
    const name = `object${object}`;
    const list = `list${collection}`;
    const rows = await this.#rows.read([name, list]);
    const isWhole = member !== undefined && keyIn(json, member) === change.key;
    const value = isWhole ? json : oneApplied(rows.get(name), { ...change,
      body: method === 'POST' ? { ...body, [member]: key } : body })?.value;
    const known = rows.get(list);
    const hasNew = method !== 'PATCH' && known?.keys && !known.keys.includes(change.key);
    return [...stale, [name, value === undefined ? undefined : { value }],
      ...hasNew ? [[list, { ...known, keys: [...known.keys, change.key] }]] : []];
  }

  async #refuse(book, dropped, status, body = null, reason = 'the server refused it') {
    const ids = dropped.map(({ id }) => id);
    const news = dropped.map((change, index) => ({ change: storedOf(change), status: index === 0 ? status : 0, body,
      reason: index === 0 ? reason : 'what it needs was refused' }));
    await this.#store(dropped.map(({ row }) => [row, undefined]),
      [['refused', [...await this.refused(), ...news].slice(-100)]]);
    book.changes = book.changes.filter(({ id }) => !ids.includes(id));
    for (const detail of news) this.#emit('refused', detail);
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
