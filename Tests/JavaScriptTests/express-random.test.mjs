// Sync Express by random events against a naive model: objects by handle, and a list of waiting changes.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ExpressError, MemoryRows } from '../../Shared/Client/JavaScript/Web/sync-express.js';
import { Locks, RestService, generator, tab } from './express-support.mjs';

const copy = (value) => structuredClone(value);

/** The objects of a service by handle: `{parent, fields}`. It applies one change like a service. */
class World {
  objects = new Map();

  /** @returns whether the change was applied */
  apply({ method, handle, parent, fields }) {
    if (method === 'DELETE') {
      if (this.objects.has(handle)) this.remove(handle);
      return true;
    }
    if (method === 'POST' && parent !== null && !this.objects.has(parent)) return false;
    if (method === 'PATCH' && !this.objects.has(handle)) return false;
    const before = method === 'PATCH' ? this.objects.get(handle).fields : {};
    this.objects.set(handle, { parent, fields: { ...before, ...fields } });
    return true;
  }

  remove(handle) {
    for (const [child, object] of this.objects) if (object.parent === handle) this.objects.delete(child);
    this.objects.delete(handle);
  }
}

class Run {
  server = new World();
  base = new World();
  queue = [];
  lost = new Set();
  cachedLists = new Set();
  keys = new Map();
  temporaries = new Map();
  parents = new Map();
  handles = 0;
  counter = 0;
  /** Objects that their collection no longer contains: cached unchanged until they are requested. */
  unlisted = new Set();

  constructor(service, random) {
    this.service = service;
    this.random = random;
    this.shared = { rows: new MemoryRows(), locks: new Locks() };
    this.restart();
  }

  restart() {
    this.tab?.express.close();
    this.tab = tab(this.service, this.shared);
    this.tab.express.addEventListener('keyReplaced', ({ detail: { temporary, key } }) => {
      for (const [handle, known] of this.temporaries) if (known === temporary) this.keys.set(handle, key);
    });
  }

  pick(list) {
    return list[this.random(list.length)];
  }

  /** Uses the server's key or, where the app had one, sometimes the temporary key. */
  pathOf(handle) {
    const known = [this.keys.get(handle), this.temporaries.get(handle)].filter((key) => key !== undefined);
    return `${this.listOf(this.parents.get(handle))}/${this.pick(known)}`;
  }

  listOf(parent) {
    return parent === null ? '/departments' : `${this.pathOf(parent)}/employees`;
  }

  isWaiting(handle) {
    return this.queue.some((change) => change.method === 'POST' && change.handle === handle);
  }

  /** The view of the app by the model: fields, 'gone' or 'unknown'. */
  see(handle) {
    if (this.lost.has(handle)) return 'gone';
    const parent = this.parents.get(handle);
    let seen = this.base.objects.get(handle)?.fields ?? 'unknown';
    let isGoneWithParent = false;
    for (const change of this.queue) {
      if (change.handle === parent && change.method === 'DELETE') [seen, isGoneWithParent] = ['gone', true];
      else if (change.handle === parent && change.method === 'PUT' && isGoneWithParent) {
        [seen, isGoneWithParent] = ['unknown', false];
      } else if (change.handle === handle) {
        isGoneWithParent = false;
        if (change.method === 'DELETE') seen = 'gone';
        else if (change.method !== 'PATCH') seen = change.fields;
        else if (typeof seen === 'object') seen = { ...seen, ...change.fields };
      }
    }
    return seen;
  }

  /** The view of a collection by the model: handles, 'gone' or 'unknown'. */
  seeList(parent) {
    if (parent !== null && this.lost.has(parent)) return 'gone';
    let isKnown = this.cachedLists.has(parent) || (parent !== null && this.isWaiting(parent));
    let state = 'there';
    for (const change of parent === null ? [] : this.queue.filter(({ handle }) => handle === parent)) {
      if (change.method === 'DELETE') state = 'gone';
      if (change.method === 'PUT' && state === 'gone') [state, isKnown] = ['there', false];
    }
    if (state === 'gone') return 'gone';
    if (!isKnown) return 'unknown';
    return [...this.parents].filter(([, other]) => other === parent).map(([handle]) => handle)
      .filter((handle) => typeof this.see(handle) === 'object');
  }

