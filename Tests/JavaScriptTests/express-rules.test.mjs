import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ExpressError, keysWithChanges, matchPath, mustWait, plainItems, readConfiguration, readPattern, replaceKeys,
  withChanges, withDependents, wrappedItems } from '../../Shared/Client/JavaScript/Web/sync-express-rules.js';
import { PATTERN } from './express-support.mjs';

const temporary = `~${'0123456789abcdef'.repeat(2)}`;
const match = (path, patterns = [PATTERN], keys = {}) => matchPath(patterns.map(readPattern),
  path.slice(1).split('/').map(decodeURIComponent), keys);

test('a path is a collection, an object or a document, or matches no pattern', () => {
  const table = {
    '/departments': ['collection', '/departments', 'deptId'],
    '/departments/7': ['object', '/departments', 'deptId'],
    [`/departments/${temporary}`]: ['object', '/departments', 'deptId'],
    '/departments/x': null,
    '/departments/7x': null,
    '/departments/': null,
    '/departments//employees': null,
    '/Departments': null,
    '/departments/7/employees': ['collection', '/departments/7/employees', 'empId'],
    '/departments/7/projects': null,
    '/departments/employees': null,
    '/departments/7/employees/8': ['object', '/departments/7/employees', 'empId'],
    '/departments/7/employees/8/9': null,
    '/': null,
  };
  for (const [path, expected] of Object.entries(table)) {
    const found = match(path);
    assert.deepEqual(found && [found.kind, found.collection, found.member], expected, path);
  }
});

test('the pattern of Oracle\'s guide matches the same paths, verbatim, with and without a ? behind the key', () => {
  const table = {
    '/departments': 'collection', '/departments/1': 'object', '/departments/1/employees': 'collection',
    '/departments/1/employees/2': 'object', '/departments/x': null, '/departments/1/projects': null,
    '/departments/1/employees/x': null, '/departments/1/employees/2/3': null,
  };
  for (const pattern of ['/departments/:deptId(\\d+)/:_employees?/:empId(\\d+)?',
    '/departments/:deptId(\\d+)?/:_employees?/:empId(\\d+)?']) {
    for (const [path, kind] of Object.entries(table)) {
      assert.equal(match(path, [pattern])?.kind ?? null, kind, `${pattern} ${path}`);
    }
  }
  const tasks = ['/mobile/custom/tasks/:id(\\d+)?/:_notes?'];
  assert.equal(match('/mobile/custom/tasks', tasks).kind, 'collection');
  assert.equal(match('/mobile/custom/tasks/1', tasks).kind, 'object');
  // No key follows, so the sub-collection is cached as a whole.
  assert.equal(match('/mobile/custom/tasks/1/notes', tasks).kind, 'document');
  assert.equal(match('/mobile/custom', tasks), null);
});

test('the object syncExpress of Oracle\'s configuration is read verbatim: handler, paths, fetch policies', () => {
  const read = readConfiguration({ handler: 'OracleRestHandler', policies: [
    { path: '/mobile/custom/firstApi/tasks/:id(\\d+)?' },
    { path: '/mobile/custom/secondApi/tasks/:id(\\d+)?', fetchPolicy: 'FETCH_FROM_CACHE_SCHEDULE_REFRESH' }] });
  assert.equal(read.items, wrappedItems);
  const find = (path) => matchPath(read.patterns, path.slice(1).split('/'));
  assert.equal(find('/mobile/custom/firstApi/tasks/7').fetchPolicy, 'FETCH_FROM_SERVICE_IF_ONLINE');
  assert.equal(find('/mobile/custom/secondApi/tasks').fetchPolicy, 'FETCH_FROM_CACHE_SCHEDULE_REFRESH');
  assert.equal(readConfiguration({ policies: [{ path: '/a/:x' }] }).items, plainItems);
  const generic = readConfiguration({ handler: 'GenericRequestHandler', policies: [{ path: '/a/:x' }] });
  assert.equal(generic.items, plainItems);
  const bad = [[null, /is an object/], [{}, /policies/], [{ policies: [] }, /policies/],
    [{ policies: [{}] }, /policies\[0\]\.path/], [{ policies: [{ path: '/a' }], handler: 'X' }, /OracleRestHandler/],
    [{ policies: [{ path: '/a', fetchPolicy: 'NEVER' }] }, /FETCH_FROM_SERVICE_IF_ONLINE/],
    [{ policies: [{ path: '/a', evictionPolicy: 'MANUAL_EVICTION' }] }, /evictionPolicy/],
    [{ policies: [{ path: '/a' }], sync: 1 }, /sync/]];
  for (const [configuration, message] of bad) {
    assert.throws(() => readConfiguration(configuration), (error) => error instanceof ExpressError
      && error.code === 'invalid' && message.test(error.message), JSON.stringify(configuration));
  }
});

