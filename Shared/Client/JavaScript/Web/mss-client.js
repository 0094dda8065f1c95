/**
 * The client library of Mobile Sync Service for browsers: one ES module without a build step or a dependency.
 *
 * It makes the page a device (Shared/Device/DeviceProtocol/DeviceProtocol.md). It connects by WebSocket, stores pushed
 * data in IndexedDB, acknowledges data that is on the disk, and hands it to the app in order. The sections are: wire,
 * rules, store, inbox (stored data and due hand-outs), link (one connection), client (public API).
 *
 * Internally, 64-bit numbers are BigInt. In the public API, oplog ids are decimal strings, because JSON, the DOM and
 * object keys accept strings, but neither BigInt nor exact 64-bit numbers.
 */

export const SDK_VERSION = '1.0.0';

/** Pass it to `on` or `oplogs` instead of a Sync ID to receive all Sync IDs that have no handler of their own. */
export const ANY = Symbol('any Sync ID');

/** The values of `status`, with the numbers of the other client libraries. */
export const Status = Object.freeze({ notAvailable: 0, connecting: 1, connected: 2, connectFailed: 3 });

// ---- wire ----------------------------------------------------------------------------------------------------------

const frameLimit = { received: 1 << 20, sent: 65_536 };

// As in the table of the protocol: number, name, type. [] marks a repeated field, and a capital letter a message type.
const layouts = {
  Packet: '1 connect Connect, 2 connected Connected, 3 bind Bind, 4 bindResult BindResult, 5 push Push,'
    + '6 storedAck StoredAck, 7 confirmReport ConfirmReport, 8 confirmRecorded ConfirmRecorded, 9 caughtUp CaughtUp,'
    + '10 sessionState SessionState, 11 foreground Foreground, 12 ping Ping, 13 pong Pong, 14 close Close,'
    + '15 subscriptions Subscriptions, 16 historyRequest HistoryRequest, 17 historyPage HistoryPage,'
    + '18 summaryRequest SummaryRequest, 19 summaryPage SummaryPage, 25 ownershipTaken OwnershipTaken',
  Connect: '1 protocolVersion uint32, 2 instanceId text, 3 deviceId text, 4 storeId text, 5 osName text,'
    + '6 osVersion text, 7 appVersion text, 8 sdkVersion text, 9 background bool, 10 syncPoints SyncPoint[],'
    + '11 bind Bind, 12 simple bool, 13 suspended text[], 14 signature Signature, 15 deviceSecret bytes,'
    + '16 connectionNumber int64',
  Signature: '1 keyId text, 2 timestampMs int64, 3 nonce bytes, 4 mac bytes',
  SyncPoint: '1 kind uint32, 2 bizType text, 3 oplogId int64',
  Connected: '1 connectionId text, 2 heartbeatSeconds uint32, 3 maxFrameBytes uint32, 4 serverTimeMs int64,'
    + '5 firstResendMs uint32, 6 maxHeartbeatSeconds uint32',
  Bind: '1 bindNumber uint32, 2 userId text, 3 sessionId text, 4 syncPoints SyncPoint[], 6 requestedByApp bool, '
    + '7 ownershipEpoch int64',
  OwnershipTaken: '1 bindNumber uint32, 2 ownershipEpoch int64',
  BindResult: '1 bindNumber uint32, 2 accepted bool, 3 reason text',
  Push: '1 batches ChannelBatch[]',
  ChannelBatch: '1 kind uint32, 2 bizType text, 3 bindNumber uint32, 4 after int64, 5 upto int64, 6 entries Entry[],'
    + '7 reread uint64, 8 passedOverUpto int64, 10 againUpto int64',
  Entry: '1 oplogId int64, 2 payload bytes, 3 binary bool, 4 thirdMessageId text, 5 createdAtMs int64,'
    + '6 attempt uint32, 7 recalls int64, 8 validUntilMs int64, 9 conversation text',
  StoredAck: '1 channels StoredUpto[], 2 rereads uint64[]',
  StoredUpto: '1 kind uint32, 2 bizType text, 3 bindNumber uint32, 4 upto int64',
  ConfirmReport: '1 reportId uint64, 2 channels ConfirmedOplogs[], 3 resent ResentOplog[]',
  ConfirmedOplogs: '1 kind uint32, 2 bizType text, 3 bindNumber uint32, 4 oplogIds int64[]',
  ResentOplog: '1 kind uint32, 2 bizType text, 3 bindNumber uint32, 4 oplogId int64, 5 attempts uint32, 6 dead bool',
  ConfirmRecorded: '1 reportId uint64',
  CaughtUp: '1 bindNumber uint32',
  SessionState: '1 bindNumber uint32, 2 validity uint32, 3 reason text',
  Foreground: '1 foreground bool',
  Ping: '1 number uint64, 2 intervalSeconds uint32',
  Pong: '1 number uint64',
  Close: '1 code uint32, 2 reason text, 3 retryAfterMs uint32, 4 address text, 5 serverTimeMs int64',
  Subscriptions: '1 suspended text[]',
  HistoryRequest: '1 requestNumber uint32, 2 bizType text, 3 bindNumber uint32, 4 after int64, 5 before int64,'
    + '6 count uint32, 7 oldestFirst bool, 8 conversation text',
  HistoryPage: '1 requestNumber uint32, 2 refusal uint32, 3 kind uint32, 4 bindNumber uint32, 5 entries Entry[],'
    + '6 more bool, 7 next int64, 8 head int64',
  SummaryRequest: '1 requestNumber uint32, 2 bindNumber uint32, 3 afterBizType text, 4 count uint32,'
    + '5 conversationsOf text, 6 afterConversation text',
  SummaryPage: '1 requestNumber uint32, 2 refusal uint32, 3 bindNumber uint32, 4 channels ChannelSummary[],'
    + '5 more bool, 6 nextConversation text',
  ChannelSummary: '1 kind uint32, 2 bizType text, 3 head int64, 4 syncPoint int64, 5 last Entry, 6 waiting uint32,'
    + '7 conversation text',
};

const fieldsOf = Object.fromEntries(Object.entries(layouts).map(([message, layout]) => [
  message,
  layout.split(',').map((field) => {
    const [number, name, type] = field.trim().split(' ');
    const repeated = type.endsWith('[]');
    return { number: Number(number), name, type: repeated ? type.slice(0, -2) : type, repeated };
  }),
]));
const defaults = { uint32: 0, bool: false, text: '', int64: 0n, uint64: 0n };
const isInteger = (type) => type in defaults && type !== 'text';
const utf8 = { encoder: new TextEncoder(), strict: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }) };

/** The received bytes are not a valid frame, so the connection cannot be used any more. */
export class FrameError extends Error {}

function writeVarint(bytes, value) {
  for (let rest = BigInt.asUintN(64, BigInt(value)); ; rest >>= 7n) {
    if (rest < 128n) return bytes.push(Number(rest));
    bytes.push(Number(rest & 127n) | 128);
  }
}

function writeField(bytes, field, value) {
  if (isInteger(field.type)) {
    writeVarint(bytes, field.number * 8);
    return writeVarint(bytes, value);
  }
  const content = field.type === 'text' ? utf8.encoder.encode(value)
    : field.type === 'bytes' ? value : encodeMessage(field.type, value);
  writeVarint(bytes, field.number * 8 + 2);
  writeVarint(bytes, content.length);
  for (const byte of content) bytes.push(byte);
}

