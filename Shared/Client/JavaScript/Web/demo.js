// The demo page: a device of Mobile Sync Service with its connection, its pushes, and the buttons of an app.
import { ANY, Status, SyncClient } from '/mss-client.js';

const element = (id) => document.getElementById(id);
const fields = ['instance', 'user', 'session', 'types'];
const shownLimit = 200;
let client = null;
let clientOf = '';
let countdown = null;
const channels = new Map();
const shown = new Map();

// ---- the connection ------------------------------------------------------------------------------------------------

const statusTexts = {
  [Status.notAvailable]: 'Not connected',
  [Status.connecting]: 'Connecting…',
  [Status.connected]: 'Connected',
  [Status.connectFailed]: 'Not connected: waiting',
};

function showStatus(status, text = statusTexts[status]) {
  clearInterval(countdown);
  element('status').dataset.status = status;
  element('status-text').textContent = text;
}

function showNotice(text, isBad = false) {
  element('notice').textContent = text;
  element('notice').hidden = text === '';
  element('notice').classList.toggle('is-bad', isBad);
}

function showClosed({ code, reason, retryInMs }) {
  if (retryInMs === null) {
    if (code !== 1000) showNotice(`The gateway does not allow reconnects (${code}): ${reason}. Press Connect.`, true);
    return;
  }
  const end = Date.now() + retryInMs;
  const show = () => {
    const seconds = Math.ceil((end - Date.now()) / 1000);
    element('status-text').textContent = seconds > 0 ? `Connecting again in ${seconds} s` : 'Connecting again';
  };
  show();
  countdown = setInterval(show, 500);
}

function listen(made) {
  const on = (name, work) => made.addEventListener(name, ({ detail }) => {
    if (made === client) work(detail);
  });
  on('status', ({ status }) => {
    showStatus(status);
    showButtons();
    if (status === Status.connected) showNotice('');
  });
  on('closed', showClosed);
  on('registeredAnew', ({ deviceId }) => { element('device').value = deviceId; });
  on('standby', () => showNotice('Another tab of this device is connected. This one takes over when it closes.'));
  on('bound', ({ userId }) => showNotice(`${userId} is bound.`));
  on('bindRefused', ({ userId, reason }) => showNotice(`${userId} was not bound: ${reason}`, true));
  on('sessionInvalid', ({ reason }) => showNotice(`The session is not valid ${reason && `(${reason})`}: sign in again.`,
    true));
  on('caughtUp', () => showSummary(made));
  on('passedOver', ({ bizType }) => showNotice(`Older pushes of ${bizType} are only in the history.`));
  on('recovered', ({ bizType }) => showNotice(`All data of ${bizType} was received again.`));
  on('storeError', ({ error }) => showNotice(`Error of the local store: ${error.message}`, true));
}

async function connect() {
  const [instanceId, user, session, types] = fields.map((name) => element(name).value.trim());
  sessionStorage.setItem('mss.demo', JSON.stringify({ instance: instanceId, user, session, types }));
  const wanted = JSON.stringify([instanceId, types]);
  if (client && clientOf !== wanted) await disconnect();
  if (!client) {
    const parameters = new URLSearchParams(location.search);
    client = new SyncClient({ instanceId, deviceId: parameters.get('device') ?? undefined, appVersion: '1.0' });
    clientOf = wanted;
    element('device').value = client.deviceId;
    listen(client);
  }
  if (user) client.bind(user, session);
  else client.unbind();
  showNotice('');
  showButtons();
  await client.start();
  // Stored oplogs are shown first, then the handlers receive the unconfirmed ones.
  await showStored();
  const listed = types.split(',').map((type) => type.trim()).filter(Boolean);
  for (const type of listed) showChannel(type);
  for (const type of listed.length > 0 ? listed : [ANY]) client?.on(type, showPush);
  showButtons();
}

