/**
 * Sync Express: access to a REST API that also works offline. ES modules beside mss-client.js, without a build step or
 * a dependency.
 *
 * Use `express.fetch` instead of `fetch`. It caches answers for the path patterns and serves them without a network;
 * changes that are made meanwhile wait in order. The store holds the server's answers and the waiting changes
 * separately, and the app sees the answers with the changes applied. So a refused change leaves no trace. (RES.)
 */
import { ExpressError, childOf, isLost, isRecord, isTemporary, keyIn, keysWithChanges, matchPath, moved, mustWait,
  oneApplied, plainItems, readConfiguration, readPattern, replaceKeys, segmentOf, temporariesIn, withChanges,
  withDependents,
} from './sync-express-rules.js';
import { IndexedDBRows, MemoryRows, isQuota } from './sync-express-rows.js';

export { ExpressError, plainItems, wrappedItems } from './sync-express-rules.js';
export { IndexedDBRows, LocalStorageRows, MemoryRows } from './sync-express-rows.js';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const actions = ['invalidate', 'refresh', 'delete'];
const isGone = (status) => status === 404 || status === 410;
// The headers that are not stored with a waiting change: secrets, which `headers` supplies, and conditions, because the
// client overwrites.
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

/** Returns the body of a change as JSON; undefined without a body. */
async function bodyOf(request, method, { kind, path }) {
  const text = await request.text();
  const isFree = method === 'DELETE' || kind === 'document' || (method === 'POST' && kind === 'object');
  const name = `${method} ${path}`;
  const body = parsed(text);
  if (text !== '' && body === undefined) throw new ExpressError('invalid', `the body of ${name} is not JSON`);
  if (kind === 'collection' && method !== 'POST') {
    throw new ExpressError('invalid', `${name} changes a whole collection: change its objects instead`);
  }
  if (!isFree && !isRecord(body)) throw new ExpressError('invalid', `${name} needs one JSON object as its body`);
  if (['PUT', 'PATCH'].includes(method) && body === undefined) {
    throw new ExpressError('invalid', `${name} needs a body`);
  }
  return body;
}

