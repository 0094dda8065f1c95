import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ExpressError, LocalStorageRows, MemoryRows, SyncExpress, wrappedItems } from
  '../../Shared/Client/JavaScript/Web/sync-express.js';
import { Area, FailingRows, Locks, PATTERN, setUp, tab } from './express-support.mjs';
import { Device, entry, settled } from './support.mjs';

const failsWith = (code, message = /./) => (error) => error instanceof ExpressError && error.code === code
  && message.test(error.message);

async function withTwo(test, options) {
  const set = await setUp(test, options);
  set.service.set(['/departments/1', { name: 'Sales' }], ['/departments/2', { name: 'Support' }],
    ['/departments/1/employees/11', { name: 'Ann' }]);
  return set;
}

// ---- reading

test('online the server answers, offline the cache: collections, and their items as objects', async (t) => {
  const { service, json, call } = await withTwo(t);
  const all = [{ deptId: 1, name: 'Sales' }, { deptId: 2, name: 'Support' }];
  assert.deepEqual(await json('GET', '/departments'), [200, all, null]);
  await json('GET', '/departments/1/employees');
  service.network = 'off';
  assert.deepEqual(await json('GET', '/departments'), [200, all, 'cache']);
  assert.deepEqual(await json('GET', 'departments/2'), [200, all[1], 'cache']);
  assert.deepEqual(await json('GET', `${service.base}/departments/`), [200, all, 'cache']);
  assert.deepEqual(await json('GET', '/departments/1/employees/11'), [200, { empId: 11, name: 'Ann' }, 'cache']);
  const response = await call('GET', '/departments/1');
  assert.equal(response.ok, true);
  assert.equal(response.headers.get('Content-Type'), 'application/json');
});

test('an uncached path fails offline like fetch, with a code and the path', async (t) => {
  const { service, json } = await withTwo(t);
  service.network = 'off';
  await assert.rejects(json('GET', '/departments?q=1'), failsWith('offline', /\/departments\?q=1 is not cached/));
  await assert.rejects(json('GET', '/departments/9'), TypeError);
});

test('each query is cached separately, and objects that the server no longer has are removed', async (t) => {
  const { service, json } = await withTwo(t);
  await json('GET', '/departments?limit=5');
  await json('GET', '/departments');
  service.objects.delete('/departments/1');
  assert.equal((await json('GET', '/departments/1'))[0], 404);
  service.network = 'off';
  const rest = [{ deptId: 2, name: 'Support' }];
  assert.deepEqual(await json('GET', '/departments'), [200, rest, 'cache']);
  assert.deepEqual(await json('GET', '/departments?limit=5'), [200, rest, 'cache']);
  await assert.rejects(json('GET', '/departments/1'), failsWith('offline'));
});

test('an answer that is refused, is no JSON, or has no keys is passed on unchanged', async (t) => {
  const { service, json, express } = await withTwo(t);
  await json('GET', '/departments/1');
  service.scripted.push([500, { error: 'x' }]);
  assert.deepEqual(await json('GET', '/departments/1'), [500, { error: 'x' }, null]);
  service.scripted.push([200, '{"cut', {}]);
  await assert.rejects(json('GET', '/departments/2'), SyntaxError);
  service.scripted.push([200, 'text', { 'Content-Type': 'text/plain' }]);
  assert.equal(await (await express.fetch('/departments/2')).text(), 'text');
  const keyless = [{ name: 'a' }, { deptId: 3 }];
  service.scripted.push([200, keyless]);
  await json('GET', '/departments');
  service.network = 'off';
  assert.deepEqual(await json('GET', '/departments'), [200, keyless, 'cache']);
  assert.deepEqual(await json('GET', '/departments/1'), [200, { deptId: 1, name: 'Sales' }, 'cache']);
  await assert.rejects(json('GET', '/departments/2'), failsWith('offline'));
});

test('a document is cached and changed as a whole', async (t) => {
  const { service, json, express } = await setUp(t);
  await json('GET', '/status');
  service.network = 'off';
  assert.deepEqual(await json('PATCH', '/status', { note: 'n' }), [202, { open: true, note: 'n' }, 'queued']);
  assert.deepEqual(await json('PUT', '/status', [1]), [202, [1], 'queued']);
  assert.deepEqual(await json('GET', '/status'), [200, [1], 'cache']);
  service.network = 'on';
  assert.equal(await express.flush(), 0);
  assert.deepEqual(service.documents.get('/status'), [1]);
});

test('answers wrapped in items are read, and served with the same wrapping', async (t) => {
  const { service, json } = await withTwo(t, { items: wrappedItems });
  service.wrapped = true;
  await json('GET', '/departments');
  service.network = 'off';
  const [, made] = await json('POST', '/departments', { name: 'New' });
  assert.deepEqual((await json('GET', '/departments'))[1], { items: [{ deptId: 1, name: 'Sales' },
    { deptId: 2, name: 'Support' }, { deptId: made.deptId, name: 'New' }], count: 3, more: false });
  assert.equal((await json('GET', '/departments/2'))[0], 200);
  assert.deepEqual((await json('GET', `/departments/${made.deptId}/employees`))[1], { items: [] });
});