/** Returns the protobuf encoding of a message, without the frame's length prefix. */
export function encodeMessage(message, values) {
  const bytes = [];
  for (const field of fieldsOf[message]) {
    const value = values[field.name];
    if (value === undefined || value === null) continue;
    if (field.repeated && isInteger(field.type)) {
      if (value.length === 0) continue;
      const packed = [];
      for (const item of value) writeVarint(packed, item);
      writeField(bytes, { number: field.number, type: 'bytes' }, packed);
    } else if (field.repeated) {
      for (const item of value) writeField(bytes, field, item);
    } else if (value !== defaults[field.type] && !(field.type === 'bytes' && value.length === 0)) {
      writeField(bytes, field, value);
    }
  }
  return Uint8Array.from(bytes);
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  get done() {
    return this.at >= this.bytes.length;
  }

  varint() {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (this.done) throw new FrameError('a varint is cut off');
      const byte = this.bytes[this.at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
    throw new FrameError('a varint is longer than 64 bits');
  }

  read(length) {
    if (length > this.bytes.length - this.at) throw new FrameError('a field is longer than its message');
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }
}

function integer(type, value) {
  if (type === 'bool') return value !== 0n;
  if (type === 'uint32') return Number(BigInt.asUintN(32, value));
  if (type === 'int64' && value >= 1n << 63n) throw new FrameError('an int64 is negative');
  return value;
}

function content(type, bytes) {
  if (type === 'bytes') return bytes.slice();
  if (type !== 'text') return decodeMessage(type, bytes);
  try {
    return utf8.strict.decode(bytes);
  } catch {
    throw new FrameError('a text is not UTF-8');
  }
}

function emptyMessage(message) {
  const values = {};
  for (const { name, type, repeated } of fieldsOf[message]) {
    values[name] = repeated ? [] : type === 'bytes' ? new Uint8Array(0) : defaults[type] ?? null;
  }
  return values;
}

/**
 * Decodes a message. Absent fields have their default (null for a message); unknown fields are ignored.
 * @throws {FrameError} when the bytes are not a valid protobuf encoding
 */
export function decodeMessage(message, bytes) {
  const values = emptyMessage(message);
  const reader = new Reader(bytes);
  while (!reader.done) {
    const tag = Number(reader.varint());
    const wire = tag % 8;
    const field = fieldsOf[message].find(({ number }) => number === Math.floor(tag / 8));
    let found;
    if (wire === 0) {
      const value = reader.varint();
      if (field && isInteger(field.type)) found = [integer(field.type, value)];
    } else if (wire === 2) {
      const part = reader.read(Number(reader.varint()));
      if (field && !isInteger(field.type)) found = [content(field.type, part)];
      if (field?.repeated && isInteger(field.type)) {
        found = [];
        for (const packed = new Reader(part); !packed.done;) found.push(integer(field.type, packed.varint()));
      }
    } else if (wire === 1 || wire === 5) {
      reader.read(wire === 1 ? 8 : 4);
    } else {
      throw new FrameError(`wire type ${wire}`);
    }
    if (!found) continue;
    if (field.repeated) values[field.name].push(...found);
    else values[field.name] = found[0];
  }
  return values;
}

/** Returns one frame: the length prefix, and a packet with this body. */
export function encodeFrame(body, values) {
  const packet = encodeMessage('Packet', { [body]: values });
  const frame = new Uint8Array(4 + packet.length);
  new DataView(frame.buffer).setUint32(0, packet.length);
  frame.set(packet, 4);
  return frame;
}

/** Splits a stream of bytes into packets, independent of the boundaries of the received chunks. */
export class FrameDecoder {
  #rest = new Uint8Array(0);

  /**
   * Returns the bodies that these bytes complete, as `[name, values]`. An unknown body has the name null.
   * @throws {FrameError} when the stream is invalid
   */
  push(bytes) {
    let rest = new Uint8Array(this.#rest.length + bytes.length);
    rest.set(this.#rest);
    rest.set(bytes, this.#rest.length);
    const bodies = [];
    while (rest.length >= 4) {
      const length = new DataView(rest.buffer, rest.byteOffset).getUint32(0);
      if (length > frameLimit.received) throw new FrameError(`a frame of ${length} bytes`);
      if (rest.length < 4 + length) break;
      const packet = decodeMessage('Packet', rest.subarray(4, 4 + length));
      if (length > 0) bodies.push(Object.entries(packet).find(([, values]) => values !== null) ?? [null, null]);
      rest = rest.subarray(4 + length);
    }
    this.#rest = rest.slice();
    return bodies;
  }
}

// ---- signatures ----------------------------------------------------------------------------------------------------

/**
 * Returns the signed text of a Connect: the label and every field, in the order of the protocol's text, each with its
 * length in front.
 */
export function signedText(connect) {
  const { signature, bind } = connect;
  const parts = ['mss-connect-1', signature.keyId, signature.timestampMs, signature.nonce, connect.protocolVersion];
  const names = ['instanceId', 'deviceId', 'storeId', 'osName', 'osVersion', 'appVersion', 'sdkVersion'];
  const points = (list = []) => [list.length, ...list.flatMap(({ kind, bizType, oplogId }) => [kind ?? 0, bizType,
    oplogId])];
  parts.push(...names.map((name) => connect[name] ?? ''), connect.background, ...points(connect.syncPoints));
  parts.push(Boolean(bind), ...bind ? [bind.bindNumber, bind.userId, bind.sessionId, ...points(bind.syncPoints)] : []);
  parts.push(connect.simple, connect.suspended?.length, ...connect.suspended ?? [], connect.deviceSecret ?? '');
  parts.push(connect.connectionNumber);
  if (bind?.requestedByApp || bind?.ownershipEpoch) parts.push(bind.requestedByApp, bind.ownershipEpoch);
  const bytes = [];
  for (const part of parts) {
    const content = part instanceof Uint8Array ? part
      : utf8.encoder.encode(typeof part === 'boolean' ? String(Number(part)) : String(part ?? 0));
    bytes.push(...[24, 16, 8, 0].map((shift) => (content.length >>> shift) & 255), ...content);
  }
  return Uint8Array.from(bytes);
}

/** Signs a Connect with an app's key `{id, secret}`; the secret is in Base64. Needs a secure context. */
export async function signConnect(connect, { id, secret }, timestampMs, nonce) {
  const values = { ...connect, signature: { keyId: id, timestampMs: BigInt(timestampMs), nonce } };
  const bytes = Uint8Array.from(atob(secret), (character) => character.charCodeAt(0));
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  values.signature.mac = new Uint8Array(await crypto.subtle.sign('HMAC', key, signedText(values)));
  return values;
}

const random = (count) => crypto.getRandomValues(new Uint8Array(count));

// ---- rules (pure) --------------------------------------------------------------------------------------------------

const kindNames = ['user', 'device', 'globalUser', 'globalDevice'];
const isUserKind = (kind) => kind === 0 || kind === 2;
const refusals = ['', 'notEligible', 'invalid', 'tryAgain'];

/** Compares a batch with the device's position: `known`, `new` or `gap`. */
export function compareBatch({ after, upto }, position) {
  if (upto <= position) return 'known';
  return after <= position ? 'new' : 'gap';
}

/**
 * Returns the next step for an entry, `waited` ms after its last hand-out: `wait`, `repeat`, or `dead` after six
 * resends or 50 hand-outs.
 */
export function ladderStep({ repeats, handOuts }, waited, firstWait) {
  if (waited < firstWait * 2 ** Math.min(repeats, 5)) return 'wait';
  return repeats >= 6 || handOuts >= mostHandOuts ? 'dead' : 'repeat';
}
const mostHandOuts = 50;

/**
 * Returns the wait before attempt n in ms: full jitter below a bound that doubles with each attempt. The bound is at
 * most 16 s, or in long outages an eighth of `failing`, the ms since the first failure, at most 300 s. The gateway's
 * demand is added; the result is at most 1 h.
 */
export function backOff(attempt, failing, retryAfterMs = 0, random = Math.random) {
  const longest = Math.min(300_000, Math.max(16_000, failing / 8));
  const jitter = Math.max(50, random() * Math.min(longest, 1_000 * 2 ** attempt));
  return Math.min(3_600_000, jitter + retryAfterMs);
}

/** Returns the device's reaction to a Close with this code. */
export function closeGroup(code) {
  return { 1: 'again', 3: 'elsewhere', 4: 'withoutUser', 5: 'stayAway' }[Math.floor(code / 1000)] ?? 'later';
}

/** The interval between pings. It grows while pings are answered, and shrinks after a dead connection. */
export class Heartbeat {
  #seconds = 0;
  #bound = 0;
  #answers = 0;

  begin({ heartbeatSeconds, maxHeartbeatSeconds }) {
    this.#bound = Math.max(maxHeartbeatSeconds, heartbeatSeconds, 1);
    this.#seconds = Math.min(this.#seconds || heartbeatSeconds || 60, this.#bound);
    this.#answers = 0;
  }

  get seconds() {
    return this.#seconds;
  }

  /** The longest interval that a ping can announce. */
  get bound() {
    return this.#bound;
  }

  answered() {
    this.#answers += 1;
    if (this.#answers % 3 === 0) this.#seconds = Math.min(this.#bound, Math.ceil(this.#seconds * 1.25));
  }

  foundDead() {
    this.#seconds = Math.max(5, Math.floor(this.#seconds / 2));
  }
}

// ---- store ---------------------------------------------------------------------------------------------------------

// settings: the store id, the device's secret, the id that replaced a refused device id, and the suspended Sync IDs.
// entries: unconfirmed oplogs. reports: facts that the server has not recorded. recoveries: the progress of recoveries.
// confirmed and rereads: processed ids, which remove repeats.
const tables = ['settings', 'positions', 'entries', 'reports', 'recoveries', 'confirmed', 'rereads'];

const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/**
 * The IndexedDB store of one device of one instance.
 *
 * A store of your own needs the same methods: `open`, `close`, `all(table)`, `getMany(table, keys)`, `write(changes)`,
 * `newest(count)` and `trim(keep, forgetBefore)`. `write` is one transaction, and resolves when the data is on the
 * disk. `newest` and `trim` concern confirmed oplogs.
 */
export class IndexedDBStore {
  #database;

  constructor(name) {
    this.name = name;
  }

  async open() {
    const request = indexedDB.open(this.name, 1);
    request.onupgradeneeded = () => {
      for (const table of tables) {
        const made = request.result.createObjectStore(table);
        if (table === 'confirmed' || table === 'rereads') made.createIndex('at', 'at');
      }
    };
    this.#database = await done(request);
    // Another tab deletes or upgrades the database; an open connection would block that tab.
    this.#database.onversionchange = () => this.#database.close();
  }

  close() {
    this.#database?.close();
  }

  /** Returns every `[key, value]` of a table. */
  async all(table) {
    const store = this.#database.transaction(table).objectStore(table);
    const [keys, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
    return keys.map((key, index) => [key, values[index]]);
  }

  /** Returns a map of the keys that exist. */
  async getMany(table, keys) {
    if (keys.length === 0) return new Map();
    const store = this.#database.transaction(table).objectStore(table);
    const values = await Promise.all(keys.map((key) => done(store.get(key))));
    return new Map(keys.map((key, index) => [key, values[index]]).filter(([, value]) => value !== undefined));
  }

  /**
   * Writes all `[table, key, value]`, or none; the value undefined removes the key. Resolves when the data is on the
   * disk.
   */
  write(changes) {
    return new Promise((resolve, reject) => {
      const names = [...new Set(changes.map(([table]) => table))];
      const transaction = this.#database.transaction(names, 'readwrite', { durability: 'strict' });
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error('the transaction was aborted'));
      try {
        for (const [table, key, value] of changes) {
          const store = transaction.objectStore(table);
          if (value === undefined) store.delete(key);
          else store.put(value, key);
        }
      } catch (error) {
        // An invalid value throws at once. Without the abort, the earlier writes would be committed.
        transaction.abort();
        reject(error);
      }
    });
  }

  /** Returns the newest confirmed oplogs that still have their payload, at most `count`. */
  async newest(count) {
    const index = this.#database.transaction('confirmed').objectStore('confirmed').index('at');
    const found = [];
    await this.#each(index, null, (cursor) => found.push(cursor.value) < count);
    return found.filter((value) => value.payload);
  }

  /** Keeps the payloads of the newest `keep` oplogs, and deletes ids and re-reads from before `forgetBefore` (ms). */
  async trim(keep, forgetBefore) {
    const transaction = this.#database.transaction(['confirmed', 'rereads'], 'readwrite');
    const old = IDBKeyRange.upperBound(forgetBefore);
    let seen = 0;
    const walks = ['confirmed', 'rereads'].map((table) => this.#each(transaction.objectStore(table).index('at'), old,
      (cursor) => cursor.delete() !== null));
    walks.push(this.#each(transaction.objectStore('confirmed').index('at'), null, (cursor) => {
      if (++seen <= keep) return true;
      if (!cursor.value.payload) return false;
      cursor.update({ ...cursor.value, payload: null });
      return true;
    }));
    await Promise.all(walks);
  }

  /** Visits entries from the newest on, as long as `visit` returns true. */
  #each(index, range, visit) {
    return new Promise((resolve, reject) => {
      const request = index.openCursor(range, 'prev');
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        if (request.result && visit(request.result)) request.result.continue();
        else resolve();
      };
    });
  }
}

