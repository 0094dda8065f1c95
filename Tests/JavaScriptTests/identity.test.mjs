// The device's identity for the service: signatures and secrets (DeviceProtocol.md, Signed connects, Device secrets).
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { encodeFrame, signedText } from '../../Shared/Client/JavaScript/Web/mss-client.js';
import { Device, MemoryStore, batch, entry, settled } from './support.mjs';

const secretBytes = Buffer.alloc(32, 15);
const appKey = { id: 'k1', secret: secretBytes.toString('base64') };
const sink = (device, name) => device.events.filter(([event]) => event === name).map(([, detail]) => detail);
const deviceBatch = (after, upto, ids) => ({ kind: 1, bizType: 'D', bindNumber: 0, after: BigInt(after),
  upto: BigInt(upto), entries: ids.map((id) => entry(id)) });

function assertSigned({ ...connect }) {
  const mac = createHmac('sha256', secretBytes).update(signedText(connect)).digest();
  assert.deepEqual(Buffer.from(connect.signature.mac), mac);
}

/** Waits for the first frame and returns it: other threads compute the signature. */
async function connected(device) {
  for (let turn = 0; turn < 10_000 && !device.socket.last('connect'); turn += 1) await sleep(1);
  return device.socket.last('connect');
}

test('SEC9: it sends 32 bytes of its own, which are on disk before and stay', async () => {
  const first = new Device();
  await first.start();
  const { deviceSecret } = first.socket.last('connect');
  assert.equal(deviceSecret.length, 32);
  assert.deepEqual((await first.store.all('settings')).find(([name]) => name === 'deviceSecret')[1], deviceSecret);
  await first.client.stop();
  const second = new Device({ store: first.store });
  await second.start();
  assert.deepEqual(second.socket.last('connect').deviceSecret, deviceSecret);
  const other = new Device();
  await other.start();
  assert.notDeepEqual(other.socket.last('connect').deviceSecret, deviceSecret);
});

test('SEC9: an id of another device: it connects again as a new device, and keeps data independent of the id', async () => {
  const device = new Device();
  await device.start({ user: 'u1' });
  await device.push(batch(0, 2, [1, 2]), deviceBatch(0, 7, [7]));
  device.take('D');
  await settled();
  await device.client.confirm(device.got);
  const former = device.socket.last('connect');
  device.socket.say('close', { code: 5004, reason: 'another\'s' });
  await device.redial();
  await device.greet();
  const connect = device.socket.last('connect');
  assert.equal(former.deviceId, 'd1');
  assert.notEqual(connect.deviceId, 'd1');
  assert.equal(device.client.deviceId, connect.deviceId);
  assert.notDeepEqual(connect.deviceSecret, former.deviceSecret);
  assert.equal(connect.storeId, former.storeId);
  assert.deepEqual(connect.bind.syncPoints, [{ kind: 0, bizType: 'UCHAT', oplogId: 2n }]);
  assert.deepEqual(connect.syncPoints, []);
  assert.deepEqual(sink(device, 'registeredAnew'), [{ deviceId: connect.deviceId }]);
  // The same number now names another oplog, which was never confirmed.
  await device.push(deviceBatch(0, 7, [7]));
  assert.deepEqual(device.ids, ['7', '7']);
  await device.client.stop();
  const again = new Device({ store: device.store });
  await again.start();
  assert.equal(again.socket.last('connect').deviceId, connect.deviceId);
});

test('SEC9: unconfirmed oplogs of the former id stay the app\'s, apart from the new id\'s', async () => {
  const device = new Device();
  await device.start();
  device.take('D');
  await device.push(deviceBatch(0, 7, [6, 7]));
  const [six, seven] = device.got;
  device.socket.say('close', { code: 5004 });
  await device.redial();
  await device.greet();
  await device.push(deviceBatch(0, 7, [7]));
  const renewed = device.got.at(-1);
  assert.deepEqual([seven.deviceId, renewed.deviceId], ['d1', device.client.deviceId]);
  await device.client.confirm(six);
  await device.client.stop();
  const again = new Device({ store: device.store });
  again.take('D');
  await again.start();
  await settled();
  const waiting = again.got.map(({ deviceId, id }) => [deviceId, id]).sort();
  assert.deepEqual(waiting, [['d1', seven.id], [renewed.deviceId, '7']].sort());
  // Confirmations for the former id are not reported.
  await again.client.confirm(again.got);
  const reports = again.socket.all('confirmReport').map(({ channels, resent }) => [channels, resent]);
  assert.deepEqual(reports.map(([channels]) => channels.map(({ oplogIds }) => oplogIds)), [[[7n]]]);
  assert.deepEqual(reports[0][1], []);
});