test('the configuration of Oracle\'s Sync Express sets patterns, the format of collections and fetch policies',
  async (t) => {
    const policies = [{ path: PATTERN, fetchPolicy: 'FETCH_FROM_CACHE_SCHEDULE_REFRESH' },
      { path: '/status', fetchPolicy: 'FETCH_FROM_SERVICE' }];
    const { service, json, events } = await withTwo(t, { patterns: undefined,
      syncExpress: { handler: 'OracleRestHandler', policies } });
    service.wrapped = true;
    // A miss is fetched; afterwards the cache answers at once, and the refresh brings the change for the next call.
    assert.equal((await json('GET', '/departments'))[2], null);
    service.set(['/departments/1', { name: 'Renamed' }]);
    const [, before, mark] = await json('GET', '/departments');
    assert.deepEqual([before.items[0].name, mark], ['Sales', 'cache']);
    while (service.log.filter(({ path }) => path === '/departments').length < 2) await settled();
    let after = before;
    while (after.items[0].name === 'Sales') [, after] = await json('GET', '/departments');
    assert.equal(after.items[0].name, 'Renamed');
    // FETCH_FROM_SERVICE has no answer offline, although the document is cached.
    await json('GET', '/status');
    service.network = 'off';
    await assert.rejects(json('GET', '/status'), failsWith('offline'));
    assert.equal((await json('GET', '/departments'))[2], 'cache');
    assert.deepEqual(events.filter(([name]) => name === 'storeError'), []);
  });

test('patterns and syncExpress are two ways to say the same: only one of them is accepted', (t) => {
  for (const options of [{ patterns: [PATTERN], syncExpress: { policies: [{ path: PATTERN }] } }, {},
    { items: wrappedItems, syncExpress: { policies: [{ path: PATTERN }] } }]) {
    assert.throws(() => new SyncExpress({ base: 'http://127.0.0.1:1', rows: new MemoryRows(), page: new EventTarget(),
      ...options }), (error) => error instanceof ExpressError && ['pattern', 'invalid'].includes(error.code));
  }
});

test('a path without a pattern, and another method, are passed to fetch unchanged', async (t) => {
  const { service, express, call } = await withTwo(t);
  service.scripted.push([200, { other: true }], [200, { other: true }], [200]);
  assert.deepEqual(await (await express.fetch('/other')).json(), { other: true });
  await express.fetch(new Request(`${service.base}/other`, { method: 'PUT', body: 'not JSON' }));
  await call('HEAD', '/departments');
  assert.deepEqual(service.log.map(({ method, path, body }) => [method, path, body]),
    [['GET', '/other', ''], ['PUT', '/other', 'not JSON'], ['HEAD', '/departments', '']]);
  service.network = 'off';
  await assert.rejects(call('POST', '/other', {}), (error) => !(error instanceof ExpressError));
  await assert.rejects(call('HEAD', '/departments'), TypeError);
});

// ---- changing

test('online a change returns the server\'s answer, and the cache has it', async (t) => {
  const { service, json, events } = await withTwo(t);
  await json('GET', '/departments');
  assert.deepEqual(await json('POST', '/departments', { name: 'New' }), [201, { name: 'New', deptId: 100 }, null]);
  assert.deepEqual(await json('PATCH', '/departments/1', { name: 'S' }), [200, { deptId: 1, name: 'S' }, null]);
  assert.deepEqual(await json('DELETE', '/departments/2'), [204, null, null]);
  service.scripted.push([409, { code: 'taken' }]);
  assert.deepEqual(await json('PUT', '/departments/1', { name: 'T' }), [409, { code: 'taken' }, null]);
  service.network = 'off';
  assert.deepEqual((await json('GET', '/departments'))[1], [{ deptId: 1, name: 'S' }, { name: 'New', deptId: 100 }]);
  assert.deepEqual(events, []);
});

test('offline changes are visible at once, and sent in order when there is a network', async (t) => {
  const { service, express, json, call, told } = await withTwo(t);
  await json('GET', '/departments');
  service.network = 'off';
  const response = await call('POST', '/departments', { name: 'New' });
  const made = await response.json();
  const at = `/departments/${made.deptId}`;
  assert.match(made.deptId, /^~[0-9a-f]{32}$/);
  assert.equal(response.headers.get('Location'), service.base + at);
  assert.deepEqual(await json('PUT', at, { ...made, name: 'Newer' }), [202, { ...made, name: 'Newer' }, 'queued']);
  const [, ann] = await json('POST', `${at}/employees`, { name: 'Ann', boss: made.deptId });
  assert.deepEqual(await json('PATCH', `${at}/employees/${ann.empId}`, { age: 40 }),
    [202, { name: 'Ann', boss: made.deptId, empId: ann.empId, age: 40 }, 'queued']);
  await json('DELETE', '/departments/2');
  assert.deepEqual(await json('GET', '/departments'), [200, [{ deptId: 1, name: 'Sales' },
    { deptId: made.deptId, name: 'Newer' }], 'cache']);
  assert.equal((await json('GET', `${at}/employees`))[1].length, 1);
  assert.deepEqual(await json('GET', '/departments/2'), [404, null, 'cache']);
  assert.equal((await express.pending()).length, 5);

  service.network = 'on';
  service.log.length = 0;
  const [, after] = await json('GET', at);
  assert.deepEqual(after, { deptId: 100, name: 'Newer' });
  assert.deepEqual(service.changes, ['POST /departments {"name":"New"}',
    'PUT /departments/100 {"name":"Newer","deptId":100}',
    'POST /departments/100/employees {"name":"Ann","boss":100}',
    'PATCH /departments/100/employees/101 {"age":40}', 'DELETE /departments/2 ']);
  assert.deepEqual(told('keyReplaced'), [{ collection: '/departments', temporary: made.deptId, key: 100 },
    { collection: '/departments/100/employees', temporary: ann.empId, key: 101 }]);
  assert.deepEqual(told('sent').map(({ status }) => status), [201, 200, 201, 200, 204]);
  assert.equal((await json('GET', `${at}/employees/${ann.empId}`))[1].age, 40);
});