// ---- inbox ---------------------------------------------------------------------------------------------------------

// A channel is {scope, kind, bizType}. The scope is the user id, the device id or '', by the kind. Ids are padded, so
// that the keys of one channel sort like its ids.
const channelKey = ({ scope, kind, bizType }) => JSON.stringify([scope, kind, bizType]);

/**
 * Returns the name of a device's database and lock. JSON separates the ids, because an id can contain any character.
 */
export const storeName = (instanceId, deviceId) => JSON.stringify(['mss', instanceId, deviceId]);
const entryKey = ({ scope, kind, bizType }, id) => JSON.stringify([scope, kind, bizType, String(id).padStart(19, '0')]);
const compareKeys = ([a], [b]) => (a < b ? -1 : 1);

/** Collects changes before they are written. Its reads include the collected changes. */
class Draft {
  #now;
  #changes = new Map();

  constructor(now) {
    this.#now = now;
  }

  get(table, key) {
    const change = this.#changes.get(table + key);
    return change ? change[2] : this.#now[table].get(key);
  }

  put(table, key, value) {
    this.#changes.set(table + key, [table, key, value]);
  }

  get list() {
    return [...this.#changes.values()];
  }
}

/**
 * The device's stored data: positions, entries and unreported facts. The cached data changes only after a transaction
 * has completed. The caller runs the asynchronous methods one after another.
 */
export class Inbox {
  #store;
  #appDeviceId;
  #limit;
  #wall;
  #now;
  // The service's time at the last connect, and the time of its receipt by the steady clock; null before the first
  // connect.
  #serverTime = null;
  // By entry that was handed out since the start: the counted time since its last hand-out.
  #handedOut = new Map();

  constructor(store, deviceId, { limit = 10_000, wall = Date.now, now = () => performance.now() } = {}) {
    this.#store = store;
    this.#appDeviceId = deviceId;
    this.#limit = limit;
    this.#wall = wall;
    this.#now = now;
  }

  /** The service's time in ms, which decides validity; null before the first connect. */
  get serviceTime() {
    return this.#serverTime && this.#serverTime.time + this.#now() - this.#serverTime.at;
  }

  set serviceTime(time) {
    this.#serverTime = { time, at: this.#now() };
  }

  async load() {
    await this.#store.open();
    for (const table of tables.slice(0, 5)) this[table] = new Map(await this.#store.all(table));
    const days = 400; // far beyond any retention: nothing older can be sent again
    await this.#store.trim(500, this.#wall() - days * 86_400_000);
    if (!this.settings.has('storeId')) await this.set('storeId', crypto.randomUUID());
    // The secret must be on the disk before the client sends it.
    if (!this.settings.has('deviceSecret')) await this.set('deviceSecret', random(32));
  }

  /**
   * Counts a connection attempt, without a wait for the disk: a repeated number does no harm, a lower one would.
   * @returns {number} a number higher than those of earlier attempts
   */
  countConnection() {
    const number = (this.settings.get('connections') ?? 0) + 1;
    this.set('connections', number).catch(() => {});
    return number;
  }

  /** The device id that the service knows: the app's id, until the service has refused it. */
  get deviceId() {
    return this.settings.get('ownDeviceId') ?? this.#appDeviceId;
  }

  /**
   * Creates a new device id and secret, because the id belongs to another device. The positions of the former id's
   * device channels do not apply to the new id; their oplogs stay available to the app.
   * @returns {Promise<string>} the new id
   */
  async registerAnew() {
    const deviceId = crypto.randomUUID();
    const changes = [['settings', 'ownDeviceId', deviceId], ['settings', 'deviceSecret', random(32)]];
    for (const table of ['positions', 'reports', 'recoveries']) {
      for (const [key, { kind }] of this[table]) {
        if (kindNames[kind] === 'device') changes.push([table, key, undefined]);
      }
    }
    await this.#commit(changes);
    return deviceId;
  }

  close() {
    this.#store.close();
  }

  async #commit(changes) {
    if (changes.length === 0) return;
    await this.#store.write(changes);
    for (const [table, key, value] of changes) {
      if (value === undefined) this[table]?.delete(key);
      else this[table]?.set(key, value);
      if (table === 'entries' && !value?.handOuts) this.#handedOut.delete(key);
    }
  }

  set(name, value) {
    return this.#commit([['settings', name, value]]);
  }

  get suspended() {
    return this.settings.get('suspended') ?? [];
  }

  /** Returns the positions of a user's channels, or with null of all other channels. */
  syncPoints(userId) {
    return [...this.positions.values()].filter(({ kind, scope }) => (isUserKind(kind) ? scope : null) === userId)
      .map(({ kind, bizType, upto }) => ({ kind, bizType, oplogId: upto }));
  }

