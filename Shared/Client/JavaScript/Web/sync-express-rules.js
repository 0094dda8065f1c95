/**
 * The pure rules of Sync Express: paths and patterns, the effect of waiting changes on the server's answers, and the
 * changes that depend on others. `sync-express.js` uses them.
 */

/**
 * A failed call, a TypeError like those of fetch. `code`: `pattern` and `invalid` are mistakes of the caller, and had
 * no effect; `offline` means no network and no cached answer; `quota` means that the store is full and the change was
 * not stored.
 */
export class ExpressError extends TypeError {
  constructor(code, message, options) {
    super(message, options);
    this.name = 'ExpressError';
    this.code = code;
  }
}

// ---- patterns ------------------------------------------------------------------------------------------------------

const temporary = /^~[0-9a-f]{32}$/;
export const isTemporary = (text) => typeof text === 'string' && temporary.test(text);
export const temporariesIn = (path) => path.split('/').filter(isTemporary);

/** Returns one spelling for each segment: only the necessary characters are escaped. */
export const segmentOf = (text) => encodeURIComponent(text).replace(/%(?:2[14B6-9AC]|3[ABD]|40)/g, decodeURIComponent);
export const childOf = (collection, key) => `${collection}/${segmentOf(key)}`;

function segment(text, pattern) {
  const [, mark, name, expression, optional] = /^:(_?)([A-Za-z]\w*)(?:\((.+)\))?(\?)?$/.exec(text) ?? [];
  if (name === undefined) {
    if (text === '' || /[:()?*]/.test(text)) throw new ExpressError('pattern', `"${text}" in ${pattern} is neither a `
      + 'name nor :key(expression)? nor :_collection?');
    return { isKey: false, isOptional: false, accepts: (given) => given === text };
  }
  let accepts = mark ? (given) => given === name : () => true;
  if (expression) {
    try {
      const whole = new RegExp(`^(?:${expression})$`, 'u');
      accepts = (given) => whole.test(given);
    } catch (cause) {
      throw new ExpressError('pattern', `${text} in ${pattern} has no valid expression`, { cause });
    }
  }
  return { isKey: !mark, isMarked: Boolean(mark), isOptional: Boolean(optional), name,
    accepts: mark ? accepts : (given) => accepts(given) || isTemporary(given) };
}

/**
 * Reads a pattern such as `/departments/:deptId(\\d+)/:_employees?/:empId(\\d+)?`. A segment is a name, a key with an
 * expression for the whole segment, or `:_name`: a sub-collection with this name, or with a name that its expression
 * accepts. A path can end before each key, because the key needs its collection, and before each optional segment.
 * @throws {ExpressError} `pattern`
 */