test('it continues after a restart, also with objects shown under a temporary key', async (t) => {
  const rows = new MemoryRows();
  const { service, express, json } = await withTwo(t, { rows });
  await json('GET', '/departments');
  service.network = 'off';
  const [, made] = await json('POST', '/departments', { name: 'New' });
  express.close();
  const second = tab(service, { rows });
  assert.equal((await second.json('GET', '/departments'))[1].length, 3);
  service.network = 'on';
  assert.equal(await second.express.flush(), 0);
  const third = tab(service, { rows });
  assert.deepEqual(await third.json('PATCH', `/departments/${made.deptId}`, { head: made.deptId }),
    [200, { name: 'New', deptId: 100, head: 100 }, null]);
});

test('the page reports that the network is back, and the queue is sent', async (t) => {
  const page = new EventTarget();
  let isOnline = false;
  const { service, express, json, told } = await withTwo(t, { page, isOnline: () => isOnline });
  await json('PATCH', '/departments/1', { name: 'S' });
  assert.equal(service.log.length, 0);
  isOnline = true;
  const sent = new Promise((resolve) => express.addEventListener('sent', resolve, { once: true }));
  page.dispatchEvent(new Event('online'));
  await sent;
  assert.equal(service.objects.get('/departments/1').name, 'S');
  express.close();
  page.dispatchEvent(new Event('online'));
  assert.equal(told('sent').length, 1);
});

test('a change that the server refuses is undone, together with the changes that need its key', async (t) => {
  const rows = new MemoryRows();
  const { service, express, json, told } = await withTwo(t, { rows });
  await json('GET', '/departments');
  service.network = 'off';
  const [, made] = await json('POST', '/departments', { name: 'New' });
  await json('PATCH', `/departments/${made.deptId}`, { x: 1 });
  await json('PATCH', '/departments/1', { head: made.deptId });
  await json('PATCH', '/departments/2', { name: 'Last' });
  service.network = 'on';
  service.scripted.push([422, { code: 'no' }]);
  assert.deepEqual(await json('GET', '/departments'), [200, [{ deptId: 1, name: 'Sales' },
    { deptId: 2, name: 'Last' }], null]);
  const refusals = told('refused').map(({ change, ...rest }) => [change.method, rest.status, rest.body?.code,
    rest.reason]);
  const needing = ['PATCH', 0, 'no', 'a change that it needs was refused'];
  assert.deepEqual(refusals, [['POST', 422, 'no', 'the server refused it'], needing, needing]);
  assert.deepEqual(await tab(service, { rows }).express.refused(), told('refused'));
  for (const [method, path] of [['GET', ''], ['GET', '/employees'], ['PUT', ''], ['POST', '/employees']]) {
    const answer = await json(method, `/departments/${made.deptId}${path}`, method === 'GET' ? undefined : {});
    assert.deepEqual(answer, [404, null, 'cache'], `${method} ${path}`);
  }
  await express.forgetRefused();
  assert.deepEqual(await express.refused(), []);
});

test('after a temporary failure a change waits with all later ones; reads include them', async (t) => {
  for (const status of [401, 408, 425, 429, 500, 503]) {
    const { service, express, json, told } = await withTwo(t);
    service.network = 'off';
    await json('PATCH', '/departments/1', { name: 'S' });
    service.network = 'on';
    service.scripted.push([status, {}], [status, {}]);
    assert.deepEqual(await json('GET', '/departments/1').then((answer) => answer[0]), status);
    assert.equal(await express.flush(), 0, String(status));
    assert.equal(told('waiting').length, 1);
  }
});