  /**
   * Stores batches, each with its `scope`, in one transaction. Resolves when they are on the disk.
   * @returns the acknowledgements, the discarded ranges, and whether a batch showed a gap
   */
  async storeBatches(batches) {
    const draft = new Draft(this);
    const confirmed = await this.#confirmedAmong(batches);
    const taken = await this.#store.getMany('rereads', batches.filter((batch) => batch.reread).map(rereadKey));
    const result = { channels: new Map(), rereads: [], passedOver: [], rolledBack: false, gap: false };
    for (const batch of batches) {
      if (batch.reread) {
        if (!taken.has(rereadKey(batch))) {
          for (const entry of batch.entries) this.#storeEntry(draft, batch, entry, confirmed, { replay: true });
          draft.put('rereads', rereadKey(batch), { at: this.#wall() });
        }
        result.rereads.push(batch.reread);
        continue;
      }
      const key = channelKey(batch);
      const position = draft.get('positions', key)?.upto ?? 0n;
      const verdict = compareBatch(batch, position);
      result.gap = verdict === 'gap';
      if (result.gap) break;
      const { scope, kind, bizType, bindNumber } = batch;
      const upto = verdict === 'new' ? batch.upto : position;
      for (const entry of batch.entries.filter(({ oplogId }) => oplogId > position)) {
        const replay = entry.oplogId <= batch.againUpto;
        this.#storeEntry(draft, batch, entry, confirmed, { replay });
        result.rolledBack ||= replay;
      }
      if (verdict === 'new') draft.put('positions', key, { scope, kind, bizType, upto });
      result.channels.set(key, { kind, bizType, bindNumber, upto });
      if (batch.passedOverUpto) result.passedOver.push({ bizType, upto: String(batch.passedOverUpto) });
    }
    this.#checkRoom(draft);
    await this.#commit(draft.list);
    return result;
  }

  #checkRoom(draft) {
    const more = draft.list.filter(([table, key, value]) => table === 'entries' && value && !this.entries.has(key));
    if (this.entries.size + more.length > this.#limit) throw new Error('the inbox is full: confirm processed oplogs');
  }

  #confirmedAmong(batches) {
    return this.#store.getMany('confirmed', batches.flatMap((batch) => batch.entries.flatMap((entry) => {
      const key = entryKey(batch, entry.oplogId);
      return entry.recalls ? [key, entryKey(batch, entry.recalls)] : [key];
    })));
  }

  #storeEntry(draft, { scope, kind, bizType }, entry, confirmed, { replay = false, recovered = false } = {}) {
    const channel = { scope, kind, bizType };
    const key = entryKey(channel, entry.oplogId);
    const before = draft.get('entries', key);
    // A re-read may have brought the oplog before its batch.
    if (confirmed.has(key) || (before && !replay && !recovered)) return;
    if (entry.recalls) {
      const recalledKey = entryKey(channel, entry.recalls);
      const recalled = draft.get('entries', recalledKey);
      if (recalled) draft.put('entries', recalledKey, undefined);
      if (!recalled?.seen && !confirmed.has(recalledKey)) {
        // The app never had the recalled oplog, so it does not need the tombstone.
        const { oplogId: id, payload } = entry;
        draft.put('confirmed', key, { ...channel, id, at: this.#wall(), payload, unseen: true });
        return this.#addReport(draft, key, { ...channel, id: entry.oplogId, confirmed: true });
      }
    }
    draft.put('entries', key, {
      ...channel, id: entry.oplogId, payload: entry.payload, binary: entry.binary, recalls: entry.recalls,
      thirdMessageId: entry.thirdMessageId, createdAtMs: Number(entry.createdAtMs), storedAt: this.#wall(),
      validUntilMs: Number(entry.validUntilMs ?? 0), conversation: entry.conversation,
      handOuts: 0, repeats: 0, dead: false, seen: before?.seen ?? false, replay, recovered,
    });
  }

  /**
   * Hands out the entries that were not handed out since the start and that the app may have. Resolves after the counts
   * are on the disk.
   */
  async handOut(mayHandOut) {
    const due = [...this.entries].filter(([key, entry]) => !this.#handedOut.has(key) && !entry.dead
      && mayHandOut(entry));
    const now = this.serviceTime ?? 0;
    const isOver = ([, { handOuts, validUntilMs }]) => handOuts === 0 && validUntilMs > 0 && validUntilMs <= now;
    await this.#commit(due.filter(isOver).map(([key]) => ['entries', key, undefined]));
    return this.#countHandOuts(due.filter((item) => !isOver(item)).sort(compareKeys), 0);
  }

  /** Adds `elapsed` ms to the counted time of unconfirmed entries, and hands out those that are due for a resend. */
  async resend(elapsed, firstWait, mayHandOut) {
    const due = [];
    for (const [key, waited] of this.#handedOut) {
      const entry = this.entries.get(key);
      if (!entry || entry.dead || !mayHandOut(entry)) continue;
      this.#handedOut.set(key, waited + elapsed);
      if (ladderStep(entry, waited + elapsed, firstWait) !== 'wait') due.push([key, entry]);
    }
    return this.#countHandOuts(due.sort(compareKeys), 1);
  }

  async #countHandOuts(due, step) {
    const draft = new Draft(this);
    const given = [];
    for (const [key, entry] of due) {
      const dead = entry.handOuts >= mostHandOuts || entry.repeats + step > 6;
      const handOuts = entry.handOuts + (dead ? 0 : 1);
      // A dead letter needs no payload: only a re-read revives it, and it brings the payload again.
      const next = { ...entry, handOuts, repeats: entry.repeats + step, seen: true, dead };
      if (dead) next.payload = new Uint8Array(0);
      else given.push([key, next]);
      draft.put('entries', key, next);
      const { scope, kind, bizType, id } = entry;
      if (dead || step) this.#addReport(draft, key, { scope, kind, bizType, id, attempts: handOuts, dead });
    }
    await this.#commit(draft.list);
    for (const [key] of given) this.#handedOut.set(key, 0);
    return given;
  }

  /** Marks an entry as not handed out, because the app cannot have it now. */
  release(key) {
    this.#handedOut.delete(key);
  }

  /** Records that the app has processed these ids. Unknown and confirmed ids are ignored. */
  async confirm(oplogs) {
    const draft = new Draft(this);
    for (const { channel, id } of oplogs) {
      const key = entryKey(channel, id);
      const entry = draft.get('entries', key);
      if (!entry) continue;
      draft.put('entries', key, undefined);
      draft.put('confirmed', key, { ...entry, at: this.#wall() });
      this.#addReport(draft, key, { attempts: 0, dead: false, ...draft.get('reports', key), ...channel, id,
        confirmed: true });
    }
    await this.#commit(draft.list);
    return draft.list.length > 0;
  }

  /** Adds a report for the server. The server needs no reports about a former device id's channels. */
  #addReport(draft, key, report) {
    if (kindNames[report.kind] !== 'device' || report.scope === this.deviceId) draft.put('reports', key, report);
  }

  /**
   * Returns the next report to the server: its fields, and the reports that it contains. Channels without a bind number
   * are left out.
   */
  report(bindNumberOf) {
    const reported = [...this.reports].filter(([, report]) => bindNumberOf(report) !== null).slice(0, 150);
    const channels = new Map();
    const resent = [];
    for (const [, { scope, kind, bizType, id, attempts, dead, confirmed }] of reported) {
      const channel = { kind, bizType, bindNumber: bindNumberOf({ scope, kind }) };
      if (attempts) resent.push({ ...channel, oplogId: id, attempts, dead });
      const key = channelKey({ scope, kind, bizType });
      if (confirmed && !channels.has(key)) channels.set(key, { ...channel, oplogIds: [] });
      if (confirmed) channels.get(key).oplogIds.push(id);
    }
    return { reported, channels: [...channels.values()], resent };
  }

  /** Removes reports that the server has recorded. A report that has changed since then stays. */
  removeReports(recorded) {
    return this.#commit(recorded.filter(([key, report]) => this.reports.get(key) === report)
      .map(([key]) => ['reports', key, undefined]));
  }

  /** Begins a recovery of a Sync ID, for this user and the device, up to the present positions. */
  beginRecovery(bizType, userId) {
    return this.#commit([...this.positions]
      .filter(([, at]) => at.bizType === bizType && (!isUserKind(at.kind) || at.scope === userId))
      .map(([key, { upto, ...channel }]) => ['recoveries', key, { ...channel, upto, after: 0n }]));
  }

  /** Stores a page of a recovery together with its progress. */
  async storeRecovered(key, recovery, page) {
    const draft = new Draft(this);
    for (const entry of page.entries) {
      this.#storeEntry(draft, recovery, entry, new Set(), { recovered: true });
      draft.put('confirmed', entryKey(recovery, entry.oplogId), undefined);
    }
    draft.put('recoveries', key, page.more ? { ...recovery, after: page.next } : undefined);
    this.#checkRoom(draft);
    await this.#commit(draft.list);
  }

  /** Deletes the unconfirmed entries of a Sync ID. */
  dropUnconfirmed(bizType) {
    return this.#commit([...this.entries].filter(([, entry]) => entry.bizType === bizType)
      .map(([key]) => ['entries', key, undefined]));
  }

  /** Returns the stored oplogs of these scopes, the newest first. */
  async newest(count, scopes) {
    const waiting = [...this.entries.values()].filter((entry) => !entry.dead && entry.handOuts > 0)
      .map((entry) => ({ ...entry, confirmed: false }));
    const all = [...(await this.#store.newest(count)).map((entry) => ({ ...entry, confirmed: true })), ...waiting];
    return all.filter(({ scope, unseen }) => !unseen && scopes.includes(scope))
      .sort((a, b) => b.storedAt - a.storedAt || (b.id > a.id ? 1 : -1)).slice(0, count);
  }
}

// The channel is part of the key, because the protocol does not say that re-read numbers are unique among channels.
const rereadKey = ({ scope, kind, bizType, reread }) => `${channelKey({ scope, kind, bizType })}${reread}`;

// ---- link ----------------------------------------------------------------------------------------------------------

const answerLimit = 10_000;
const requestLimit = { time: 30_000, atOnce: 4 };

/** A failed request or call. `code`: notEligible, invalid, tryAgain, timeout or notConnected. */
export class SyncError extends Error {
  constructor(code, message) {
    super(message);
    this.name = 'SyncError';
    this.code = code;
  }
}

/**
 * One connection, from its opening to its end: frames, the two timeouts of 10 s, pings, requests and their replies.
 *
 * `handlers`: `greet()` when the first frame can be sent, `packet(name, values)`, `ended(close)` with the fields of
 * Close, and `isHidden()`, whether the page's timers can be late.
 */
class Link {
  state = 'dialling';
  bindNumber = 0;
  accepted = false;
  connected = null;
  report = null;
  batches = [];
  #socket;
  #clock;
  #handlers;
  #heartbeat;
  #decoder = new FrameDecoder();
  #cancelLimit = null;
  #cancelPing = () => {};
  #ping = 0n;
  #openSince = 0;
  #requests = new Map();
  #waiting = [];
  #requestNumber = 0;

  constructor(socket, clock, heartbeat, handlers) {
    this.#socket = socket;
    this.#clock = clock;
    this.#heartbeat = heartbeat;
    this.#handlers = handlers;
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => this.#opened();
    socket.onmessage = ({ data }) => this.#received(data);
    socket.onclose = socket.onerror = () => this.#ended({ code: 1001, reason: 'the connection was lost' });
    this.#limit('the gateway cannot be reached');
  }

  /** The time in ms since the gateway accepted the connect; 0 before. */
  get openFor() {
    return this.connected ? this.#clock.now() - this.#openSince : 0;
  }

  get isUp() {
    return this.state === 'greeting' || this.state === 'open';
  }

  /** Sends the first frame. */
  greet(connect) {
    if (this.state !== 'dialling') return;
    this.state = 'greeting';
    this.send('connect', connect);
  }

  send(body, values) {
    if (this.isUp) this.#socket.send(encodeFrame(body, values));
  }

  /** Ends the connection. The client reacts to `code` as if the gateway had sent it. */
  end(reason, code = 1001) {
    this.send('close', { code: 1000, reason });
    this.#ended({ code, reason });
  }

  /** Sends a ping at once. A dead connection ends 10 s later. */
  ping() {
    this.#cancelPing();
    if (this.state !== 'open') return;
    const seconds = this.#heartbeat.seconds;
    // A hidden page's timers can be late by a minute.
    const announced = Math.min(this.#heartbeat.bound, seconds + (this.#handlers.isHidden() ? 60 : 0));
    this.send('ping', { number: ++this.#ping, intervalSeconds: announced });
    if (!this.#cancelLimit) this.#limit('no answer to a ping', true);
    this.#cancelPing = this.#clock.after(seconds * 1000, () => this.ping());
  }

  /** Sends a request and resolves with its reply. At most four requests are in flight; the others wait. */
  request(body, values) {
    if (this.state !== 'open') return Promise.reject(new SyncError('notConnected', 'there is no connection'));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ body, values, resolve, reject });
      this.#ask();
    });
  }

  #ask() {
    while (this.#waiting.length > 0 && this.#requests.size < requestLimit.atOnce) {
      const { body, values, resolve, reject } = this.#waiting.shift();
      const number = ++this.#requestNumber;
      const cancel = this.#clock.after(requestLimit.time, () => {
        this.#requests.delete(number);
        reject(new SyncError('timeout', 'the service did not answer in 30 s'));
        this.#ask();
      });
      this.#requests.set(number, { resolve, reject, cancel });
      this.send(body, { ...values, requestNumber: number, bindNumber: this.bindNumber });
    }
  }

  #answered(page) {
    const request = this.#requests.get(page.requestNumber);
    if (!request) return;
    this.#requests.delete(page.requestNumber);
    request.cancel();
    const late = page.bindNumber !== 0 && page.bindNumber !== this.bindNumber;
    if (late) request.reject(new SyncError('invalid', 'another user was bound meanwhile'));
    else if (page.refusal) request.reject(new SyncError(refusals[page.refusal] ?? 'tryAgain', 'refused'));
    else request.resolve(page);
    this.#ask();
  }

  #opened() {
    if (this.#socket.protocol !== 'mss.1') return this.end('the sub-protocol is not mss.1');
    this.#limit('no answer to Connect');
    this.#handlers.greet();
  }

  #received(data) {
    if (!this.isUp) return;
    try {
      if (typeof data === 'string') throw new FrameError('a text message');
      const bodies = this.#decoder.push(new Uint8Array(data));
      // Every received frame proves that the connection is alive.
      if (this.state === 'open') this.#noLimit();
      for (const [name, values] of bodies) if (this.isUp) this.#dispatch(name, values);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.end(error.message);
    }
  }

  #dispatch(name, values) {
    if (name === 'close') return this.#ended(values);
    if (name === 'ping') return this.send('pong', { number: values.number });
    if (name === 'connected' ? this.state === 'open' : name === 'push' && this.state === 'greeting') {
      return this.end(`${name} at the wrong time`);
    }
    if (name === 'connected') this.#greeted(values);
    if (this.state !== 'open') return;
    if (name === 'pong' && values.number === this.#ping) this.#heartbeat.answered();
    if (name === 'historyPage' || name === 'summaryPage') return this.#answered(values);
    this.#handlers.packet(name, values);
  }

  #greeted(connected) {
    this.#noLimit();
    this.state = 'open';
    this.connected = connected;
    this.#openSince = this.#clock.now();
    this.#heartbeat.begin(connected);
    this.#cancelPing = this.#clock.after(this.#heartbeat.seconds * 1000, () => this.ping());
  }

  #limit(reason, isPing = false) {
    this.#noLimit();
    this.#cancelLimit = this.#clock.after(answerLimit, () => {
      if (isPing) this.#heartbeat.foundDead();
      this.end(reason);
    });
  }

  #noLimit() {
    this.#cancelLimit?.();
    this.#cancelLimit = null;
  }

  #ended(close) {
    if (this.state === 'ended') return;
    this.state = 'ended';
    this.#noLimit();
    this.#cancelPing();
    this.report?.cancel();
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = this.#socket.onerror = null;
    this.#socket.close(1000);
    for (const { reject, cancel = () => {} } of [...this.#requests.values(), ...this.#waiting]) {
      cancel();
      reject(new SyncError('notConnected', 'the connection ended'));
    }
    this.#handlers.ended(close);
  }
}

