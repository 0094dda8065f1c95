/** The stores of Sync Express: rows of JSON by name, in memory, in localStorage or in IndexedDB. */

/** Whether a write failed because the store is full. */
export const isQuota = ({ name, code }) => name === 'QuotaExceededError' || name === 'NS_ERROR_DOM_QUOTA_REACHED'
  || code === 22;
const byteCount = (text) => new TextEncoder().encode(text).length;

/**
 * Rows in memory, which are lost with the page.
 *
 * Rows of your own need the same methods: `read(names)` returns a map of the existing rows; `list(prefix)` returns
 * their names in order; `write([[name, value]…])` writes all or nothing, where undefined removes a row. A full store
 * throws an error with the name QuotaExceededError. Values are JSON.
 */
export class MemoryRows {
  #texts = new Map();
  #bytes = 0;

  /** @param maxBytes the most bytes of names and values; the default is the size of an Oracle offline store */
  constructor({ maxBytes = 100 * 1024 * 1024 } = {}) {
    this.maxBytes = maxBytes;
  }

  async read(names) {
    return new Map(names.filter((name) => this.#texts.has(name))
      .map((name) => [name, JSON.parse(this.#texts.get(name))]));
  }

  async list(prefix) {
    return [...this.#texts.keys()].filter((name) => name.startsWith(prefix)).sort();
  }

  async write(changes) {
    const texts = new Map(changes.map(([name, value]) => [name, JSON.stringify(value)]));
    const size = (name, text) => (text === undefined ? 0 : byteCount(name) + byteCount(text));
    let bytes = this.#bytes;
    for (const [name, text] of texts) bytes += size(name, text) - size(name, this.#texts.get(name));
    if (bytes > Math.max(this.maxBytes, this.#bytes)) {
      throw new DOMException(`${bytes} bytes of ${this.maxBytes}`, 'QuotaExceededError');
    }
    this.#bytes = bytes;
    for (const [name, text] of texts) text === undefined ? this.#texts.delete(name) : this.#texts.set(name, text);
  }
}

/** Rows in one item of localStorage, because only the write of one item is atomic. For a small cache of up to 5 MB. */
export class LocalStorageRows {
  #last = [null, {}];

  constructor(name, area = globalThis.localStorage) {
    this.name = `mss-express ${name}`;
    this.area = area;
  }

  #all() {
    const text = this.area.getItem(this.name);
    if (this.#last[0] !== text) this.#last = [text, text === null ? {} : JSON.parse(text)];
    return this.#last[1];
  }

  async read(names) {
    const all = this.#all();
    return new Map(names.filter((name) => Object.hasOwn(all, name)).map((name) => [name, structuredClone(all[name])]));
  }

  async list(prefix) {
    return Object.keys(this.#all()).filter((name) => name.startsWith(prefix)).sort();
  }

  async write(changes) {
    this.area.setItem(this.name, JSON.stringify({ ...this.#all(), ...Object.fromEntries(changes) }));
  }
}

const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/** Rows in a database of IndexedDB. The browser decides about the size. */
export class IndexedDBRows {
  #database = null;

  constructor(name) {
    this.name = `mss-express ${name}`;
  }

  async #table(mode, options) {
    if (!this.#database) {
      const request = indexedDB.open(this.name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore('rows');
      const database = await done(request);
      // Another tab deletes the database; an open connection would block that tab.
      database.onversionchange = database.onclose = () => {
        database.close();
        this.#database = null;
      };
      this.#database = database;
    }
    return this.#database.transaction('rows', mode, options).objectStore('rows');
  }

  async read(names) {
    const table = await this.#table('readonly');
    const values = await Promise.all(names.map((name) => done(table.get(name))));
    return new Map(names.map((name, index) => [name, values[index]]).filter(([, value]) => value !== undefined));
  }

  async list(prefix) {
    return done((await this.#table('readonly')).getAllKeys(IDBKeyRange.bound(prefix, `${prefix}\uffff`)));
  }

  async write(changes) {
    // A cached answer that a power failure destroys is fetched again; a change is not made again.
    const isPrecious = changes.some(([name]) => name.startsWith('change/'));
    const table = await this.#table('readwrite', { durability: isPrecious ? 'strict' : 'relaxed' });
    return new Promise((resolve, reject) => {
      table.transaction.oncomplete = () => resolve();
      table.transaction.onabort = () => reject(table.transaction.error ?? new Error('the transaction was aborted'));
      try {
        for (const [name, value] of changes) value === undefined ? table.delete(name) : table.put(value, name);
      } catch (error) {
        // An invalid value throws at once. Without the abort, the earlier writes would be committed.
        table.transaction.abort();
        reject(error);
      }
    });
  }
}