  /** Applies all waiting changes like the service, or only the first one when its answer is lost. */
  drain() {
    if (this.service.network === 'off') return;
    while (this.queue.length > 0) {
      const [change] = this.queue;
      const result = this.sent(change);
      if (this.service.network === 'deaf') return;
      this.queue.shift();
      if (result.isDone) this.take(change, result);
      else this.refuse(change);
    }
  }

  sent(change) {
    change.result ??= { isDone: this.server.apply(change), after: copy(this.server.objects.get(change.handle)) };
    return change.result;
  }

  take(change, { after }) {
    if (change.method === 'DELETE') {
      this.base.remove(change.handle);
      this.cachedLists.delete(change.handle);
      return;
    }
    this.base.objects.set(change.handle, after);
    if (change.method !== 'PATCH') this.unlisted.delete(change.handle);
  }

  refuse(change) {
    if (change.method !== 'POST') return;
    this.lost.add(change.handle);
    const needing = this.queue.filter((other) => other.handle === change.handle || other.parent === change.handle);
    this.queue = this.queue.filter((other) => !needing.includes(other));
    for (const other of needing) if (other.method === 'POST') this.lost.add(other.handle);
  }

  async change(method, isBusy) {
    const seen = [...this.parents.keys()].filter((handle) => typeof this.see(handle) === 'object');
    const departments = seen.filter((handle) => this.parents.get(handle) === null);
    let parent = method === 'POST' && departments.length > 0 && this.random(3) > 0 ? this.pick(departments) : null;
    const handle = method === 'POST' ? this.handles++ : this.pick(seen);
    if (handle === undefined) return;
    if (method !== 'POST') parent = this.parents.get(handle);
    const fields = { h: handle, [`v${this.random(3)}`]: this.counter++ };
    const change = { method, handle, parent, fields };
    const path = method === 'POST' ? this.listOf(parent) : this.pathOf(handle);
    const isOnline = this.service.network === 'on';
    if (isBusy) this.service.scripted.push([503, {}]);
    const [status, body] = await this.tab.json(method, path, method === 'DELETE' ? undefined : fields);
    if (!isBusy) this.drain();
    if (method === 'POST') this.parents.set(handle, parent);
    if (!isBusy && (this.lost.has(handle) || (parent !== null && this.lost.has(parent)))) {
      assert.equal(status, 404);
      return void this.lost.add(handle);
    }
    if (isOnline && this.queue.length === 0) {
      assert.equal(this.service.scripted.length, 0);
      const result = isBusy ? { isDone: false } : this.sent(change);
      const isDone = status < 300 || (status === 404 && method === 'DELETE');
      assert.equal(isDone, result.isDone, `${method} ${path} ${status}`);
      if (result.isDone) this.take(change, result);
      if (method !== 'POST') return;
      if (result.isDone) this.keys.set(handle, body[parent === null ? 'deptId' : 'empId']);
      else this.lost.add(handle);
      return;
    }
    assert.equal(status, 202, `${method} ${path}`);
    if (this.service.network === 'deaf' && this.queue.length === 0) this.sent(change);
    this.queue.push(change);
    if (method === 'POST') this.temporaries.set(handle, body[parent === null ? 'deptId' : 'empId']);
    else if (method !== 'DELETE') assert.deepEqual(bare(body), this.see(handle));
  }

  /** A change by another user of the service. */
  foreign() {
    const [keyOf, all] = [(handle) => this.serverPath(handle), [...this.server.objects.keys()]];
    const handle = this.pick(all);
    const kind = this.random(4);
    if (kind === 0 && handle !== undefined) {
      this.server.apply({ method: 'DELETE', handle });
      const top = keyOf(handle);
      for (const path of [...this.service.objects.keys()]) {
        if (path === top || path.startsWith(`${top}/`)) this.service.objects.delete(path);
      }
    } else if (kind < 3 && handle !== undefined) {
      const fields = { f: this.counter++ };
      this.server.apply({ method: 'PATCH', handle, parent: this.parents.get(handle), fields });
      Object.assign(this.service.objects.get(keyOf(handle)), fields);
    } else {
      const made = this.handles++;
      this.parents.set(made, null);
      this.keys.set(made, 10_000 + made);
      this.server.apply({ method: 'POST', handle: made, parent: null, fields: { h: made } });
      this.service.set([`/departments/${10_000 + made}`, { h: made }]);
    }
  }