test('the first matching pattern counts, a key has the name of its member, a document has neither', () => {
  assert.equal(match('/a/b', ['/a/:x', '/a/b']).kind, 'object');
  assert.equal(match('/a/b', ['/a/b', '/a/:x']).kind, 'document');
  assert.equal(match('/a/1', ['/a/:x'], { x: 'id' }).member, 'id');
  assert.equal(match('/a', ['/a/:x?'], { x: 'id' }).member, 'id');
  // A key needs its collection, so the path can end before it.
  assert.equal(match('/a', ['/a/:x']).kind, 'collection');
  assert.equal(match('/a/1', ['/a/:x/b/:y']), null);
  assert.equal(match('/a/1/b', ['/a/:x/b/:y']).kind, 'collection');
  assert.deepEqual(match('/a/1/:_b'.replace('/:_b', '/c'), ['/a/:x/:_b(b|c)/:y?']).kind, 'collection');
  assert.equal(match('/a/1/d', ['/a/:x/:_b(b|c)/:y?']), null);
});

test('two spellings of a path are one, and a slash in a key stays in it', () => {
  assert.equal(match('/a/x%3Ay%21', ['/a/:k']).path, '/a/x:y!');
  assert.equal(match('/a/x:y!', ['/a/:k']).path, '/a/x:y!');
  assert.deepEqual(match('/a/x%2Fy', ['/a/:k']).path, '/a/x%2Fy');
  assert.equal(match('/a/x%2Fy', ['/a/:k']).key, 'x/y');
  assert.equal(match('/a/%C3%A9?'.replace('?', '%3F'), ['/a/:k']).path, '/a/%C3%A9%3F');
});

test('a meaningless pattern is refused with the reason', () => {
  const table = [[17, /text, not number/], ['', /neither/], ['/', /neither/], ['/a//b', /neither/], ['/a/*', /neither/],
    ['/a?', /neither/], ['/a/:', /neither/], ['/a/:1', /neither/], ['/a/:x(/)', /neither/], ['/a/:x((', /neither/],
    ['/a/:x([)', /no valid expression/], ['/:x', /without a collection/], ['/a/:x/:y', /without a collection/],
    ['/a/:x/:_b/:_c/:y', /without a key/], ['/a/:x?/b', /must be optional/],
    ['/a/:x?/:_b/:y', /must be optional/]];
  for (const [pattern, message] of table) {
    assert.throws(() => readPattern(pattern), (error) => error instanceof ExpressError && error instanceof TypeError
      && error.code === 'pattern' && message.test(error.message), String(pattern));
  }
});

const change = (method, key, body, more = {}) => ({ method, path: method === 'POST' ? '/a' : `/a/${key}`, body,
  object: `/a/${key}`, collection: '/a', key, member: 'id', ...more });