export function readPattern(text) {
  if (typeof text !== 'string') throw new ExpressError('pattern', `a pattern is a text, not ${typeof text}`);
  const segments = text.replace(/^\//, '').split('/').map((part) => segment(part, text));
  segments.forEach((part, index) => {
    const [before, after] = [segments[index - 1], segments[index + 1]];
    const name = part.name && `:${part.isMarked ? '_' : ''}${part.name}`;
    if (part.isKey && (!before || before.isKey)) {
      throw new ExpressError('pattern', `${name} in ${text} is a key without a collection before it`);
    }
    if (part.isMarked && after && !after.isKey) {
      throw new ExpressError('pattern', `${name} in ${text} is a collection without a key after it`);
    }
    if (before?.isOptional && !part.isOptional && !part.isKey) {
      throw new ExpressError('pattern', `in ${text} all that comes after an optional segment must be optional`);
    }
  });
  return { segments };
}

export const fetchPolicies = ['FETCH_FROM_SERVICE_IF_ONLINE', 'FETCH_FROM_SERVICE',
  'FETCH_FROM_CACHE_SCHEDULE_REFRESH'];

/**
 * Reads the object `syncExpress` of Oracle's configuration, `{handler, policies: [{path, fetchPolicy}]}`. The handler
 * is `GenericRequestHandler` (default) or `OracleRestHandler`, for answers that are wrapped in `items`.
 * @returns the patterns and the format of collections
 * @throws {ExpressError} `invalid`, `pattern`
 */
export function readConfiguration(configuration) {
  const check = (holds, message) => {
    if (!holds) throw new ExpressError('invalid', `syncExpress${message}`);
  };
  const checkMembers = (value, names, at) => {
    check(isRecord(value), `${at} is an object`);
    const other = Object.keys(value).find((name) => !names.includes(name));
    check(other === undefined, `${at}.${other} is not known; known members are ${names.join(', ')}`);
  };
  checkMembers(configuration, ['handler', 'policies'], '');
  const { handler = 'GenericRequestHandler', policies } = configuration;
  const handlers = { GenericRequestHandler: plainItems, OracleRestHandler: wrappedItems };
  check(Object.hasOwn(handlers, handler), `.handler is one of ${Object.keys(handlers).join(', ')}`);
  check(Array.isArray(policies) && policies.length > 0, '.policies is a list of at least one {path}');
  const patterns = policies.map((policy, index) => {
    const at = `.policies[${index}]`;
    checkMembers(policy, ['path', 'fetchPolicy'], at);
    const { path, fetchPolicy = fetchPolicies[0] } = policy;
    check(typeof path === 'string', `${at}.path is a path pattern`);
    check(fetchPolicies.includes(fetchPolicy), `${at}.fetchPolicy is one of ${fetchPolicies.join(', ')}`);
    return { ...readPattern(path), fetchPolicy };
  });
  return { patterns, items: handlers[handler] };
}

/**
 * Classifies a path by the first matching pattern: a `collection`, an `object` of a collection, or a `document`, which
 * no key can follow. Returns null without a match. `member` is the member of an object that has its key, as the pattern
 * names it.
 * @param segments decoded
 */
export function matchPath(patterns, segments, keys = {}) {
  const found = patterns.find(({ segments: parts }) => segments.length > 0 && segments.length <= parts.length
    && segments.every((given, index) => given !== '' && parts[index].accepts(given))
    && (parts[segments.length] === undefined || parts[segments.length].isKey || parts[segments.length].isOptional));
  if (!found) return null;
  const { segments: pattern, fetchPolicy = fetchPolicies[0] } = found;
  const path = segments.map((given) => `/${segmentOf(given)}`).join('');
  const [last, next] = [pattern[segments.length - 1], pattern[segments.length]];
  const memberOf = ({ name }) => keys[name] ?? name;
  if (last.isKey) {
    const collection = path.slice(0, path.lastIndexOf('/'));
    return { kind: 'object', path, fetchPolicy, object: path, collection, key: segments.at(-1),
      member: memberOf(last) };
  }
  if (!next?.isKey) return { kind: 'document', path, fetchPolicy, object: path };
  return { kind: 'collection', path, fetchPolicy, collection: path, member: memberOf(next), accepts: next.accepts };
}

// ---- changes (pure) ------------------------------------------------------------------------------------------------

export const isRecord = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
export const keyIn = (value, member) => (isRecord(value) && ['string', 'number'].includes(typeof value[member])
  && value[member] !== '' ? String(value[member]) : undefined);
const isBelow = (path, top) => path.startsWith(`${top}/`);

const withKey = (body, { member, key }, before) => (member === undefined || keyIn(body, member) !== undefined
  ? body : { ...body, [member]: before?.[member] ?? key });

export function oneApplied(seen, change) {
  if (change.method === 'DELETE') return { gone: true };
  if (change.method !== 'PATCH') return { value: withKey(change.body, change, seen?.value) };
  return isRecord(seen?.value) ? { ...seen, value: { ...seen.value, ...change.body } } : seen;
}

/**
 * Returns a resource with the waiting changes applied: `{value}`, `{gone: true}`, or undefined when its state is
 * unknown, for example below an object that was deleted and created again.
 */
export function withChanges(path, row, changes) {
  return changes.reduce((seen, change) => {
    if (change.object === path) return oneApplied(seen, change);
    if (change.object === undefined || !isBelow(path, change.object)) return seen;
    if (change.method === 'DELETE') return { gone: true, by: change.object };
    return change.method === 'PUT' && seen?.by === change.object ? undefined : seen;
  }, row);
}

/**
 * Returns the keys of a collection with the waiting changes applied. Created keys appear only in the collection without
 * a query.
 */
export function keysWithChanges({ path, query }, keys, changes) {
  const result = new Set(keys);
  for (const change of changes) {
    if (change.collection !== path || change.object === undefined) continue;
    if (change.method === 'DELETE') result.delete(change.key);
    else if (change.method !== 'PATCH' && !query) result.add(change.key);
  }
  return [...result];
}

/** Replaces temporary keys with the server's keys where a text of the JSON is exactly such a key. */
export function replaceKeys(value, aliases) {
  if (isTemporary(value)) return aliases[value] ?? value;
  if (Array.isArray(value)) return value.map((part) => replaceKeys(part, aliases));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, replaceKeys(part, aliases)]));
}

/** Returns a waiting change after an object on its path got another path. */
export function moved(change, from, to, key, aliases) {
  const move = (path) => (path === from || (path && isBelow(path, from)) ? to + path.slice(from.length) : path);
  return { ...change, path: move(change.path), object: move(change.object), collection: move(change.collection),
    key: change.object === from ? key : change.key, body: replaceKeys(change.body, aliases) };
}

/**
 * Returns the change at an index, and the later changes that cannot be sent without it, because they need its temporary
 * key.
 */
export function withDependents(changes, index) {
  const lost = new Set();
  return changes.slice(index).filter((change, offset) => {
    const text = JSON.stringify([change.path.split('/'), change.body ?? null]);
    if (offset > 0 && ![...lost].some((key) => text.includes(`"${key}"`))) return false;
    if (change.method === 'POST' && isTemporary(change.key)) lost.add(change.key);
    return true;
  });
}

/** Whether a path needs a temporary key that no waiting change will replace. */
export const isLost = (path, changes) => temporariesIn(path).some((key) => !changes.some((change) => change.key === key
  && change.method === 'POST'));

/** Whether a change must wait longer after an answer with this status. Any other refusal is final. */
export const mustWait = (status) => status >= 500 || [401, 407, 408, 425, 429].includes(status);

/** The format of answers that are the array of objects itself. */
export const plainItems = Object.freeze({
  read: (body) => (Array.isArray(body) ? body : undefined),
  write: (body, items) => items,
});

/** The format of answers like `{"items": […], "count": 2}`. Other members are served unchanged. */
export const wrappedItems = Object.freeze({
  read: (body) => (Array.isArray(body?.items) ? body.items : undefined),
  write: (body, items) => ({ ...body, items, ...(typeof body?.count === 'number' && { count: items.length }) }),
});