  serverPath(handle) {
    return [...this.service.objects].find(([, { h }]) => h === handle)[0];
  }

  /** Reads everything, like an app before it goes offline. */
  async readAll() {
    this.drain();
    await this.tab.json('GET', '/departments');
    if (this.service.network !== 'on') return;
    this.cache(null);
    for (const handle of this.server.objects.keys()) {
      if (this.parents.get(handle) !== null) continue;
      await this.tab.json('GET', `/departments/${this.keys.get(handle)}/employees`);
      this.cache(handle);
    }
  }

  cache(parent) {
    this.cachedLists.add(parent);
    for (const [handle, object] of this.base.objects) {
      if (object.parent === parent && !this.server.objects.has(handle)) this.unlisted.add(handle);
    }
    for (const [handle, object] of this.server.objects) {
      if (object.parent !== parent) continue;
      this.unlisted.delete(handle);
      this.base.objects.set(handle, copy(object));
    }
  }

  /** Checks without a network that every object and collection equals the view of the model. */
  async check() {
    const { network } = this.service;
    this.service.network = 'off';
    for (const handle of this.parents.keys()) {
      if (!this.keys.has(handle) && !this.temporaries.has(handle)) continue;
      assert.deepEqual(await this.read(this.pathOf(handle), bare), this.see(handle), `object ${handle}`);
    }
    const departments = [...this.parents].filter(([handle, parent]) => parent === null && (this.keys.has(handle)
      || this.temporaries.has(handle)));
    for (const [parent] of [[null], ...departments]) {
      const seen = this.seeList(parent);
      const expected = Array.isArray(seen) ? seen.filter((handle) => !this.unlisted.has(handle)
        || this.queue.some((change) => change.handle === handle && change.method === 'PUT')).sort() : seen;
      assert.deepEqual(await this.read(this.listOf(parent), (list) => list.map(({ h }) => h).sort()), expected,
        `list of ${parent}`);
    }
    this.service.network = network;
  }

  async read(path, of) {
    try {
      const [status, body] = await this.tab.json('GET', path);
      return status === 404 ? 'gone' : of(body);
    } catch (error) {
      if (!(error instanceof ExpressError) || error.code !== 'offline') throw error;
      return 'unknown';
    }
  }

  /** Checks that the service has the same objects as the model's service. */
  checkServer() {
    const found = [...this.service.objects.values()].map((object) => JSON.stringify(sorted(bare(object)))).sort();
    const expected = [...this.server.objects.values()].map(({ fields }) => JSON.stringify(sorted(fields))).sort();
    assert.deepEqual(found, expected);
  }
}

const bare = ({ deptId, empId, ...fields }) => fields;
const sorted = (object) => Object.fromEntries(Object.entries(object).sort());

async function randomRun(seed, service) {
  const random = generator(seed);
  const run = new Run(service, random);
  const methods = ['POST', 'POST', 'PUT', 'PATCH', 'PATCH', 'DELETE'];
  await run.readAll();
  for (let count = 0; count < 120; count += 1) {
    const step = random(20);
    if (step < 10) await run.change(run.pick(methods), false);
    else if (step < 11 && service.network === 'on') await run.change(run.pick(methods.slice(1)), true);
    else if (step < 13) service.network = run.pick(['on', 'off', 'off', 'deaf']);
    else if (step < 15) run.foreign();
    else if (step < 16) run.restart();
    else if (step < 17) await run.readAll();
    else if (step < 18) {
      const left = await run.tab.express.flush();
      run.drain();
      assert.equal(left, run.queue.length);
    } else await run.check();
    run.checkServer();
  }
  service.network = 'on';
  assert.equal(await run.tab.express.flush(), 0);
  run.drain();
  run.checkServer();
  await run.check();
}

test('random events: the app and the service see the same as the model', async () => {
  const first = Number(process.env.MSS_TEST_SEED ?? 1);
  const count = Number(process.env.MSS_TEST_SEEDS ?? 8);
  for (let seed = first; seed < first + count; seed += 1) {
    const service = await new RestService().open();
    try {
      await randomRun(seed, service);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    } finally {
      await service.close();
    }
  }
});