test('while changes wait for a service that answers reads, both are visible', async (t) => {
  const { service, json } = await withTwo(t);
  service.network = 'off';
  await json('PATCH', '/departments/1', { name: 'S' });
  await json('PUT', '/departments/3', { name: 'Third' });
  service.network = 'on';
  service.objects.get('/departments/1').size = 7;
  const busy = () => service.scripted.push([503, {}], null);
  busy();
  assert.deepEqual(await json('GET', '/departments'), [200, [{ deptId: 1, name: 'S', size: 7 },
    { deptId: 2, name: 'Support' }, { deptId: '3', name: 'Third' }], 'cache']);
  busy();
  assert.deepEqual(await json('GET', '/departments/3'), [200, { deptId: '3', name: 'Third' }, 'cache']);
  service.scripted.push([503, {}]);
  assert.deepEqual(await json('PATCH', '/departments/2', { name: 'later' }).then(([status]) => status), 202);
  assert.deepEqual((await json('GET', '/departments/2'))[1], { deptId: 2, name: 'later' });
});

test('an object deleted here is not found: only a PUT creates it again', async (t) => {
  const { service, express, json } = await withTwo(t);
  await json('GET', '/departments/1/employees');
  await json('GET', '/departments');
  service.network = 'off';
  await json('DELETE', '/departments/1');
  for (const [method, path] of [['GET', ''], ['PATCH', ''], ['DELETE', ''], ['POST', ''], ['GET', '/employees'],
    ['POST', '/employees'], ['GET', '/employees/11'], ['PATCH', '/employees/11']]) {
    const body = ['GET', 'DELETE'].includes(method) ? undefined : {};
    assert.equal((await json(method, `/departments/1${path}`, body))[0], 404, `${method} ${path}`);
  }
  assert.equal((await express.pending()).length, 1);
  assert.equal((await json('PUT', '/departments/1', { name: 'Again' }))[0], 202);
  assert.equal((await json('GET', '/departments'))[1].length, 2);
  service.network = 'on';
  await express.flush();
  service.network = 'off';
  assert.deepEqual(await json('GET', '/departments/1'), [200, { deptId: 1, name: 'Again' }, 'cache']);
  await assert.rejects(json('GET', '/departments/1/employees'), failsWith('offline'));
});

test('a delete of an object that is gone already succeeds', async (t) => {
  for (const status of [404, 410]) {
    const { service, express, json, told } = await withTwo(t);
    await json('GET', '/departments');
    service.network = 'off';
    await json('DELETE', '/departments/1');
    service.network = 'on';
    service.scripted.push([status, {}]);
    await express.flush();
    assert.deepEqual([told('sent').length, told('refused').length], [1, 0]);
    service.network = 'off';
    assert.equal((await json('GET', '/departments'))[1].length, 1);
  }
});

test('the server\'s key is in its answer, or ends its Location; without one nothing is guessed', async (t) => {
  const table = [
    [[201, { deptId: 7, name: 'N' }], 7],
    [[201, undefined, { Location: '/v1/departments/8' }], '8'],
    [[201, { ok: true }, { Location: 'departments/9' }], '9'],
    [[201, { deptId: 'x' }, { Location: '/v1/departments/10/employees' }], undefined],
    [[201, undefined, { Location: 'http://[' }], undefined],
    [[204], undefined],
  ];
  for (const [answer, key] of table) {
    const { service, express, json, told } = await withTwo(t);
    await json('GET', '/departments');
    service.network = 'off';
    const [, made] = await json('POST', '/departments', { name: 'N' });
    await json('PATCH', `/departments/${made.deptId}`, { x: 1 });
    service.network = 'on';
    service.scripted.push(answer, [200, { ok: true }]);
    await express.flush();
    assert.deepEqual(told('keyReplaced').map((detail) => detail.key), key === undefined ? [] : [key]);
    service.network = 'off';
    if (key !== undefined) {
      assert.equal(service.log.at(-1).path, `/departments/${key}`);
      assert.deepEqual((await json('GET', `/departments/${key}`))[1], { deptId: key, name: 'N', x: 1 });
      assert.equal((await json('GET', '/departments'))[1].length, 3);
    } else {
      assert.match(told('refused')[0].reason, /returned no key/);
      await assert.rejects(json('GET', '/departments'), failsWith('offline'));
    }
  }
});

test('a key of the app\'s own is kept, unless the server returns another', async (t) => {
  const { service, express, json } = await withTwo(t);
  service.network = 'off';
  await json('POST', '/departments', { deptId: 50, name: 'Mine' });
  await json('POST', '/departments', { deptId: 51, name: 'Other' });
  await json('PATCH', '/departments/51', { x: 1 });
  assert.deepEqual((await json('GET', '/departments/50'))[1], { deptId: 50, name: 'Mine' });
  service.network = 'on';
  service.scripted.push(null, [201, { deptId: 60, name: 'Other' }], [200, { deptId: 60, name: 'Other', x: 1 }]);
  await express.flush();
  assert.deepEqual(service.changes.slice(-3), ['POST /departments {"deptId":50,"name":"Mine"}',
    'POST /departments {"deptId":51,"name":"Other"}', 'PATCH /departments/60 {"x":1}']);
});