// ---- client --------------------------------------------------------------------------------------------------------

const realClock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(ms, work) {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};

function storedDeviceId() {
  const name = 'mss.deviceId';
  if (!localStorage.getItem(name)) localStorage.setItem(name, crypto.randomUUID());
  return localStorage.getItem(name);
}

function checkId(name, value) {
  if (typeof value !== 'string' || value.length < 1 || value.length > 100 || value.includes('\0')) {
    throw new RangeError(`${name} must have 1 to 100 characters without NUL`);
  }
}

/** Creates the app's oplog from an entry. */
function oplogOf({ scope, kind, bizType, id, payload, binary, recalls, ...entry }) {
  return Object.freeze({
    bizType, kind: kindNames[kind], userId: isUserKind(kind) ? scope : null,
    deviceId: kindNames[kind] === 'device' ? scope : null, id: String(id),
    payload: binary ? payload : new TextDecoder().decode(payload), binary,
    thirdMessageId: entry.thirdMessageId, conversation: entry.conversation || null,
    createdAt: Number(entry.createdAtMs), attempt: entry.handOuts ?? 0,
    replay: entry.replay ?? false, recovered: entry.recovered ?? false, recalls: recalls ? String(recalls) : null,
  });
}

/**
 * An oplog as the app receives it.
 * @typedef {object} Oplog
 * @property {string} bizType the Sync ID
 * @property {'user'|'device'|'globalUser'|'globalDevice'} kind the kind of the channel
 * @property {string|null} userId the user of the data; null for device data
 * @property {string|null} deviceId only for the kind `device`: the device id that the push was for; after
 *   `registeredAnew` it can be the former id
 * @property {string} id the oplog id in decimal; it rises within (kind, userId, deviceId, bizType)
 * @property {string|Uint8Array} payload text, or bytes when `binary` is true
 * @property {boolean} binary whether the backend sent bytes
 * @property {string} thirdMessageId the backend's own id of the push
 * @property {string|null} conversation the conversation that the backend named; null for none
 * @property {number} createdAt the time when the service accepted the push, in ms since 1970
 * @property {number} attempt the number of hand-outs to the app, this one included
 * @property {boolean} replay whether the app may have had it before: an operator replayed it, or the local store is an
 *   older copy of itself
 * @property {boolean} recovered whether `recover` requested it again
 * @property {string|null} recalls the id of an earlier oplog of this channel that the backend has recalled; the payload
 *   is empty then
 */

/**
 * A device. It dispatches CustomEvents with their data in `detail`:
 *
 * - `status` {status}: the status of the connection has changed.
 * - `standby` {}: another tab of this device has the connection; this tab takes over when that one ends.
 * - `bound` {userId}, `bindRefused` {userId, reason}: the gateway's answer to a bind.
 * - `sessionValid`, `sessionInvalid` {reason}: the tenant's verdict on the session.
 * - `registeredAnew` {deviceId}: the service refused the former id, because it belongs to another device; this is the
 *   new id.
 * - `storeRolledBack` {}: the local store is an older copy of itself; the missing data arrives again, with `replay`.
 * - `caughtUp` {}: the backlog is complete.
 * - `passedOver` {bizType, upto}: the threshold discarded older oplogs; they are only in the history.
 * - `recovered` {bizType}: a recovery is complete.
 * - `closed` {code, reason, retryInMs}: the connection ended. When retryInMs is null, only `start` connects again.
 * - `storeError` {error}, `handlerError` {error}: IndexedDB or a handler of the app failed.
 */
