// Sync Express in a browser, with its IndexedDB, localStorage and Web Locks. Needs `MSS_TEST_CHROMIUM`, the path of
// Chromium.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const chromium = process.env.MSS_TEST_CHROMIUM;
const web = new URL('../../Shared/Client/JavaScript/Web/', import.meta.url);

/** This function runs in the page. */
async function inPage({ SyncExpress, IndexedDBRows, LocalStorageRows }) {
  const outcome = {};
  for (const [name, make] of [['indexedDB', () => new IndexedDBRows('t')], ['localStorage',
    () => new LocalStorageRows('t')]]) {
    const rows = make();
    await rows.write([['b/2', { a: [1] }], ['b/1', 1], ['b/3', 0], ['c', null]]);
    await rows.write([['b/3', undefined]]);
    outcome[name] = [await rows.list('b/'), [...await make().read(['b/2', 'c', 'x'])]];
  }
  const rows = new IndexedDBRows('t');
  await rows.write([['b/1', 2], ['b/4', () => {}]]).catch((error) => { outcome.refused = error.name; });
  outcome.whole = [...await rows.read(['b/1', 'b/4'])];
  const area = new LocalStorageRows('t');
  await area.write([['d', 'x'.repeat(6_000_000)]]).catch((error) => { outcome.full = error.name; });
  outcome.kept = await area.list('');

  let isOnline = true;
  const make = () => new SyncExpress({ patterns: ['/things/:id?'], name: 'page', isOnline: () => isOnline });
  const [first, second] = [make(), make()];
  await first.fetch('/things');
  isOnline = false;
  const edits = [...Array(6).keys()].map((n) => [first, second][n % 2].fetch('/things/1', { method: 'PUT',
    body: JSON.stringify({ n }) }));
  await Promise.all(edits);
  outcome.waiting = (await second.pending()).length;
  outcome.seen = await (await second.fetch('/things')).json();
  isOnline = true;
  await Promise.all([first.flush(), second.flush()]);
  outcome.served = await (await fetch('/log')).json();
  return outcome;
}

/** @returns the server, and a promise of the result that the page posts at its end */
async function serve() {
  const log = [];
  let end;
  const outcome = new Promise((resolve) => { end = resolve; });
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const part of request.setEncoding('utf8')) body += part;
    const say = (type, text) => response.writeHead(200, { 'Content-Type': type, Connection: 'close' }).end(text);
    if (request.url.startsWith('/things/')) log.push(body);
    if (request.url === '/end') end(JSON.parse(body));
    if (request.url.endsWith('.js')) say('text/javascript', await readFile(new URL(`.${request.url}`, web)));
    else if (request.url === '/log') say('application/json', JSON.stringify(log));
    else if (request.url === '/things') say('application/json', '[{"id":1,"n":9}]');
    else if (request.url.startsWith('/things/')) say('application/json', body);
    else {
      say('text/html', `<script type="module">import * as all from '/sync-express.js';
        const end = (outcome) => fetch('/end', { method: 'POST', body: JSON.stringify(outcome) });
        (${inPage})(all).then(end, (error) => end({ error: String(error.stack) }));</script>`);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, outcome };
}

test('in a browser: its stores are written whole or not at all, and two tabs send each change once', {
  skip: !chromium, timeout: 60_000 }, async () => {
  const { server, outcome } = await serve();
  const profile = await mkdtemp(join(tmpdir(), 'express-'));
  const browser = spawn(chromium, ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${profile}`,
    `http://127.0.0.1:${server.address().port}/`], { stdio: 'ignore' });
  const ended = once(browser, 'exit');
  const gone = ended.then(() => assert.fail('the browser ended before the page said anything'));
  try {
    const { refused, full, ...rest } = await Promise.race([outcome, gone]);
    const rows = [['b/1', 'b/2'], [['b/2', { a: [1] }], ['c', null]]];
    assert.deepEqual(rest, { indexedDB: rows, localStorage: rows, whole: [['b/1', 1]], kept: ['b/1', 'b/2', 'c'],
      waiting: 6, seen: [{ id: 1, n: 5 }], served: [...Array(6).keys()].map((n) => JSON.stringify({ n })) });
    assert.deepEqual([refused, full], ['DataCloneError', 'QuotaExceededError']);
  } finally {
    browser.kill();
    // A browser that could not be started does not end.
    await ended.catch(() => {});
    server.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});