test('POST to an object is an action: it waits, and the cached object is not used after it', async (t) => {
  const { service, express, json } = await withTwo(t);
  await json('GET', '/departments/1');
  service.network = 'off';
  assert.deepEqual(await json('POST', '/departments/1', { close: true }), [202, null, 'queued']);
  assert.equal((await json('GET', '/departments/1'))[1].closed, undefined);
  service.network = 'on';
  await express.flush();
  assert.equal(service.objects.get('/departments/1').closed, true);
  service.network = 'off';
  await assert.rejects(json('GET', '/departments/1'), failsWith('offline'));
});

test('the client overwrites, and secrets are not stored', async (t) => {
  let token = 'first';
  const { service, express, call } = await withTwo(t, { headers: async () => ({ Authorization: token }) });
  const init = { headers: { Authorization: 'secret', Cookie: 'c', 'If-Match': '"5"', 'If-Unmodified-Since': 'x',
    'X-Own': 'o', 'Content-Type': 'application/json' } };
  service.network = 'off';
  await call('PUT', '/departments/1', { name: 'S' }, init);
  const [{ headers, id }] = await express.pending();
  assert.deepEqual(headers, { 'content-type': 'application/json', 'if-match': '*', 'x-own': 'o' });
  token = 'second';
  service.network = 'on';
  await express.flush();
  const sent = service.log.at(-1).headers;
  assert.deepEqual([sent.authorization, sent['if-match'], sent['if-unmodified-since'], sent['idempotency-key'],
    sent['x-own']], ['second', '*', undefined, id, 'o']);
  await call('PUT', '/departments/1', { name: 'T' }, init);
  assert.equal(service.log.at(-1).headers['if-match'], '"5"');
});

test('after a lost answer the change is sent again under its id, and applied once', async (t) => {
  const { service, express, json } = await withTwo(t);
  service.network = 'deaf';
  const [status, made] = await json('POST', '/departments', { name: 'New' });
  assert.equal(status, 202);
  await express.flush();
  service.network = 'on';
  await express.flush();
  assert.equal(service.children('/departments').length, 3);
  assert.equal(new Set(service.log.map(({ headers }) => headers['idempotency-key'])).size, 1);
  assert.equal((await json('GET', `/departments/${made.deptId}`))[1].deptId, 100);
});

test('a service that does not answer in time counts as no network', async (t) => {
  const { service, json, express } = await withTwo(t, { timeoutMs: 40 });
  await json('GET', '/departments/1');
  const never = () => new Promise(() => {});
  service.scripted.push(never, never);
  assert.deepEqual(await json('GET', '/departments/1'), [200, { deptId: 1, name: 'Sales' }, 'cache']);
  assert.equal((await json('PATCH', '/departments/1', { name: 'S' }))[2], 'queued');
  assert.equal(await express.flush(), 0);
});

test('a call that the app aborts ends with its reason, and does not wait', async (t) => {
  const { service, call, express } = await withTwo(t);
  const abort = new AbortController();
  service.scripted.push(() => new Promise(() => abort.abort(new Error('enough'))));
  await assert.rejects(call('PATCH', '/departments/1', { x: 1 }, { signal: abort.signal }), /enough/);
  await assert.rejects(call('PATCH', '/departments/1', { x: 1 }, { signal: abort.signal }), /enough/);
  await assert.rejects(call('GET', '/departments/1', undefined, { signal: abort.signal }), /enough/);
  assert.deepEqual([await express.pending(), service.log.length], [[], 1]);
});

test('a waiting change can be withdrawn, with those that need its key', async (t) => {
  const { service, express, json } = await withTwo(t);
  await json('GET', '/departments');
  service.network = 'off';
  const [, made] = await json('POST', '/departments', { name: 'New' });
  await json('PATCH', '/departments/1', { name: 'S' });
  await json('POST', `/departments/${made.deptId}/employees`, { name: 'Ann' });
  const ids = (await express.pending()).map(({ id }) => id);
  assert.deepEqual(await express.discard(ids[0]), [ids[0], ids[2]]);
  assert.deepEqual(await express.discard(ids[0]), []);
  assert.deepEqual((await json('GET', '/departments'))[1].map(({ name }) => name), ['S', 'Support']);
  service.network = 'on';
  await express.flush();
  assert.deepEqual(await express.discard(ids[1]), []);
  assert.deepEqual(service.changes, ['PATCH /departments/1 {"name":"S"}']);
});

// ---- concurrent calls

test('an answer that crossed a change is returned, and not cached', async (t) => {
  const { service, json } = await withTwo(t);
  let release;
  service.scripted.push(() => new Promise((resolve) => {
    release = () => resolve([200, { deptId: 1, name: 'Sales' }]);
  }));
  const slow = json('GET', '/departments/1');
  while (!release) await settled();
  await json('PATCH', '/departments/1', { name: 'S' });
  release();
  assert.equal((await slow)[1].name, 'Sales');
  service.network = 'off';
  assert.equal((await json('GET', '/departments/1'))[1].name, 'S');
});