test('SEC9: the app may connect by itself after the refusal: there is one connection', async () => {
  const device = new Device();
  await device.start();
  device.client.addEventListener('registeredAnew', () => device.client.start());
  device.socket.say('close', { code: 5004 });
  await settled();
  await device.greet();
  await device.clock.advance(30_000);
  assert.equal(device.sockets.length, 2);
  assert.equal(device.socket.last('connect').deviceId, device.client.deviceId);
  assert.equal(sink(device, 'closed').filter(({ retryInMs }) => retryInMs === null).length, 0);
});

test('SEC9: a store that cannot write the new identity: it retries', async () => {
  const device = new Device();
  await device.start();
  device.store.fails = new Error('disk full');
  device.socket.say('close', { code: 5004 });
  await device.redial();
  device.store.fails = null;
  await device.greet();
  assert.equal(device.socket.last('connect').deviceId, 'd1');
});

test('K7: it signs with the app\'s key, anew for each connection', async () => {
  const device = new Device({ appKey });
  device.client.bind('u1', 's1');
  await device.client.start();
  device.socket.onopen();
  const first = await connected(device);
  assertSigned(first);
  assert.deepEqual([first.signature.keyId, first.signature.nonce.length], ['k1', 16]);
  assert.equal(first.signature.timestampMs, BigInt(device.clock.wall()));
  device.socket.onclose();
  await device.redial();
  device.socket.onopen();
  const second = await connected(device);
  assertSigned(second);
  assert.notDeepEqual(second.signature.nonce, first.signature.nonce);
  const plain = new Device();
  await plain.start();
  assert.equal(plain.socket.last('connect').signature, null);
  for (const wrong of [{ id: '', secret: appKey.secret }, { id: 'k', secret: '-'.repeat(44) }, { id: 'k', secret: 'AAAA' }]) {
    assert.throws(() => new Device({ appKey: wrong }), RangeError);
  }
});

test('changes by the app while the Connect is being signed are in it, and no frame is sent before it', async () => {
  const device = new Device({ appKey });
  await device.client.start();
  device.socket.onopen();
  device.client.bind('u2', 's2');
  device.client.setForeground(false);
  const connect = await connected(device);
  assertSigned(connect);
  assert.equal(device.socket.sent[0][0], 'connect');
  assert.equal(device.socket.sent.length, 1);
  assert.deepEqual([connect.bind.userId, connect.background], ['u2', true]);
});

test('SEC6: a clock that is a year off: it uses the service\'s time and connects', async () => {
  const device = new Device({ appKey });
  await device.client.start();
  device.socket.onopen();
  await connected(device);
  const right = BigInt(device.clock.wall() + 365 * 86_400_000);
  device.socket.say('close', { code: 1002, serverTimeMs: right });
  const before = device.clock.wall();
  await device.redial();
  device.socket.onopen();
  const connect = await connected(device);
  assertSigned(connect);
  assert.equal(connect.signature.timestampMs, right + BigInt(device.clock.wall() - before));
});

test('SEC9: after a refused signature it stays disconnected', async () => {
  const device = new Device({ appKey, store: new MemoryStore() });
  await device.client.start();
  device.socket.onopen();
  await connected(device);
  device.socket.say('close', { code: 5003, reason: 'refused' });
  await device.clock.advance(600_000);
  assert.equal(device.sockets.length, 1);
  assert.deepEqual(sink(device, 'closed').map(({ code, retryInMs }) => [code, retryInMs]), [[5003, null]]);
});

test('V1: a session id may have 4,096 characters, and the frame stays within its limit', async () => {
  const device = new Device({ appKey });
  const session = '中'.repeat(4096);
  device.client.bind('u1', session);
  assert.throws(() => device.client.bind('u1', `${session}x`), RangeError);
  await device.client.start();
  device.socket.onopen();
  const connect = await connected(device);
  assert.equal(connect.bind.sessionId, session);
  assert.ok(encodeFrame('connect', connect).length <= 65_540);
});