async function disconnect() {
  const ending = client;
  client = null;
  sessionStorage.removeItem('mss.demo');
  showStatus(Status.notAvailable);
  showButtons();
  clear();
  await ending?.stop();
}

function showButtons() {
  element('disconnect').disabled = client === null;
  element('unbind').disabled = client === null || element('user').value === '';
  for (const button of document.querySelectorAll('.channel button')) {
    button.disabled = client?.status !== Status.connected;
  }
}

// ---- pushes --------------------------------------------------------------------------------------------------------

const keyOf = ({ kind, userId, deviceId, bizType, id }) => JSON.stringify([kind, userId, deviceId, bizType, id]);

function textOf({ payload, binary, recalls }) {
  if (recalls) return `Push ${recalls} was recalled.`;
  if (!binary) return payload;
  const bytes = [...payload.subarray(0, 64)].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
  return `${payload.length} bytes: ${bytes}${payload.length > 64 ? ' …' : ''}`;
}

function row(oplog, marks) {
  const item = element('push-template').content.firstElementChild.cloneNode(true);
  const date = new Date(oplog.createdAt);
  item.dataset.id = oplog.id;
  item.dataset.type = oplog.bizType;
  item.classList.toggle('is-data', oplog.binary || /^[[{]/.test(oplog.payload));
  item.querySelector('.type').textContent = oplog.bizType;
  item.querySelector('.id').textContent = oplog.id;
  item.querySelector('.marks').textContent = marks.filter(Boolean).join(', ');
  item.querySelector('.text').textContent = textOf(oplog);
  item.querySelector('time').dateTime = date.toISOString();
  item.querySelector('time').textContent = date.toDateString() === new Date().toDateString()
    ? date.toLocaleTimeString() : date.toLocaleString();
  return item;
}

function setConfirmed(item, confirmed) {
  item.classList.toggle('is-confirmed', confirmed);
  item.classList.toggle('is-open', !confirmed);
}

async function confirmPush(oplog, item) {
  try {
    await client.confirm(oplog);
    setConfirmed(item, true);
  } catch (error) {
    showNotice(error.message, true);
  }
}

function place(oplog, item) {
  const key = keyOf(oplog);
  const before = shown.get(key);
  item.dataset.given = Number(before?.dataset.given ?? 0) + 1;
  if (before) before.replaceWith(item);
  else element('pushes').prepend(item);
  shown.set(key, item);
  if (shown.size > shownLimit) {
    const oldest = element('pushes').lastElementChild;
    for (const [old, row] of shown) if (row === oldest) shown.delete(old);
    oldest.remove();
  }
  element('count').textContent = shown.size;
  element('pushes-empty').hidden = true;
}

/** Shows a push, and confirms it if the switch is on. */
function showPush(oplog) {
  const item = row(oplog, [oplog.attempt > 1 && `attempt ${oplog.attempt}`, oplog.replay && 'replay',
    oplog.recovered && 'recovered']);
  item.classList.add('is-new');
  setConfirmed(item, false);
  item.querySelector('.confirm').addEventListener('click', () => confirmPush(oplog, item));
  const isNew = !shown.has(keyOf(oplog));
  place(oplog, item);
  if (oplog.recalls) shown.get(keyOf({ ...oplog, id: oplog.recalls }))?.classList.add('is-recalled');
  showChannel(oplog.bizType, isNew ? 1 : 0);
  if (element('auto-confirm').checked) confirmPush(oplog, item);
}

async function showStored() {
  clear();
  const stored = await client?.stored(shownLimit) ?? [];
  for (const { oplog, confirmed } of stored.reverse()) {
    const item = row(oplog, []);
    item.dataset.stored = '';
    setConfirmed(item, confirmed);
    item.querySelector('.confirm').addEventListener('click', () => confirmPush(oplog, item));
    place(oplog, item);
    showChannel(oplog.bizType, 1);
  }
  if (stored.length > 0) showNotice(`${stored.length} pushes were already on this device.`);
}

function clear() {
  shown.clear();
  channels.clear();
  element('pushes').replaceChildren();
  element('channels').replaceChildren();
  element('count').textContent = '';
  element('pushes-empty').hidden = false;
  element('channels-empty').hidden = false;
}

// ---- Sync IDs ------------------------------------------------------------------------------------------------------

function showChannel(bizType, more = 0) {
  if (!channels.has(bizType)) {
    const item = element('channel-template').content.firstElementChild.cloneNode(true);
    item.dataset.type = bizType;
    item.querySelector('.type').textContent = bizType;
    item.querySelector('.history').addEventListener('click', () => openHistory(bizType));
    item.querySelector('.suspend').addEventListener('click', () => toggle(bizType));
    channels.set(bizType, { item, seen: 0 });
    element('channels').append(item);
    element('channels-empty').hidden = true;
    showButtons();
  }
  const channel = channels.get(bizType);
  channel.seen += more;
  const isSuspended = client?.suspended.includes(bizType) ?? false;
  channel.item.classList.toggle('is-suspended', isSuspended);
  channel.item.querySelector('.suspend').textContent = isSuspended ? 'Resume' : 'Suspend';
  channel.item.querySelector('.seen').textContent = isSuspended ? 'suspended' : `${channel.seen} shown`;
}

async function toggle(bizType) {
  await (client.suspended.includes(bizType) ? client.resume(bizType) : client.suspend(bizType));
  showChannel(bizType);
}

/** Adds the channels that the server knows and that have sent no data yet. */
async function showSummary(made) {
  try {
    for (const { bizType } of await made.summary()) if (made === client) showChannel(bizType);
    for (const bizType of made.suspended) if (made === client) showChannel(bizType);
  } catch {
    // The list stays as it is; the next connection requests the summary again.
  }
}

let historyOf = null;

async function openHistory(bizType) {
  historyOf = { bizType, before: '0' };
  element('history-title').textContent = `History of ${bizType}`;
  element('history-list').replaceChildren();
  element('history-empty').hidden = true;
  element('history').showModal();
  await showOlder();
}

async function showOlder() {
  const { bizType, before } = historyOf;
  try {
    const page = await client.history(bizType, { before, count: 20 });
    for (const oplog of page.oplogs) {
      const item = row(oplog, []);
      setConfirmed(item, true);
      element('history-list').append(item);
    }
    historyOf.before = page.next;
    element('history-more').hidden = !page.more;
    element('history-empty').hidden = element('history-list').childElementCount > 0;
  } catch (error) {
    element('history-empty').hidden = false;
    element('history-empty').textContent = `The history is not available now (${error.code ?? error.message}).`;
  }
}

// ---- start ---------------------------------------------------------------------------------------------------------

const failed = (error) => showNotice(error.message, true);
element('connect-form').addEventListener('submit', (event) => {
  event.preventDefault();
  connect().catch(failed);
});
element('disconnect').addEventListener('click', () => disconnect().catch(failed));
element('unbind').addEventListener('click', () => {
  client.unbind();
  element('user').value = '';
  element('session').value = '';
  showNotice('No user is bound. Only device data arrives.');
  showStored().catch(failed);
  showButtons();
});
element('auto-confirm').addEventListener('change', ({ target }) => {
  if (target.checked) for (const button of document.querySelectorAll('#pushes .is-open .confirm')) button.click();
});
element('history-close').addEventListener('click', () => element('history').close());
element('history-more').addEventListener('click', () => showOlder().catch(failed));

const parameters = new URLSearchParams(location.search);
const remembered = JSON.parse(sessionStorage.getItem('mss.demo') ?? '{}');
for (const name of fields) element(name).value = parameters.get(name) ?? remembered[name] ?? '';
if (parameters.has('confirm')) element('auto-confirm').checked = parameters.get('confirm') !== 'no';
if (parameters.has('connect') || remembered.instance) connect().catch(failed);