test('of concurrent callers in two tabs each change is sent once, one at a time', async (t) => {
  const shared = { rows: new MemoryRows(), locks: new Locks(), name: 'shared' };
  const { service, ...first } = await withTwo(t, shared);
  const second = tab(service, shared);
  service.network = 'off';
  const changes = [...Array(20).keys()].map((n) => [first, second][n % 2].json('PATCH', '/departments/1', { n }));
  await Promise.all(changes);
  service.network = 'on';
  let open = 0;
  for (let n = 0; n < 20; n += 1) {
    service.scripted.push(async () => {
      open += 1;
      await settled();
      assert.equal(open, 1);
      open -= 1;
      return null;
    });
  }
  service.log.length = 0;
  await Promise.all([first.express.flush(), second.json('GET', '/departments/1'), first.json('GET', '/departments'),
    second.express.flush()]);
  assert.deepEqual(service.log.filter(({ method }) => method === 'PATCH').map(({ body }) => JSON.parse(body).n),
    [...Array(20).keys()]);
});

// ---- limits

test('in a full store a change is refused with a quota error, and nothing is lost', async (t) => {
  const rows = new MemoryRows({ maxBytes: 2_000 });
  const { service, express, json, told } = await withTwo(t, { rows });
  await json('GET', '/departments');
  service.network = 'off';
  await json('PATCH', '/departments/1', { name: 'S' });
  const big = { note: 'x'.repeat(2_000) };
  await assert.rejects(json('PATCH', '/departments/1', big), failsWith('quota', /store is full.*not stored/));
  assert.equal((await express.pending()).length, 1);
  assert.equal((await json('GET', '/departments/1'))[1].name, 'S');
  service.network = 'on';
  service.set(['/departments/3', big]);
  assert.deepEqual((await json('GET', '/departments/3'))[1], { deptId: 3, ...big });
  assert.equal(told('quota').length, 1);
  assert.equal(service.objects.get('/departments/1').name, 'S');
  assert.equal((await json('PATCH', '/departments/2', big))[0], 200);
  service.network = 'off';
  await assert.rejects(json('GET', '/departments/2'), failsWith('offline'));
  assert.equal((await json('GET', '/departments/1'))[1].name, 'S');
});

test('a queue is sent from a store that is full to the last byte', async (t) => {
  const rows = new MemoryRows();
  const { service, express, json, told } = await withTwo(t, { rows });
  await json('GET', '/departments');
  service.network = 'off';
  const [, made] = await json('POST', '/departments', { name: 'New' });
  await json('PATCH', `/departments/${made.deptId}`, { x: 1 });
  await json('PATCH', '/departments/1', { name: 'S' });
  rows.maxBytes = 1;
  service.network = 'on';
  service.scripted.push([201, { deptId: 100, note: 'x'.repeat(5_000) }], [400, {}]);
  await json('POST', '/departments/2', {});
  assert.equal(service.objects.get('/departments/1').name, 'S');
  assert.deepEqual([told('sent').length, told('refused').length, (await express.pending()).length], [2, 1, 0]);
  await express.applyPush({ resources: [{ uri: '/departments', action: 'invalidate' }] });
});

test('the number of waiting changes is limited', async (t) => {
  const { service, json, express } = await withTwo(t, { maxChanges: 2 });
  service.network = 'off';
  for (const x of [1, 2]) await json('PATCH', '/departments/1', { x });
  await assert.rejects(json('PATCH', '/departments/1', { x: 3 }), failsWith('quota', /2 changes already wait/));
  service.network = 'on';
  assert.deepEqual([await express.flush(), service.objects.get('/departments/1').x], [0, 2]);
});

test('a store that fails: the answer is returned, and a change that cannot be stored is refused', async (t) => {
  const rows = new FailingRows();
  const { service, json, told, express } = await withTwo(t, { rows });
  rows.error = new Error('disk');
  assert.equal((await json('GET', '/departments/1'))[1].name, 'Sales');
  assert.equal((await json('PATCH', '/departments/1', { name: 'S' }))[0], 200);
  assert.equal(told('storeError').length, 2);
  service.network = 'off';
  await assert.rejects(json('PATCH', '/departments/1', { name: 'T' }), /disk/);
  rows.error = null;
  await json('PATCH', '/departments/1', { name: 'U' });
  service.network = 'on';
  rows.error = new Error('disk');
  await assert.rejects(express.flush(), /disk/);
  rows.error = null;
  assert.equal(await express.flush(), 0);
  assert.deepEqual(service.log.slice(-2).map(({ headers }) => headers['idempotency-key']).every((id, index, all) =>
    id === all[0]), true);
});

test('of refused changes the newest 100 are kept', async (t) => {
  const { service, json, express } = await withTwo(t);
  service.network = 'off';
  for (let n = 0; n < 101; n += 1) await json('PATCH', '/departments/1', { n });
  service.network = 'on';
  service.scripted.push(...Array(101).fill([400, {}]));
  await express.flush();
  const kept = await express.refused();
  assert.deepEqual([kept.length, kept[0].change.body.n], [100, 1]);
});

test('the cache can be cleared, and waiting changes stay', async (t) => {
  const { service, json, express } = await withTwo(t);
  await json('GET', '/departments');
  service.network = 'off';
  await json('PUT', '/departments/1', { name: 'S' });
  await express.clearCache();
  await assert.rejects(json('GET', '/departments'), failsWith('offline'));
  assert.equal((await json('GET', '/departments/1'))[1].name, 'S');
  service.network = 'on';
  assert.equal(await express.flush(), 0);
});