export class SyncClient extends EventTarget {
  #options;
  #url;
  #deviceId;
  #clock;
  // The difference to the clock of the gateway that last refused a signature. Gateways check signatures with the clock
  // of their machine, and not with the service's time.
  #signingOffset = null;
  #inbox = null;
  #link = null;
  #user = null;
  /**
   * Whether the app has requested the ownership of the user's single-device data, and no gateway has confirmed it yet.
   */
  #isRequested = false;
  /** The ownership epoch that the gateway reported for the user; 0 before. */
  #ownershipEpoch = 0n;
  #status = Status.notAvailable;
  #handlers = new Map();
  #heartbeat = new Heartbeat();
  #run = null;
  #tail = Promise.resolve();
  #attempt = 0;
  #hasReportedRollback = false;
  #failingSince = 0;
  #retry = null;
  #background = false;
  #isHandOutQueued = false;
  // Random, so that a reply to an earlier page's report is not taken for one of this page.
  #reportNumber = BigInt(Math.floor(Math.random() * 2 ** 48));

  /**
   * @param {object} options
   * @param {string} options.instanceId the instance, `<workspaceId>_<appId>`
   * @param {string} [options.url] the gateway's address; by default the host of this page
   * @param {string} [options.deviceId] the device id, 1 to 100 characters; by default the client creates one and keeps
   *   it in localStorage
   * @param {{id: string, secret: string}} [options.appKey] the key that signs connects, for instances whose signature
   *   switch is on; the secret in Base64, `appSecret` of `meta.config`
   * @param {string} [options.appVersion] the app's version in dotted numbers
   * @param {string} [options.osName] `iOS`, `Android` or another name; `Web` by default
   * @param {string} [options.osVersion] free text
   * @param {boolean} [options.followPage] whether the page's visibility decides about the foreground; true by default
   * @param {number} [options.inboxLimit] the most unconfirmed oplogs on the device; 10,000 by default. Above it the
   *   device stores no more
   * @param {object} [options.store] a store with the methods of IndexedDBStore
   * @param {object} [options.clock] for tests: `now()` and `wall()` in ms; `after(ms, work)` returns a function that
   *   cancels it
   * @param {LockManager} [options.locks] for tests: the Web Locks
   * @param {function(string): WebSocket} [options.makeSocket] for tests: opens the WebSocket
   * @throws {RangeError} when an id or the key is invalid
   */
  constructor(options) {
    super();
    checkId('instanceId', options.instanceId);
    this.#options = { osName: 'Web', osVersion: '', appVersion: '', followPage: true, inboxLimit: 10_000,
      locks: globalThis.navigator?.locks, makeSocket: (url) => new WebSocket(url, ['mss.1']), ...options };
    this.#url = new URL(options.url ?? '/mss/1', globalThis.location?.href);
    this.#url.protocol = this.#url.protocol.replace('http', 'ws');
    if (this.#url.pathname === '/') this.#url.pathname = '/mss/1';
    this.#deviceId = options.deviceId ?? storedDeviceId();
    checkId('deviceId', this.#deviceId);
    const { appKey } = options;
    if (appKey && !(appKey.id && /^[A-Za-z0-9+/]{22,}={0,2}$/.test(appKey.secret))) {
      throw new RangeError('appKey needs an id, and a secret of at least 16 bytes in Base64');
    }
    this.#clock = options.clock ?? realClock;
  }

  /** The device id that the service knows. After `start` it can differ from the app's id (`registeredAnew`). */
  get deviceId() {
    return this.#inbox?.deviceId ?? this.#deviceId;
  }

  /** The status of the connection, one of `Status`. */
  get status() {
    return this.#status;
  }

  /** The suspended Sync IDs. */
  get suspended() {
    return [...this.#inbox?.suspended ?? []];
  }

  // -- start and stop

  /**
   * Opens the store, hands out waiting oplogs, and connects. While another tab of this device is connected, it waits
   * and takes over later. After a close code of 5000 to 5999, only this call connects again.
   */
  async start() {
    if (this.#run) {
      if (!this.#link && this.#inbox) this.#connect(this.#url);
      return;
    }
    const run = this.#run = { stop: new AbortController(), release: () => {} };
    const name = storeName(this.#options.instanceId, this.#deviceId);
    const release = await this.#acquire(name, run);
    if (!release || this.#run !== run) return release?.();
    run.release = release;
    const store = this.#options.store ?? new IndexedDBStore(name);
    const inbox = new Inbox(store, this.#deviceId, {
      limit: this.#options.inboxLimit, wall: this.#clock.wall, now: this.#clock.now,
    });
    try {
      await inbox.load();
    } catch (error) {
      await this.stop();
      throw error;
    }
    if (this.#run !== run) return inbox.close();
    this.#inbox = inbox;
    if (this.#options.followPage && globalThis.document) this.#followPage(run.stop.signal);
    this.#queueHandOut();
    this.#connect(this.#url);
  }

  /** Ends the connection, so that another tab can take over. Handlers and the bound user stay for the next `start`. */
  async stop() {
    const run = this.#run;
    if (!run) return;
    this.#run = null;
    run.stop.abort();
    this.#retry?.cancel();
    this.#link?.end('the app stopped', 1000);
    const inbox = this.#inbox;
    await this.#tail;
    this.#inbox = null;
    inbox?.close();
    run.release();
    this.#setStatus(Status.notAvailable);
  }

  /** Resolves with the function that releases the lock; with null when the client was stopped before. */
  async #acquire(name, run) {
    const { locks } = this.#options;
    // Without locks (the page is not secure), several tabs end each other's connections.
    if (!locks) return () => {};
    const ask = (how) => new Promise((resolve) => {
      locks.request(name, how, (lock) => (lock ? new Promise((release) => resolve(release)) : resolve(null)))
        .catch(() => resolve(null));
    });
    const release = await ask({ ifAvailable: true });
    if (release || this.#run !== run) return release;
    this.#emit('standby', {});
    return ask({ signal: run.stop.signal });
  }

  #followPage(signal) {
    const seen = () => {
      const visible = document.visibilityState === 'visible';
      this.setForeground(visible);
      if (visible) this.#link?.ping();
    };
    seen();
    document.addEventListener('visibilitychange', seen, { signal });
    window.addEventListener('offline', () => this.#link?.ping(), { signal });
    window.addEventListener('online', () => {
      this.#link?.ping();
      this.#attempt = 0;
      // The gateway's demand stays in force.
      if (this.#retry?.mayHurry) this.#connectLater(this.#retry.url, 0);
    }, { signal });
  }

  /** Reports whether the app is in the foreground; needed only with `followPage: false`. */
  setForeground(foreground) {
    if (this.#background === !foreground) return;
    this.#background = !foreground;
    this.#link?.send('foreground', { foreground });
  }

  // -- user

  /**
   * Binds a user with the user session that the tenant checks, and replaces the bound user. The answer arrives as the
   * event `bound` or `bindRefused`. Throws a RangeError unless userId has 1 to 100 characters and sessionId at most
   * 4,096.
   */
  bind(userId, sessionId = '') {
    checkId('userId', userId);
    if (sessionId.length > 4096) throw new RangeError('sessionId must have at most 4096 characters');
    this.#user = { userId, sessionId };
    this.#isRequested = true;
    this.#ownershipEpoch = 0n;
    this.#sendBind();
  }

  /** Signs the user out. Only device data arrives, and the user's stored data waits until the user is bound again. */
  unbind() {
    if (!this.#user) return;
    this.#user = null;
    this.#sendBind();
  }

  #sendBind() {
    const link = this.#link;
    if (link?.isUp) {
      // The gateway may have dropped the former user's report as late, so its reply must not remove reports.
      link.report?.cancel();
      link.report = null;
      link.send('bind', fitting('bind', this.#nextBind(link)));
    }
    this.#queueHandOut();
  }

  #owned({ ownershipEpoch }) {
    this.#isRequested = false;
    this.#ownershipEpoch = ownershipEpoch ?? 0n;
  }

  #nextBind(link) {
    link.bindNumber += 1;
    link.accepted = false;
    const { userId, sessionId } = this.#user ?? { userId: '', sessionId: '' };
    const syncPoints = userId ? this.#inbox.syncPoints(userId) : [];
    const requestedByApp = Boolean(userId) && this.#isRequested;
    const ownershipEpoch = userId ? this.#ownershipEpoch : 0n;
    return { bindNumber: link.bindNumber, userId, sessionId, syncPoints, requestedByApp, ownershipEpoch };
  }

  // -- data

  /**
   * Calls `handler` with the oplogs of a Sync ID (or of ANY) in order, beginning with waiting ones. The client does not
   * wait for the handler. It hands an unconfirmed oplog out again after 10 s, 20 s and so on, six times.
   * @param {string|symbol} bizType the Sync ID, or ANY
   * @param {function(Oplog)} handler replaces an earlier handler
   * @returns {function()} removes the handler; later oplogs wait in the store
   */
  on(bizType, handler) {
    this.#handlers.set(bizType, handler);
    this.#queueHandOut();
    return () => {
      if (this.#handlers.get(bizType) === handler) this.#handlers.delete(bizType);
    };
  }

  /**
   * The oplogs of a Sync ID as an async iterator. The end of the loop removes the handler.
   * @returns {AsyncIterableIterator<Oplog>}
   */
  oplogs(bizType) {
    const queue = [];
    let arrived = () => {};
    let ended = false;
    const end = this.on(bizType, (oplog) => {
      const same = queue.findIndex((waiting) => ['id', 'kind', 'userId', 'deviceId', 'bizType']
        .every((part) => waiting[part] === oplog[part]));
      if (same < 0) queue.push(oplog);
      else queue[same] = oplog;
      arrived();
    });
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      async next() {
        while (queue.length === 0 && !ended) await new Promise((resolve) => { arrived = resolve; });
        return ended ? { done: true, value: undefined } : { done: false, value: queue.shift() };
      },
      async return() {
        ended = true;
        end();
        arrived();
        return { done: true, value: undefined };
      },
    };
  }

  /**
   * Records that the app has processed oplogs. The client does not hand them out again. Resolves when the record is on
   * the disk. The client reports it to the server until the server has recorded it.
   * @param {Oplog|Oplog[]} oplogs
   */
  async confirm(oplogs) {
    const named = [oplogs].flat().map(({ userId, deviceId, kind, bizType, id }) => (
      { channel: { scope: userId ?? deviceId ?? '', kind: kindNames.indexOf(kind), bizType }, id: BigInt(id) }));
    await this.#serially((inbox) => inbox.confirm(named));
    this.#sendReport();
  }

  /**
   * Returns the newest oplogs on the device that the app has had, of the bound user and the device, without the server.
   * @param {number} [count] the most oplogs; 50 by default
   * @returns {Promise<{oplog: Oplog, confirmed: boolean}[]>} the newest first
   */
  async stored(count = 50) {
    const scopes = ['', this.deviceId, this.#user?.userId ?? ''];
    const found = await this.#serially((inbox) => inbox.newest(count, scopes));
    return found.map((entry) => ({ oplog: oplogOf(entry), confirmed: entry.confirmed }));
  }

  /**
   * Requests older oplogs from the server, the newest first unless `oldestFirst` is true. It hands out and confirms
   * nothing.
   * @param {string} bizType the Sync ID
   * @param {object} [range] `before` and `after` are ids and exclusive; `count` is at most 100, 20 by default; with
   *   `conversation` only the oplogs of this one
   * @returns {Promise<{oplogs: Oplog[], more: boolean, next: string, head: string}>} when `more` is true, continue from
   *   `next`
   * @throws {SyncError}
   */
  async history(bizType, { before = 0, after = 0, count = 20, oldestFirst = false, conversation } = {}) {
    if (conversation !== undefined) checkId('conversation', conversation);
    const page = await this.#ask('historyRequest', { bizType, before: BigInt(before), after: BigInt(after),
      count: Math.min(count, 100), oldestFirst, conversation });
    const channel = { scope: this.#scopeOf(page.kind), kind: page.kind, bizType };
    const oplogs = page.entries.map((entry) => oplogOf({ ...channel, ...entry, id: entry.oplogId }));
    return { oplogs, more: page.more, next: String(page.next), head: String(page.head) };
  }

  /**
   * Requests the state of each channel on the server.
   * @returns {Promise<{bizType, kind, head, syncPoint, waiting: number, last: Oplog|null}[]>}
   * @throws {SyncError}
   */
  async summary() {
    const found = await this.#summaries(({ channels }) => channels.length > 0
      && { afterBizType: channels.at(-1).bizType });
    return found.map(({ conversation, ...channel }) => channel);
  }

  /**
   * Requests the state of each conversation of a Sync ID on the server, the newest first.
   * @param {string} bizType the Sync ID
   * @returns {Promise<{bizType, kind, head, syncPoint, conversation: string, waiting: number, last: Oplog}[]>} `last`
   *   and `waiting` are those of the conversation
   * @throws {SyncError}
   */
  async conversations(bizType) {
    checkId('bizType', bizType);
    const found = await this.#summaries(({ nextConversation }) => nextConversation
      && { conversationsOf: bizType, afterConversation: nextConversation }, { conversationsOf: bizType });
    return found.filter(({ last }) => last).sort((a, b) => (BigInt(b.last.id) > BigInt(a.last.id) ? 1 : -1));
  }

  /**
   * Requests the pages of a summary. `next(page)` returns the members of the next request, or a false value when the
   * page names no next one. A request that was made before ends it, and so does another bound user.
   */
  async #summaries(next, first = {}) {
    const found = [];
    const made = new Set();
    const user = this.#user;
    for (let request = first; request && !made.has(JSON.stringify(request));) {
      made.add(JSON.stringify(request));
      if (this.#user !== user) throw new SyncError('invalid', 'another user has been bound meanwhile');
      const page = await this.#ask('summaryRequest', { ...request, count: 16 });
      for (const { kind, bizType, head, syncPoint, last, waiting, conversation } of page.channels) {
        const channel = { scope: this.#scopeOf(kind), kind, bizType };
        found.push({ bizType, kind: kindNames[kind], head: String(head), syncPoint: String(syncPoint), waiting,
          last: last && oplogOf({ ...channel, ...last, id: last.oplogId }), conversation });
      }
      request = page.more && next(page);
    }
    return found;
  }

  /** Returns the present scope of a channel of this kind. */
  #scopeOf(kind) {
    if (isUserKind(kind)) return this.#user?.userId ?? '';
    return kindNames[kind] === 'device' ? this.deviceId : '';
  }

  async #ask(body, values) {
    if (!this.#link) throw new SyncError('notConnected', 'there is no connection');
    return this.#link.request(body, values);
  }

  // -- Sync IDs

  /**
   * Suspends a Sync ID until `resume`, also after restarts: its data is neither sent nor handed out. At most 200 Sync
   * IDs.
   */
  suspend(bizType) {
    return this.#subscribe((types) => types.add(bizType));
  }

  /** Resumes a suspended Sync ID. */
  resume(bizType) {
    return this.#subscribe((types) => types.delete(bizType));
  }

  /** Suspends a Sync ID, removes its handler, and deletes its unconfirmed oplogs. */
  async unsubscribe(bizType) {
    this.#handlers.delete(bizType);
    await this.suspend(bizType);
    await this.#serially((inbox) => inbox.dropUnconfirmed(bizType));
  }

  /** Requests all oplogs of a Sync ID again that the server still has, also confirmed ones. They have `recovered`. */
  async recover(bizType) {
    await this.#serially((inbox) => inbox.beginRecovery(bizType, this.#user?.userId));
    if (this.#link) this.#recover(this.#link);
  }

  async #subscribe(change) {
    await this.#serially(async (inbox) => {
      const types = new Set(inbox.suspended);
      change(types);
      if (types.size > 200) throw new RangeError('at most 200 Sync IDs can be suspended');
      await inbox.set('suspended', [...types]);
      this.#link?.send('subscriptions', { suspended: inbox.suspended });
    });
    this.#queueHandOut();
  }

  // -- connection

  #connect(url) {
    this.#retry?.cancel();
    this.#retry = null;
    this.#setStatus(Status.connecting);
    const link = new Link(this.#options.makeSocket(String(url)), this.#clock, this.#heartbeat, {
      greet: () => this.#greet(link),
      packet: (name, values) => this.#dispatch(link, name, values),
      ended: (close) => this.#ended(link, close),
      isHidden: () => this.#options.followPage && globalThis.document?.visibilityState === 'hidden',
    });
    this.#link = link;
  }

  async #greet(link) {
    const { appKey } = this.#options;
    const connect = fitting('connect', this.#connectValues(link));
    if (!appKey) return link.greet(connect);
    const state = this.#connectState;
    const wall = this.#clock.wall();
    const time = this.#signingOffset === null ? this.#inbox.serviceTime ?? wall : wall + this.#signingOffset;
    try {
      const signed = await signConnect(connect, appKey, Math.round(time), random(16));
      if (this.#link !== link || !this.#inbox) return;
      // The app has changed this state during the signing, so the signature is outdated.
      if (this.#connectState.some((part, index) => part !== state[index])) return this.#greet(link);
      link.greet(signed);
    } catch (error) {
      link.end(`signing the connect failed: ${error}`);
    }
  }

  get #connectState() {
    return [this.#user, this.#background, this.#inbox.settings.get('suspended')];
  }

  #connectValues(link) {
    const { appKey, instanceId, osName, osVersion, appVersion } = this.#options;
    return {
      protocolVersion: 1, instanceId, deviceId: this.deviceId, storeId: this.#inbox.settings.get('storeId'), osName,
      osVersion, appVersion, sdkVersion: SDK_VERSION, background: this.#background,
      syncPoints: this.#inbox.syncPoints(null), suspended: this.#inbox.suspended,
      bind: this.#user ? this.#nextBind(link) : null, deviceSecret: this.#inbox.settings.get('deviceSecret'),
      connectionNumber: BigInt(this.#inbox.countConnection()),
      // A placeholder as long as the real signature.
      signature: appKey ? { keyId: appKey.id, timestampMs: 1n << 42n, nonce: random(16), mac: random(32) } : null,
    };
  }

  #ended(link, { code = 0, reason = '', retryAfterMs = 0, address = '', serverTimeMs = 0n }) {
    if (this.#link !== link) return;
    this.#link = null;
    if (serverTimeMs > 0n) this.#signingOffset = Number(serverTimeMs) - this.#clock.wall();
    if (code === 5004 && this.#run) return this.#registerAnew(code, reason);
    if (link.openFor >= 5_000) this.#attempt = 0;
    const group = closeGroup(code);
    if (group === 'withoutUser') this.#user = null;
    if (!this.#run || group === 'stayAway') {
      this.#setStatus(this.#run ? Status.connectFailed : Status.notAvailable);
      return this.#emit('closed', { code, reason, retryInMs: null });
    }
    const elsewhere = new URL(this.#url);
    if (group === 'elsewhere' && address) elsewhere.host = address;
    const retryInMs = this.#connectLater(elsewhere, retryAfterMs);
    this.#emit('closed', { code, reason, retryInMs });
    if (group === 'withoutUser') this.#emit('sessionInvalid', { reason });
  }

  /** Connects with a new device id, and keeps the stored data. */
  #registerAnew(code, reason) {
    const run = this.#run;
    this.#setStatus(Status.connectFailed);
    this.#runOnStore(async (inbox) => {
      const deviceId = await inbox.registerAnew();
      this.#emit('registeredAnew', { deviceId });
    }).then(() => {
      // Without a new id the service refuses the next attempt too, and this runs again. The app may have connected
      // meanwhile.
      if (this.#run !== run || !this.#inbox || this.#link) return;
      this.#emit('closed', { code, reason, retryInMs: this.#connectLater(this.#url, 0) });
    });
  }

  #connectLater(url, retryAfterMs) {
    this.#retry?.cancel();
    if (this.#attempt === 0) this.#failingSince = this.#clock.now();
    const wait = backOff(this.#attempt++, this.#clock.now() - this.#failingSince, retryAfterMs);
    this.#retry = { cancel: this.#clock.after(wait, () => this.#connect(url)), mayHurry: retryAfterMs === 0, url };
    this.#setStatus(Status.connectFailed);
    return wait;
  }

  #dispatch(link, name, values) {
    const isPresent = values && (values.bindNumber ?? 0) === link.bindNumber;
    if (name === 'connected') this.#opened(link, values);
    else if (name === 'push') this.#pushed(link, values.batches);
    else if (name === 'bindResult' && isPresent) this.#bound(link, values);
    else if (name === 'ownershipTaken' && isPresent) this.#owned(values);
    else if (name === 'caughtUp' && (isPresent || values.bindNumber === 0)) this.#emit('caughtUp', {});
    else if (name === 'sessionState' && isPresent && values.validity) {
      const event = { 1: 'sessionValid', 2: 'sessionInvalid' }[values.validity];
      if (event) this.#emit(event, { reason: values.reason });
    } else if (name === 'confirmRecorded' && link.report?.numbers.has(values.reportId)) this.#recorded(link);
  }

  #opened(link, { firstResendMs, serverTimeMs }) {
    if (serverTimeMs > 0n) this.#inbox.serviceTime = Number(serverTimeMs);
    this.#setStatus(Status.connected);
    const firstWait = firstResendMs || 10_000;
    const beat = Math.min(1_000, firstWait / 4);
    let last = this.#clock.now();
    const tick = () => {
      if (this.#link !== link) return;
      const elapsed = this.#clock.now() - last;
      last += elapsed;
      const mayResend = (entry) => this.#mayHandOut(entry) && (!isUserKind(entry.kind) || link.accepted);
      this.#runOnStore(async (inbox) => this.#callHandlers(await inbox.resend(elapsed, firstWait, mayResend)))
        .then(() => this.#sendReport());
      this.#clock.after(beat, tick);
    };
    this.#clock.after(beat, tick);
    this.#sendReport();
    this.#recover(link);
  }

  #bound(link, { accepted, reason }) {
    const userId = this.#user?.userId;
    link.accepted = accepted && userId !== undefined;
    if (!userId) return;
    this.#emit(accepted ? 'bound' : 'bindRefused', { userId, reason });
    this.#sendReport();
    this.#recover(link);
  }

  #pushed(link, batches) {
    const idle = link.batches.length === 0;
    for (const batch of batches) {
      // Unknown kinds are of a later protocol version. Another bind number is of an earlier bind.
      if (!(batch.kind in kindNames) || (isUserKind(batch.kind) && batch.bindNumber !== link.bindNumber)) continue;
      if (isUserKind(batch.kind) && !this.#user) continue;
      link.batches.push({ ...batch, scope: this.#scopeOf(batch.kind) });
    }
    // Batches that arrive during a transaction go into the next one.
    if (idle && link.batches.length > 0) this.#runOnStore((inbox) => this.#storeBatches(inbox, link));
  }

  async #storeBatches(inbox, link) {
    const { channels, rereads, passedOver, rolledBack, gap } = await inbox.storeBatches(link.batches.splice(0));
    if (channels.size + rereads.length > 0) link.send('storedAck', { channels: [...channels.values()], rereads });
    if (gap) link.end('a batch begins above the position');
    for (const passed of passedOver) this.#emit('passedOver', passed);
    if (rolledBack && !this.#hasReportedRollback) this.#emit('storeRolledBack', {});
    this.#hasReportedRollback ||= rolledBack;
    this.#sendReport();
    this.#queueHandOut();
  }

  #recorded(link) {
    const { report } = link;
    report.cancel();
    this.#runOnStore((inbox) => inbox.removeReports(report.reported)).then(() => {
      if (link.report === report) link.report = null;
      this.#sendReport();
    });
  }

  #sendReport() {
    const link = this.#link;
    if (link?.state !== 'open' || link.report || !this.#inbox) return;
    const { reported, channels, resent } = this.#inbox.report((channel) => this.#bindNumberOf(link, channel));
    if (reported.length === 0) return;
    const report = link.report = { reported, numbers: new Set(), cancel: () => {} };
    const send = () => {
      const reportId = ++this.#reportNumber;
      report.numbers.add(reportId);
      link.send('confirmReport', { reportId, channels, resent });
      report.cancel = this.#clock.after(30_000, send);
    };
    send();
  }

  /** Returns the bind number for frames about this channel; null when no frame may be sent now. */
  #bindNumberOf(link, { scope, kind }) {
    if (!isUserKind(kind)) return 0;
    return link.accepted && scope === this.#user?.userId ? link.bindNumber : null;
  }

  async #recover(link) {
    if (link.isRecovering || !this.#inbox) return;
    link.isRecovering = true;
    const refused = new Set();
    const next = () => [...this.#inbox?.recoveries ?? []].find(([key, channel]) => this.#link === link
      && !refused.has(key) && this.#bindNumberOf(link, channel) !== null);
    for (let found = next(); found; found = next()) {
      const [key, { bizType, after, upto }] = found;
      try {
        const page = await link.request('historyRequest', { bizType, after, before: upto + 1n, count: 100,
          oldestFirst: true });
        await this.#serially((inbox) => inbox.storeRecovered(key, found[1], page));
        if (!page.more) this.#emit('recovered', { bizType });
        this.#queueHandOut();
      } catch (error) {
        if (['tryAgain', 'timeout'].includes(error.code)) await new Promise((go) => this.#clock.after(5_000, go));
        else refused.add(key);
      }
    }
    link.isRecovering = false;
  }

  // -- hand-outs

  #handlerOf(bizType) {
    return this.#handlers.get(bizType) ?? this.#handlers.get(ANY);
  }

  #mayHandOut({ scope, kind, bizType }) {
    return this.#handlerOf(bizType) !== undefined && !this.#inbox.suspended.includes(bizType)
      && (!isUserKind(kind) || scope === this.#user?.userId);
  }

  #queueHandOut() {
    if (this.#isHandOutQueued || !this.#inbox) return;
    this.#isHandOutQueued = true;
    this.#runOnStore(async (inbox) => {
      this.#isHandOutQueued = false;
      this.#callHandlers(await inbox.handOut((entry) => this.#mayHandOut(entry)));
    });
  }

  #callHandlers(entries) {
    for (const [key, entry] of entries) {
      if (!this.#mayHandOut(entry)) {
        this.#inbox.release(key);
        continue;
      }
      const failed = (error) => this.#emit('handlerError', { error });
      try {
        Promise.resolve(this.#handlerOf(entry.bizType)(oplogOf(entry))).catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  }

  /** Runs work on the inbox after all earlier work, so that the work reads committed data. */
  #serially(work) {
    const result = this.#tail.then(() => {
      if (!this.#inbox) throw new SyncError('notConnected', 'the client is not started');
      return work(this.#inbox);
    });
    this.#tail = result.catch(() => {});
    return result;
  }

  /**
   * Runs the client's own work on the inbox. When the store fails, nothing is acknowledged, and the data arrives again
   * on a later connection.
   */
  #runOnStore(work) {
    const link = this.#link;
    return this.#serially(work).catch((error) => {
      this.#isHandOutQueued = false;
      if (!this.#inbox) return;
      this.#emit('storeError', { error });
      if (link === this.#link) link?.end('the local store failed');
    });
  }

  #setStatus(status) {
    if (this.#status === status) return;
    this.#status = status;
    this.#emit('status', { status });
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** Removes sync points until the frame fits. Without a sync point, known data arrives again. */
function fitting(body, values) {
  const lists = [values, values.bind].filter(Boolean);
  while (encodeMessage('Packet', { [body]: values }).length > frameLimit.sent) {
    const longest = lists.sort((a, b) => b.syncPoints.length - a.syncPoints.length)[0];
    if (longest.syncPoints.length === 0) break;
    longest.syncPoints = longest.syncPoints.slice(0, Math.floor(longest.syncPoints.length * 0.9));
  }
  return values;
}