test('waiting changes are applied to the server\'s data, in order', () => {
  const row = { value: { id: 1, x: 1, y: 1 } };
  const table = [
    [row, [], row],
    [undefined, [], undefined],
    [row, [change('PATCH', '1', { x: 2 })], { value: { id: 1, x: 2, y: 1 } }],
    [row, [change('PUT', '1', { x: 2 })], { value: { id: 1, x: 2 } }],
    [undefined, [change('PATCH', '1', { x: 2 })], undefined],
    [undefined, [change('PUT', '1', { x: 2 })], { value: { id: '1', x: 2 } }],
    [undefined, [change('POST', '1', { x: 2 }), change('PATCH', '1', { y: 3 })], { value: { id: '1', x: 2, y: 3 } }],
    [row, [change('PUT', '1', { x: 2 }), change('DELETE', '1')], { gone: true }],
    [row, [change('DELETE', '1'), change('PUT', '1', { x: 2 })], { value: { id: '1', x: 2 } }],
    [row, [change('DELETE', '1'), change('PATCH', '1', { x: 2 })], { gone: true }],
    [row, [change('DELETE', '11'), change('PUT', '2', {})], row],
    [row, [{ method: 'POST', path: '/a/1' }], row],
  ];
  table.forEach(([seen, changes, expected], index) => {
    assert.deepEqual(withChanges('/a/1', seen, changes), expected, `row ${index}`);
  });
  for (const path of ['/a/1/b', '/a/1/b/2']) {
    assert.equal(withChanges(path, row, [change('DELETE', '1')]).gone, true);
    assert.equal(withChanges(path, row, [change('DELETE', '1'), change('PUT', '1', {})]), undefined);
    assert.equal(withChanges(path, row, [change('PUT', '1', {})]), row);
    assert.equal(withChanges(path, row, [change('DELETE', '1'), change('PUT', '11', {})]).gone, true);
  }
  assert.deepEqual(row, { value: { id: 1, x: 1, y: 1 } });
});

test('a collection includes waiting creations, and leaves out waiting deletions', () => {
  const changes = [change('POST', '3', {}), change('DELETE', '1'), change('PUT', '4', {}), change('PATCH', '5', {}),
    change('PUT', '2', {}), change('POST', '9', {}, { collection: '/b' }), { method: 'POST', path: '/a/2' }];
  assert.deepEqual(keysWithChanges({ path: '/a', query: '' }, ['1', '2'], changes), ['2', '3', '4']);
  assert.deepEqual(keysWithChanges({ path: '/a', query: '?q' }, ['1', '2'], changes), ['2']);
});

test('temporary keys are replaced where they are a whole text, and nowhere else', () => {
  const aliases = { [temporary]: 17 };
  assert.deepEqual(replaceKeys({ a: temporary, b: [temporary, { c: temporary }], d: `x${temporary}`, e: null,
    f: 'constructor' }, aliases), { a: 17, b: [17, { c: 17 }], d: `x${temporary}`, e: null, f: 'constructor' });
  assert.equal(replaceKeys(temporary, {}), temporary);
  assert.equal(replaceKeys(undefined, aliases), undefined);
});

test('a dropped creation drops the changes with its temporary key, in path or body, and those that need theirs', () => {
  const other = temporary.replace('0', '1');
  const changes = [
    { id: 'a', ...change('POST', '1', {}) },
    { id: 'b', ...change('POST', temporary, {}) },
    { id: 'c', ...change('PATCH', '1', { x: 1 }) },
    { id: 'd', ...change('POST', other, { parent: temporary }) },
    { id: 'e', ...change('PATCH', temporary, {}) },
    { id: 'f', method: 'DELETE', path: `/a/${other}/b/3`, object: `/a/${other}/b/3` },
    { id: 'g', ...change('PATCH', '1', { x: `see ${temporary}` }) },
  ];
  const ids = (index) => withDependents(changes, index).map(({ id }) => id).join('');
  assert.deepEqual([0, 1, 2, 3].map(ids), ['a', 'bdef', 'c', 'df']);
});

test('after these answers a change waits; any other refusal is final', () => {
  assert.deepEqual([400, 401, 403, 404, 407, 408, 409, 410, 412, 422, 425, 428, 429, 499, 500, 503, 599]
    .filter(mustWait), [401, 407, 408, 425, 429, 500, 503, 599]);
});

test('the handlers read and write a collection, and report when it is none', () => {
  assert.deepEqual([plainItems.read([1]), plainItems.read({ items: [1] }), plainItems.read(null)],
    [[1], undefined, undefined]);
  assert.deepEqual([wrappedItems.read({ items: [1] }), wrappedItems.read([1]), wrappedItems.read(null),
    wrappedItems.read({ items: 1 })], [[1], undefined, undefined, undefined]);
  assert.deepEqual(wrappedItems.write({ items: [1], count: 1, more: true }, [1, 2]), { items: [1, 2], count: 2,
    more: true });
  assert.deepEqual(wrappedItems.write(undefined, [1]), { items: [1] });
});