/**
 * Wraps a REST API. It dispatches events with their data in `detail`:
 *
 * - About changes that waited: `queued` {change}, `sent` {change, status}, `waiting` {change, status} when it must wait
 *   longer, `refused` {change, status, body, reason}, `keyReplaced` {collection, temporary, key}.
 * - About pushes: `changed` {uri, action}, and `pushRefused` {error} for an invalid push.
 * - About the store: `quota` {error} when an answer was not cached, `storeError` {error}.
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
   * @param {string[]} [options.patterns] the path patterns, see readPattern; the first match counts
   * @param {object} [options.syncExpress] instead of `patterns` and `items`: the object of this name in Oracle's
   *   configuration, see readConfiguration
   * @param {string} [options.base] the address at which the paths begin: an origin, with or without a path; by default
   *   the page's origin
   * @param {string} [options.name] the name of the store, one for each API and user; `default` by default
   * @param {object} [options.rows] the store; by default IndexedDB, or memory where there is none
   * @param {object} [options.keys] {parameter: member}, where the key's member has another name than in the pattern
   * @param {{read, write}} [options.items] the format of collections: plainItems (default), wrappedItems or your own
   * @param {() => object} [options.headers] returns the headers of each request that must not be stored, such as
   *   Authorization
   * @param {string} [options.idempotencyHeader] the header for a change's id, with which a server can apply it once
   * @param {number} [options.timeoutMs] the longest wait for an answer; 30,000 by default
   * @param {number} [options.maxChanges] the most waiting changes; 1,000 by default
   * @throws {ExpressError} `pattern` or `invalid`
   */
  constructor({ patterns, syncExpress, base = globalThis.location?.origin, name = 'default', rows, keys = {}, items,
    headers = () => ({}), idempotencyHeader = null, timeoutMs = 30_000, maxChanges = 1_000,
    fetch = (...given) => globalThis.fetch(...given), isOnline = () => globalThis.navigator?.onLine !== false,
    locks = globalThis.navigator?.locks ?? null, page = globalThis } = {}) {
    super();
    if (syncExpress !== undefined && (patterns !== undefined || items !== undefined)) {
      throw new ExpressError('invalid', 'syncExpress sets the patterns and the items: leave out patterns and items');
    }
    if (syncExpress === undefined && (!Array.isArray(patterns) || patterns.length === 0)) {
      throw new ExpressError('pattern', 'patterns is a list of at least one path pattern');
    }
    const configuration = syncExpress === undefined
      ? { patterns: patterns.map((pattern) => readPattern(pattern)), items: items ?? plainItems }
      : readConfiguration(syncExpress);
    this.#patterns = configuration.patterns;
    if (!URL.canParse(String(base)) || !/^https?:/.test(base)) {
      throw new ExpressError('invalid', 'base is the http or https address at which the patterns begin');
    }
    for (const [option, number] of Object.entries({ timeoutMs, maxChanges })) {
      if (!Number.isInteger(number) || number < 1) throw new ExpressError('invalid', `${option} is an integer from 1`);
    }
    this.#base = new URL(String(base).replace(/[?#].*$/, '').replace(/\/+$/, ''));
    this.#rows = rows ?? (globalThis.indexedDB ? new IndexedDBRows(name) : new MemoryRows());
    this.#options = { name, keys, items: configuration.items, headers, idempotencyHeader, timeoutMs, maxChanges, fetch,
      isOnline, locks, page };
    page.addEventListener?.('online', this.#onOnline);
  }

  /** Stops listening to the page. The next object with this name sends the waiting changes. */
  close() {
    this.#options.page.removeEventListener?.('online', this.#onOnline);
  }

  /**
   * Fetches like `fetch`. A path with one leading `/`, or a relative path, is below `base`. A path without a matching
   * pattern and other methods go to `fetch` unchanged. An answer that is not the server's has the header
   * `X-Sync-Express`: `cache`, `stale` or `queued`.
   * @throws {ExpressError} `invalid`, `offline`, `quota`; also the reason with which `init.signal` is aborted
   */
  async fetch(input, init) {
    const url = this.#urlOf(input instanceof Request ? input.url : String(input));
    let request;
    try {
      request = new Request(input instanceof Request ? input : url, init);
    } catch (cause) {
      throw new ExpressError('invalid', `invalid request: ${cause.message}`, { cause });
    }
    const target = this.#locate(url);
    const method = methods.find((known) => known === request.method.toUpperCase());
    if (!target || !method) return this.#options.fetch(request);
    if (method === 'GET') return this.#get(target, request);
    const body = await bodyOf(request, method, target);
    return this.#exclusively(() => this.#change(target, body, request));
  }

  /**
   * Sends the waiting changes in order, one at a time, until one gets no answer or must wait longer.
   * @returns {Promise<number>} the number of changes that still wait
   */
  async flush() {
    return this.#exclusively(async () => (await this.#sendWaiting()).changes.length);
  }

  /** Returns the waiting changes in order, as `{id, method, path, body, …}`. */
  async pending() {
    return this.#exclusively(async () => (await this.#load()).changes.map(storedOf));
  }

  /**
   * Removes a waiting change, and the changes that need the key of the object that it creates.
   * @returns {Promise<string[]>} the ids of the removed changes; empty when the change no longer waits
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

  /** Returns the newest 100 changes that waited and were refused, in the form of the event `refused`. */
  async refused() {
    return (await this.#rows.read(['refused'])).get('refused') ?? [];
  }

  async forgetRefused() {
    await this.#exclusively(() => this.#rows.write([['refused', undefined]]));
  }

  /** Deletes every cached answer. Waiting changes stay. */
  async clearCache() {
    await this.#exclusively(async () => {
      const names = await Promise.all(['list/', 'object/'].map((prefix) => this.#rows.list(prefix)));
      await this.#rows.write([...await this.#nextVersion(), ...names.flat().map((name) => [name, undefined])]);
    });
  }

  /**
   * Applies a push about resources: all of it, or nothing when it is invalid.
   * @param payload `{"resources":[{"uri", "action": "invalidate"|"refresh"|"delete"}]}`, one such resource, or their
   *   text
   * @throws {ExpressError} `invalid`
   */
  async applyPush(payload) {
    const found = this.#readPush(payload);
    await this.#exclusively(async () => {
      for (const { target, action } of found) {
        await this.#store(await this.#nextVersion(), action === 'delete' ? await this.#removal(target)
          : await this.#copies(target, (row) => ({ ...row, stale: true })));
      }
    });
    await Promise.all(found.filter(({ action }) => action === 'refresh').map(({ target }) => this.#refresh(target)));
    for (const { uri, action } of found) this.#emit('changed', { uri, action });
  }

  /**
   * Applies the pushes of a Sync ID that a SyncClient receives. An invalid push is reported as `pushRefused` and
   * confirmed.
   */
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

  // -- addresses

  #urlOf(text) {
    const isWhole = /^([a-z][a-z0-9+.-]*:|\/\/)/i.test(text);
    const address = isWhole ? text : this.#addressOf({ path: `/${text.replace(/^\//, '')}` });
    if (!URL.canParse(address, this.#base)) throw new ExpressError('invalid', `${text} is not an address`);
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
      throw new ExpressError('invalid', `${path} is not a correctly escaped path`, { cause });
    }
  }

  /** Returns the target with the server's keys instead of temporary ones. */
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
    if (!Array.isArray(resources)) throw new ExpressError('invalid', 'a push of resources has no list of resources');
    return resources.map((resource, index) => {
      const { uri, action } = resource ?? {};
      if (typeof uri !== 'string' || uri === '' || !actions.includes(action)) {
        throw new ExpressError('invalid', `resource ${index} of a push needs a uri, and one of ${actions.join(', ')}`);
      }
      return { uri, action, target: this.#locate(this.#urlOf(uri)) };
    }).filter(({ target }) => target);
  }

  // -- storing

  /** Runs work after all earlier work of all tabs, so that no other work changes the data that it reads. */
  #exclusively(work) {
    const { locks, name } = this.#options;
    if (locks) return locks.request(`mss-express ${name}`, work);
    const result = this.#tail.then(work);
    this.#tail = result.catch(() => {});
    return result;
  }

  /**
   * Reads the state. `version` rises with each change of the server's data, so that an answer to an older request is
   * not cached.
   */
  async #load() {
    const names = await this.#rows.list('change/');
    const rows = await this.#rows.read(['state', ...names]);
    const changes = names.map((row) => ({ ...rows.get(row), row }));
    return { version: 0, next: 1, aliases: {}, ...rows.get('state'), changes };
  }

  #stateOf({ version, next, aliases }) {
    return [['state', { version, next, aliases: Object.fromEntries(Object.entries(aliases).slice(-1_000)) }]];
  }

  async #nextVersion() {
    const state = await this.#load();
    return this.#stateOf({ ...state, version: state.version + 1 });
  }

  /** Returns the row names of a path: its own with any query, and those below it. */
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

  /** Returns the cached rows of a target after a change; without a query, the rows with any query. */
  async #copies({ path, query }, change) {
    const { own } = await this.#names(path);
    const rows = await this.#rows.read(own.filter((name) => !query || name.endsWith(path + query)));
    return [...rows].map(([name, row]) => [name, change(row)]);
  }

  /** Returns the row changes that delete a path and all below it, and remove it from its collection's lists. */
  async #removal({ kind, path, query, collection, key }) {
    if (kind === 'collection' && query) return [[`list${path}${query}`, undefined]];
    const { own, below } = await this.#names(path);
    const lists = collection && collection !== path ? await this.#copies({ path: collection, query: '' },
      (row) => (row.keys ? { ...row, keys: row.keys.filter((other) => other !== key) } : row)) : [];
    return [...lists, ...[...own, ...below].map((name) => [name, undefined])];
  }

  /** Writes all rows. When the store is full, it writes only the needed ones, without the cached ones. */
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

  /** Runs work on the store after the server has answered; an error of the store must not replace the answer. */
  async #tryStoring(work) {
    try {
      await work();
    } catch (error) {
      this.#emit('storeError', { error });
    }
  }

  // -- reading

  /** Executes a fetch under the policy of its pattern. */
  async #get(located, request) {
    if (located.fetchPolicy !== 'FETCH_FROM_CACHE_SCHEDULE_REFRESH') return this.#ask(located, request);
    const cached = await this.#exclusively(async () => {
      const state = await this.#load();
      return this.#cachedAnswer(this.#translated(located, state), state);
    });
    if (!cached) return this.#ask(located, request);
    // The refresh continues when the caller aborts its fetch.
    this.#ask(located, new Request(request, { signal: null })).catch((error) => {
      if (error.code !== 'offline') this.#emit('storeError', { error });
    });
    return cached;
  }

  /** Returns a target from the cache with the waiting changes applied; undefined when it is not cached. */
  async #cachedAnswer(target, { changes }) {
    const seen = await this.#visible(target, changes);
    if (seen?.gone) return answerOf(404, undefined, 'cache');
    return seen && answerOf(200, seen.value, seen.stale ? 'stale' : 'cache');
  }

  /** Asks the server, and answers from the cache when there is no network. */
  async #ask(located, request) {
    const before = await this.#exclusively(async () => {
      const state = await this.#sendWaiting();
      return { ...state, target: this.#translated(located, state) };
    });
    const mayAsk = !before.isOffline && temporariesIn(before.target.path).length === 0;
    const answer = mayAsk ? await this.#send(before.target, request, request.signal) : null;
    return this.#exclusively(async () => {
      const state = await this.#load();
      const target = this.#translated(located, state);
      if (answer && state.version === before.version) await this.#tryStoring(() => this.#cacheAnswer(target, answer));
      const isRefused = answer && !answer.response.ok && !isGone(answer.response.status);
      if (answer && (isRefused || state.changes.length === 0)) return answer.response;
      // Only this device has an object with a temporary key.
      const mayUseCache = answer || target.fetchPolicy !== 'FETCH_FROM_SERVICE'
        || temporariesIn(target.path).length > 0;
      const cached = mayUseCache && await this.#cachedAnswer(target, state);
      if (cached) return cached;
      if (answer) return answer.response;
      throw new ExpressError('offline', `${target.path}${target.query} is not cached, or its fetch policy needs the `
        + 'server, and there is no network');
    });
  }

  async #cacheAnswer(target, { response, json }) {
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

  /** Returns a target as the app sees it: `{value, stale}`, `{gone: true}`, or undefined when it is not cached. */
  async #visible(target, changes) {
    const { kind, path, query } = target;
    if (isLost(path, changes)) return { gone: true };
    const name = `${kind === 'collection' ? 'list' : 'object'}${path}${query}`;
    const row = (await this.#rows.read([name])).get(name);
    if (kind !== 'collection') return withChanges(path, row, changes);
    // An object that was created here contains only objects that were created here.
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

  /** Fetches the cached rows of a target again. Without a network they stay, marked as stale. */
  async #refresh(target) {
    const names = await this.#copies(target, () => undefined);
    await Promise.all(names.map(async ([name]) => {
      const query = name.includes('?') ? name.slice(name.indexOf('?')) : '';
      const copy = { ...target, query };
      await this.#ask(copy, new Request(this.#addressOf(copy))).catch((error) => {
        if (error.code !== 'offline') throw error;
      });
    }));
  }

  // -- changing

  async #change(located, body, request) {
    const state = await this.#sendWaiting();
    const target = this.#translated(located, state);
    const change = this.#draft(target, request, replaceKeys(body, state.aliases));
    const isNew = change.method === 'PUT' && temporariesIn(target.path).length === 0;
    if (isLost(target.path, state.changes) || (!isNew && withChanges(target.path, undefined, state.changes)?.gone)) {
      return answerOf(404, undefined, 'cache');
    }
    request.signal.throwIfAborted();
    const isFirst = state.changes.length === 0 && !state.isOffline;
    const answer = isFirst ? await this.#send(change, change, request.signal) : null;
    if (!answer) return this.#queue(change, state);
    if (isDone(change, answer)) await this.#tryStoring(() => this.#record(change, answer, state));
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
      throw new ExpressError('invalid', `${member} of the object for ${path} is not a key of the pattern`);
    }
    return { ...change, object: childOf(path, given), collection, key: given, member };
  }

  async #queue({ headers, ...change }, state) {
    if (state.changes.length >= this.#options.maxChanges) {
      throw new ExpressError('quota', `${state.changes.length} changes already wait: this one was not stored`);
    }
    const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !unstored.includes(name)));
    // The client overwrites, so a version from days ago must not stop the change.
    if (headers['if-match']) kept['if-match'] = '*';
    const waiting = { ...change, headers: kept };
    const row = `change/${String(state.next).padStart(12, '0')}`;
    try {
      await this.#rows.write([[row, waiting], ...this.#stateOf({ ...state, next: state.next + 1 })]);
    } catch (error) {
      if (!isQuota(error)) throw error;
      throw new ExpressError('quota', 'the store is full: the change was not stored',
        { cause: error });
    }
    this.#emit('queued', { change: waiting });
    if (change.object === undefined || change.method === 'DELETE') return answerOf(202, undefined, 'queued');
    const seen = await this.#visible({ kind: 'object', path: change.object, query: '' }, [...state.changes, waiting]);
    const location = { Location: this.#addressOf({ path: change.object }) };
    return answerOf(202, seen?.value ?? change.body, 'queued', change.method === 'POST' ? location : {});
  }

  /** Sends the waiting changes. `isOffline` in the result says that there is no network. */
  async #sendWaiting() {
    const state = { ...await this.#load(), isOffline: !this.#options.isOnline() };
    while (state.changes.length > 0 && !state.isOffline) {
      const [change] = state.changes;
      const answer = await this.#send(change, change);
      const status = answer?.response.status;
      if (!answer) state.isOffline = true;
      else if (isDone(change, answer)) {
        await this.#record(change, answer, state);
        this.#emit('sent', { change, status });
      } else if (mustWait(status)) {
        this.#emit('waiting', { change, status });
        break;
      } else await this.#refuse(state, withDependents(state.changes, 0), status, answer.json);
    }
    return state;
  }

  #addressOf({ path, query = '' }) {
    return this.#base.href.replace(/\/$/, '') + path + query;
  }

  /** @returns the answer, with its JSON if it has some; null without an answer */
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

  /** Moves the result of a change into the cache, and removes the change from the waiting ones. */
  async #record(change, { json, response }, state) {
    const isNew = change.method === 'POST' && change.object !== undefined;
    const key = isNew ? this.#keyOf(change, json, response) : change.key;
    const rest = state.changes.filter(({ id }) => id !== change.id);
    const needed = change.row ? [[change.row, undefined]] : [];
    let object = change.object;
    if (isNew && key !== undefined && String(key) !== change.key) {
      object = childOf(change.collection, String(key));
      // A temporary key that the app has never seen needs no alias.
      const aliases = change.row && isTemporary(change.key) ? { [change.key]: key } : {};
      Object.assign(state.aliases, aliases);
      rest.forEach((other, index) => {
        rest[index] = moved(other, change.object, object, String(key), aliases);
        if (JSON.stringify(rest[index]) !== JSON.stringify(other)) needed.push([other.row, storedOf(rest[index])]);
      });
    }
    const before = state.changes;
    Object.assign(state, { version: state.version + 1, changes: rest });
    const cached = await this.#effects({ ...change, object, key: key && String(key) }, json, key);
    await this.#store([...this.#stateOf(state), ...needed], cached);
    if (change.row && object !== change.object) {
      this.#emit('keyReplaced', { collection: change.collection, temporary: change.key, key });
    }
    const lost = isNew && key === undefined && change.row ? withDependents(before, 0).slice(1) : [];
    if (lost.length > 0) {
      await this.#refuse(state, lost, 0, null, 'the server returned no key of the object that they need');
    }
  }

  /** Returns the key of a created object from the server's answer, or from the end of its Location. */
  #keyOf({ collection, path, member, key }, json, response) {
    if (keyIn(json, member) !== undefined && this.#match(childOf(collection, json[member]))) return json[member];
    const location = response.headers.get('Location');
    const address = this.#addressOf({ path });
    const target = location && URL.canParse(location, address) ? this.#locate(new URL(location, address)) : null;
    if (target?.kind === 'object' && target.collection === collection) return target.key;
    return isTemporary(key) ? undefined : key;
  }

  /** Returns the cached rows that a change has altered on the server. */
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

  async #refuse(state, dropped, status, body = null, reason = 'the server refused it') {
    const ids = dropped.map(({ id }) => id);
    const refusals = dropped.map((change, index) => ({ change: storedOf(change), status: index === 0 ? status : 0, body,
      reason: index === 0 ? reason : 'a change that it needs was refused' }));
    await this.#store(dropped.map(({ row }) => [row, undefined]),
      [['refused', [...await this.refused(), ...refusals].slice(-100)]]);
    state.changes = state.changes.filter(({ id }) => !ids.includes(id));
    for (const detail of refusals) this.#emit('refused', detail);
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
