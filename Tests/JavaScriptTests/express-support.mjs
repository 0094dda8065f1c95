// Test doubles for Sync Express: a REST service over real HTTP that can be interrupted, locks, localStorage.
import http from 'node:http';
import { once } from 'node:events';

import { MemoryRows, SyncExpress } from '../../Shared/Client/JavaScript/Web/sync-express.js';

export const PATTERN = '/departments/:deptId(\\d+)?/:_employees?/:empId(\\d+)?';
const members = { departments: 'deptId', employees: 'empId' };

/** A service with departments and their employees below /v1, and the document /v1/status. `log` has every request. */
export class RestService {
  /** Objects by path, for example `/departments/1`. */
  objects = new Map();
  documents = new Map([['/status', { open: true }]]);
  log = [];
  /** `on`; `off`: no request arrives; `deaf`: requests are executed, and their answers are lost. */
  network = 'on';
  /** Answers to the next changes or requests, in place of the service's: [status, body, headers] or a function. */
  scripted = [];
  wrapped = false;
  #nextKey = 100;
  #known = new Map();
  #sockets = new Set();

  async open() {
    this.server = http.createServer((request, response) => this.#took(request, response));
    this.server.on('connection', (socket) => {
      if (this.network === 'off') return socket.destroy();
      this.#sockets.add(socket);
      return socket.on('close', () => this.#sockets.delete(socket));
    });
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.base = `http://127.0.0.1:${this.server.address().port}/v1`;
    return this;
  }

  async close() {
    for (const socket of this.#sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  set(...objects) {
    for (const [path, value] of objects) {
      const member = members[path.split('/').at(-2)];
      this.objects.set(path, { [member]: Number(path.split('/').at(-1)), ...value });
    }
  }

  /** The changes that arrived, for example `POST /departments {"name":"x"}`. */
  get changes() {
    return this.log.filter(({ method }) => method !== 'GET')
      .map(({ method, path, body }) => `${method} ${path} ${body}`);
  }

  children(path) {
    return [...this.objects].filter(([key]) => key.slice(0, key.lastIndexOf('/')) === path).map(([, value]) => value);
  }

  async #took(request, response) {
    let body = '';
    for await (const part of request.setEncoding('utf8')) body += part;
    const path = request.url.replace(/^\/v1/, '');
    const { method, headers } = request;
    this.log.push({ method, path, body, headers });
    const script = this.scripted.shift();
    const scripted = typeof script === 'function' ? await script(request) : script;
    const [status, value, more = {}] = scripted ?? this.#once(headers['idempotency-key'], () => (
      this.#answer(method, path, body && JSON.parse(body))));
    if (this.network !== 'on') return request.socket.destroy();
    const type = value === undefined ? {} : { 'Content-Type': 'application/json' };
    response.writeHead(status, { Connection: 'close', ...type, ...more });
    return response.end(typeof value === 'string' ? value : JSON.stringify(value));
  }

  /** A change with a known id is not applied again. */
  #once(id, work) {
    if (!id) return work();
    if (!this.#known.has(id)) this.#known.set(id, structuredClone(work()));
    return this.#known.get(id);
  }

  #answer(method, url, body) {
    const [path] = url.split('?');
    if (this.documents.has(path)) {
      if (method !== 'GET') this.documents.set(path, body);
      return [200, this.documents.get(path)];
    }
    const last = path.split('/').at(-1);
    if (last in members) return this.#answerCollection(method, path, members[last], body);
    if (method === 'PUT') this.set([path, body]);
    if (!this.objects.has(path)) return [404, { error: 'no such object' }];
    if (method === 'PATCH') Object.assign(this.objects.get(path), body);
    if (method === 'POST') this.objects.get(path).closed = true;
    if (method !== 'DELETE') return [200, this.objects.get(path)];
    for (const key of [path, ...this.objects.keys()]) {
      if (key === path || key.startsWith(`${path}/`)) this.objects.delete(key);
    }
    return [204];
  }

  #answerCollection(method, path, member, body) {
    const parent = path.slice(0, path.lastIndexOf('/'));
    if (parent && !this.objects.has(parent)) return [404, { error: 'no such parent' }];
    if (method !== 'POST') return [200, this.wrapped ? { items: this.children(path), count: 1, more: false }
      : this.children(path)];
    const key = body[member] ?? this.#nextKey++;
    this.objects.set(`${path}/${key}`, { ...body, [member]: key });
    return [201, this.objects.get(`${path}/${key}`), { Location: `/v1${path}/${key}` }];
  }
}

/** The Web Locks of two tabs. */
export class Locks {
  #tails = new Map();

  request(name, work) {
    const result = (this.#tails.get(name) ?? Promise.resolve()).then(work);
    this.#tails.set(name, result.catch(() => {}));
    return result;
  }
}

/** A localStorage with a limit of characters. */
export class Area {
  items = new Map();

  constructor(capacity = Infinity) {
    this.capacity = capacity;
  }

  getItem(name) {
    return this.items.get(name) ?? null;
  }

  setItem(name, text) {
    if (text.length > this.capacity) throw new DOMException('full', 'QuotaExceededError');
    this.items.set(name, text);
  }
}

/** A service with an express on it; both end with the test. */
export async function setUp(test, options = {}) {
  const service = await new RestService().open();
  test.after(() => service.close());
  return { service, ...tab(service, options) };
}

/** Another page on a service; `json` returns the status and the body of a call. */
export function tab(service, options = {}) {
  const rows = options.rows ?? new MemoryRows();
  const express = new SyncExpress({ base: service.base, patterns: [PATTERN, '/status'], rows, page: new EventTarget(),
    idempotencyHeader: 'Idempotency-Key', ...options });
  const events = [];
  for (const name of ['queued', 'sent', 'waiting', 'refused', 'keyReplaced', 'changed', 'pushRefused', 'quota',
    'storeError']) {
    express.addEventListener(name, ({ detail }) => events.push([name, detail]));
  }
  const call = (method, path, body, init = {}) => express.fetch(path, { method, ...init,
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }) });
  const json = async (method, path, body) => {
    const response = await call(method, path, body);
    const text = await response.text();
    return [response.status, text === '' ? null : JSON.parse(text), response.headers.get('X-Sync-Express')];
  };
  return { express, rows, events, call, json, told: (name) => events.filter(([n]) => n === name).map(([, d]) => d) };
}

/** Rows whose writes fail while there is an `error`. */
export class FailingRows extends MemoryRows {
  error = null;

  async write(changes) {
    if (this.error) throw this.error;
    return super.write(changes);
  }
}

/** Random numbers from a seed, so that a failing run can be repeated. */
export function generator(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
