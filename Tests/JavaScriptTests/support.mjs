// Test doubles for the client: a clock that only the test moves, a store in memory, and the gateway's end of a socket.
import { FrameDecoder, SyncClient, encodeFrame } from '../../Shared/Client/JavaScript/Web/mss-client.js';

/** Lets all tasks run that wait only for their turn. */
export async function settled() {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

export class ManualClock {
  time = 0;
  #timers = new Set();

  now = () => this.time;
  // How far the device's clock was set ahead.
  ahead = 0;
  wall = () => 1_700_000_000_000 + this.time + this.ahead;

  after(ms, work) {
    const timer = { at: this.time + ms, work };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Advances timer by timer, so that each timer sees the effects of the earlier ones. */
  async advance(ms) {
    const end = this.time + ms;
    for (;;) {
      await settled();
      const next = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#timers.delete(next);
      this.time = Math.max(this.time, next.at);
      next.work();
    }
    this.time = end;
    await settled();
  }
}

export class MemoryStore {
  tables = new Map();
  /** When it is set, transactions fail. */
  fails = null;
  writes = 0;

  #table(name) {
    if (!this.tables.has(name)) this.tables.set(name, new Map());
    return this.tables.get(name);
  }

  async open() {}

  close() {}

  async all(table) {
    return structuredClone([...this.#table(table)]);
  }

  async getMany(table, keys) {
    await null;
    return new Map(keys.filter((key) => this.#table(table).has(key)).map((key) => [key, this.#table(table).get(key)]));
  }

  async write(changes) {
    await null;
    if (this.fails) throw this.fails;
    this.writes += 1;
    for (const [table, key, value] of structuredClone(changes)) {
      if (value === undefined) this.#table(table).delete(key);
      else this.#table(table).set(key, value);
    }
  }

  async newest(count) {
    return [...this.#table('confirmed').values()].sort((a, b) => b.at - a.at).slice(0, count);
  }

  async trim() {}
}

export class FakeSocket {
  protocol = 'mss.1';
  closed = null;
  /** The frames that the device has sent, as [name, values]. */
  sent = [];
  #decoder = new FrameDecoder();

  constructor(url) {
    this.url = url;
  }

  send(bytes) {
    this.sent.push(...this.#decoder.push(bytes));
  }

  close(code) {
    this.closed = code;
  }

  say(body, values = {}) {
    this.onmessage?.({ data: encodeFrame(body, values).buffer });
  }

  all(name) {
    return this.sent.filter(([body]) => body === name).map(([, values]) => values);
  }

  last(name) {
    return this.all(name).at(-1);
  }
}

/** A client with test doubles; `sockets` are its connections so far, `got` the oplogs of its handler. */
export class Device {
  clock;
  store;
  sockets = [];
  got = [];
  events = [];

  constructor({ store = new MemoryStore(), clock = new ManualClock(), ...options } = {}) {
    this.store = store;
    this.clock = clock;
    this.client = new SyncClient({
      url: 'wss://gateway.example', instanceId: 'demo_app', deviceId: 'd1', appVersion: '1.2', store, clock,
      locks: null, followPage: false, ...options,
      makeSocket: (url) => {
        this.sockets.push(new FakeSocket(url));
        return this.sockets.at(-1);
      },
    });
    for (const name of ['status', 'standby', 'bound', 'bindRefused', 'sessionInvalid', 'caughtUp', 'passedOver',
      'closed', 'recovered', 'registeredAnew', 'storeRolledBack', 'storeError', 'handlerError']) {
      this.client.addEventListener(name, ({ detail }) => this.events.push([name, detail]));
    }
  }

  get socket() {
    return this.sockets.at(-1);
  }

  /** The ids of the oplogs that the handler received. */
  get ids() {
    return this.got.map(({ id }) => id);
  }

  take(bizType = 'UCHAT') {
    return this.client.on(bizType, (oplog) => this.got.push(oplog));
  }

  async start({ user = null, ...connected } = {}) {
    if (user) this.client.bind(user, 's1');
    await this.client.start();
    await this.greet(connected);
  }

  /** Answers as the gateway: accepts the connection, and its bind if there is one. */
  async greet(connected = {}) {
    this.socket.onopen();
    await settled();
    this.socket.say('connected', { connectionId: 'c', heartbeatSeconds: 60, maxFrameBytes: 65_536,
      firstResendMs: 10_000, maxHeartbeatSeconds: 300, ...connected });
    const { bind } = this.socket.last('connect');
    if (bind) this.socket.say('bindResult', { bindNumber: bind.bindNumber, accepted: true });
    await settled();
  }

  async push(...batches) {
    this.socket.say('push', { batches });
    await settled();
  }

  /** Advances the time until the device connects again. */
  async redial() {
    const before = this.sockets.length;
    while (this.sockets.length === before) await this.clock.advance(100);
  }

  /** The connection breaks and the device connects again. */
  async reconnect() {
    this.socket.onclose?.();
    await this.redial();
    await this.greet();
  }
}

export const entry = (id, values = {}) => ({ oplogId: BigInt(id), payload: new TextEncoder().encode(`p${id}`),
  thirdMessageId: `m${id}`, createdAtMs: 1_700_000_000_000n, ...values });

/** A batch of UCHAT for the bound user. */
export const batch = (after, upto, ids, values = {}) => ({ kind: 0, bizType: 'UCHAT', bindNumber: 1,
  after: BigInt(after), upto: BigInt(upto), entries: ids.map((id) => entry(id)), ...values });