// ---- bad input

test('an invalid call is refused before it has any effect, on- and offline', async (t) => {
  const { service, json, express } = await withTwo(t);
  const table = [
    ['POST', '/departments', 'no JSON', /is not JSON/], ['POST', '/departments', undefined, /one JSON object/],
    ['POST', '/departments', '[]', /one JSON object/], ['POST', '/departments', 'null', /one JSON object/],
    ['PUT', '/departments/1', '"x"', /one JSON object/], ['PATCH', '/departments/1', '[{"op":"add"}]', /one JSON obj/],
    ['PUT', '/departments/1', undefined, /one JSON object/], ['PUT', '/status', undefined, /needs a body/],
    ['PUT', '/departments', '{}', /whole collection/], ['DELETE', '/departments', undefined, /whole collection/],
    ['POST', '/departments', '{"deptId":"x"}', /not a key/], ['POST', '/departments', '{"deptId":{}}', /not a key/],
    ['POST', '/departments', `{"deptId":"~${'0'.repeat(32)}"}`, /not a key/],
    ['GET', '/departments', '{}', /invalid request/],
    ['PUT', '/departments/1', '{"deptId":2}', /another key/], ['PATCH', '/departments/1', '{"deptId":2}', /another/],
    ['GET', '/departments/%E0%A4%A', undefined, /correctly escaped/], ['GET', 'http://[', undefined, /not an address/],
    ['CONNECT', '/departments', undefined, /invalid request/],
  ];
  for (const network of ['on', 'off']) {
    service.network = network;
    for (const [method, path, body, message] of table) {
      await assert.rejects(json(method, path, body), failsWith('invalid', message), `${method} ${path} ${body}`);
    }
  }
  assert.deepEqual([service.log.length, (await express.pending()).length], [0, 0]);
});

test('an express with impossible settings is not created', () => {
  const good = { base: 'http://127.0.0.1/', patterns: [PATTERN], page: new EventTarget() };
  const table = [[{ patterns: undefined }, 'pattern'], [{ patterns: [] }, 'pattern'],
    [{ patterns: PATTERN }, 'pattern'], [{ patterns: ['/:x'] }, 'pattern'],
    [{ base: undefined }, 'invalid'], [{ base: '/v1' }, 'invalid'],
    [{ base: 'ftp://x' }, 'invalid'], [{ timeoutMs: 0 }, 'invalid'], [{ timeoutMs: '9' }, 'invalid'],
    [{ maxChanges: 1.5 }, 'invalid']];
  for (const [options, code] of table) {
    assert.throws(() => new SyncExpress({ ...good, ...options }), failsWith(code), JSON.stringify(options));
  }
  assert.throws(() => new SyncExpress(), failsWith('pattern'));
});

// ---- pushes

test('a push marks, refreshes or deletes cached data, at once', async (t) => {
  const { service, json, express, told } = await withTwo(t);
  await json('GET', '/departments');
  await json('GET', '/departments?limit=2');
  await json('GET', '/departments/1/employees');
  service.objects.get('/departments/1').name = 'S';
  service.objects.get('/departments/2').name = 'T';
  service.log.length = 0;
  const resources = [{ uri: '/departments/1', action: 'refresh' }, { uri: `${service.base}/departments/2`,
    action: 'invalidate' }, { uri: 'departments/9', action: 'refresh' }, { uri: '/other', action: 'delete' }];
  await express.applyPush(JSON.stringify({ resources }));
  assert.deepEqual(service.log.map(({ path }) => path), ['/departments/1']);
  assert.deepEqual(told('changed'), resources.slice(0, 3));
  service.network = 'off';
  assert.deepEqual(await json('GET', '/departments/1'), [200, { deptId: 1, name: 'S' }, 'cache']);
  assert.deepEqual(await json('GET', '/departments/2'), [200, { deptId: 2, name: 'Support' }, 'stale']);
  assert.deepEqual((await json('GET', '/departments'))[2], 'stale');
  await express.applyPush({ uri: '/departments/1', action: 'delete' });
  assert.deepEqual((await json('GET', '/departments?limit=2'))[1].length, 1);
  for (const path of ['', '/employees', '/employees/11']) {
    await assert.rejects(json('GET', `/departments/1${path}`), failsWith('offline'), path);
  }
  await express.applyPush({ uri: '/departments', action: 'refresh' });
  assert.equal((await json('GET', '/departments'))[2], 'stale');
  service.network = 'on';
  service.log.length = 0;
  await express.applyPush({ uri: '/departments', action: 'refresh' });
  assert.deepEqual(service.log.map(({ path }) => path).sort(), ['/departments', '/departments?limit=2']);
  service.network = 'off';
  assert.deepEqual((await json('GET', '/departments')).slice(1), [[{ deptId: 1, name: 'S' }, { deptId: 2, name: 'T' }],
    'cache']);
  await express.applyPush({ uri: '/departments', action: 'delete' });
  await assert.rejects(json('GET', '/departments'), failsWith('offline'));
});

test('a push does not undo waiting changes', async (t) => {
  const { service, json, express } = await withTwo(t);
  await json('GET', '/departments');
  service.network = 'off';
  await json('PUT', '/departments/1', { name: 'mine' });
  await express.applyPush({ resources: [{ uri: '/departments/1', action: 'delete' }] });
  assert.equal((await json('GET', '/departments/1'))[1].name, 'mine');
  assert.equal((await json('GET', '/departments'))[1].length, 2);
  service.network = 'on';
  await express.flush();
  assert.equal(service.objects.get('/departments/1').name, 'mine');
});

test('an invalid push is refused, and no part of it is applied', async (t) => {
  const { json, express, told } = await withTwo(t);
  await json('GET', '/departments/1');
  const first = { uri: '/departments/1', action: 'delete' };
  for (const payload of ['', 'x', 'null', '[]', '{}', null, undefined, 7, { resources: {} },
    { resources: [first, null] }, { resources: [first, {}] },
    { resources: [first, { uri: '/departments/1', action: 'DELETE' }] },
    { resources: [first, { uri: '', action: 'delete' }] }, { resources: [first, { uri: 1, action: 'delete' }] },
    { resources: [first, { uri: 'http://[', action: 'delete' }] },
    { resources: [first, { uri: '/departments/%E0%A4%A', action: 'delete' }] }]) {
    await assert.rejects(express.applyPush(payload), failsWith('invalid'), JSON.stringify(payload));
  }
  assert.equal(told('changed').length, 0);
});

test('pushes over the client are applied, then confirmed; an invalid one is reported and confirmed', async (t) => {
  const { service, json, express, told } = await withTwo(t);
  await json('GET', '/departments/1');
  const device = new Device();
  express.attach(device.client, 'RESOURCES');
  await device.start({ user: 'u1' });
  const changed = new Promise((resolve) => express.addEventListener('changed', resolve, { once: true }));
  service.objects.get('/departments/1').name = 'S';
  const payloadOf = (text) => ({ payload: new TextEncoder().encode(text) });
  const push = (after, upto, text) => device.push({ kind: 0, bizType: 'RESOURCES', bindNumber: 1, after: BigInt(after),
    upto: BigInt(upto), entries: [entry(upto, payloadOf(text))] });
  await push(0, 1, '{"resources":[{"uri":"/departments/1","action":"refresh"}]}');
  await changed;
  service.network = 'off';
  assert.equal((await json('GET', '/departments/1'))[1].name, 'S');
  await push(1, 2, 'nonsense');
  await settled();
  assert.deepEqual(told('pushRefused').map(({ error }) => error.code), ['invalid']);
  assert.deepEqual((await device.client.stored(5)).map(({ confirmed }) => confirmed), [true, true]);
  await device.client.stop();
});

// ---- rows

const areas = { memory: () => new MemoryRows(), localStorage: () => new LocalStorageRows('t', new Area()) };
for (const [name, make] of Object.entries(areas)) {
  test(`rows in ${name}: written whole or not at all, listed in order, not changed through copies`, async () => {
    const rows = make();
    const value = { a: [1] };
    await rows.write([['b/2', value], ['a/1', null], ['b/1', 1], ['b/3', 0], ['b/3', undefined], ['c', 7]]);
    value.a.push(2);
    (await rows.read(['b/2'])).get('b/2').a.push(3);
    assert.deepEqual(await rows.list('b/'), ['b/1', 'b/2']);
    assert.deepEqual([...await rows.read(['b/2', 'a/1', 'b/3', 'toString'])], [['b/2', { a: [1] }], ['a/1', null]]);
    if (name === 'memory') rows.maxBytes = 60;
    else rows.area.capacity = 60;
    const write = rows.write([['b/1', 2], ['d', 'x'.repeat(60)]]);
    await assert.rejects(write, ({ name: error }) => error === 'QuotaExceededError');
    assert.deepEqual([...await rows.read(['b/1', 'd'])], [['b/1', 1]]);
    await rows.write([['b/1', undefined], ['c', undefined], ['c', undefined]]);
    assert.deepEqual(await rows.list(''), ['a/1', 'b/2']);
  });
}

test('an express works on localStorage, over restarts and when it is full', async (t) => {
  const area = new Area();
  const { service, json } = await withTwo(t, { rows: new LocalStorageRows('x', area) });
  await json('GET', '/departments');
  service.network = 'off';
  await json('PATCH', '/departments/1', { name: 'S' });
  area.capacity = 10;
  await assert.rejects(json('PATCH', '/departments/1', { name: 'T' }), failsWith('quota'));
  const second = tab(service, { rows: new LocalStorageRows('x', area) });
  assert.equal((await second.json('GET', '/departments/1'))[1].name, 'S');
  area.capacity = Infinity;
  service.network = 'on';
  assert.equal(await second.express.flush(), 0);
  assert.equal(service.objects.get('/departments/1').name, 'S');
});
