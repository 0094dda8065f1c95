import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ANY, Status } from '../../Shared/Client/JavaScript/Web/mss-client.js';
import { Device, ManualClock, MemoryStore, batch, entry, settled } from './support.mjs';

async function started(options = {}) {
  const device = new Device(options);
  device.take();
  await device.start({ user: 'u1', ...options.connected });
  return device;
}

const acked = (device) => device.socket.all('storedAck').flatMap(({ channels }) => channels.map(({ upto }) => upto));
const sink = (device, name) => device.events.filter(([event]) => event === name).map(([, detail]) => detail);
const confirmedIds = (socket) => socket.all('confirmReport').flatMap(({ channels }) => channels)
  .flatMap(({ oplogIds }) => oplogIds);

async function confirmAndRecord(device, oplogs = device.got) {
  await device.client.confirm(oplogs);
  await settled();
  device.socket.say('confirmRecorded', { reportId: device.socket.last('confirmReport').reportId });
  await settled();
}

test('the client connects with its names, its positions and its user, and the states go 0, 1, 2', async () => {
  const device = await started();
  const connect = device.socket.last('connect');
  assert.equal(device.socket.url, 'wss://gateway.example/mss/1');
  assert.deepEqual([connect.protocolVersion, connect.instanceId, connect.deviceId, connect.osName, connect.simple],
    [1, 'demo_app', 'd1', 'Web', false]);
  assert.deepEqual([connect.bind.bindNumber, connect.bind.userId, connect.bind.sessionId], [1, 'u1', 's1']);
  assert.deepEqual(sink(device, 'status').map(({ status }) => status), [Status.connecting, Status.connected]);
  assert.deepEqual(sink(device, 'bound'), [{ userId: 'u1', reason: '' }]);
});

test('a push is on disk before it is acknowledged, and a known batch is acknowledged by the position', async () => {
  const device = await started();
  device.store.fails = new Error('disk full');
  await device.push(batch(0, 2, [1, 2]));
  assert.deepEqual(acked(device), []);
  assert.deepEqual(device.ids, []);
  assert.notEqual(device.socket.closed, null);
  device.store.fails = null;
  await device.reconnect();
  await device.push(batch(0, 2, [1, 2]));
  await device.push(batch(0, 1, [1]));
  assert.deepEqual(acked(device), [2n, 2n]);
  assert.deepEqual(device.ids, ['1', '2']);
});

test('of a batch that begins below the position only the entries above are new', async () => {
  const device = await started();
  await device.push(batch(0, 2, [1, 2]), batch(1, 4, [2, 4]));
  assert.deepEqual(device.ids, ['1', '2', '4']);
  assert.deepEqual(acked(device), [4n]);
});

test('data that an older copy of the store lacks comes again as a replay, and the app is notified once', async () => {
  const device = await started();
  await device.push(batch(0, 3, [1, 2, 3], { againUpto: 2n }), batch(3, 5, [4, 5], { againUpto: 4n }));
  assert.deepEqual(device.ids, ['1', '2', '3', '4', '5']);
  assert.deepEqual(device.got.map(({ replay }) => replay), [true, true, false, true, false]);
  assert.deepEqual(acked(device), [5n]);
  assert.equal(sink(device, 'storeRolledBack').length, 1);
});

test('a gap ends the connection, and the next one reports the positions', async () => {
  const device = await started();
  await device.push(batch(0, 2, [2]), batch(5, 6, [6]));
  assert.deepEqual(device.ids, ['2']);
  assert.deepEqual(acked(device), [2n]);
  assert.equal(device.socket.closed, 1000);
  await device.reconnect();
  assert.deepEqual(device.socket.last('connect').bind.syncPoints, [{ kind: 0, bizType: 'UCHAT', oplogId: 2n }]);
  assert.deepEqual(device.socket.last('connect').syncPoints, []);
});

test('exactly once over restarts: an unconfirmed oplog comes again, a confirmed one never', async () => {
  const first = await started();
  await first.push(batch(0, 3, [1, 2, 3]));
  await confirmAndRecord(first, [first.got[1]]);
  await first.client.stop();
  const second = await started({ store: first.store });
  await settled();
  assert.deepEqual(second.ids, ['1', '3']);
  assert.deepEqual(second.got.map(({ attempt }) => attempt), [2, 2]);
  await second.push(batch(0, 3, [1, 2, 3]));
  assert.deepEqual(second.ids, ['1', '3']);
  assert.equal(second.socket.last('connect').storeId, first.socket.last('connect').storeId);
});

test('oplogs of a Sync ID without a handler wait, without steps of the ladder, and come in order', async () => {
  const device = new Device();
  await device.start({ user: 'u1' });
  await device.push(batch(0, 1, [1]));
  await device.push(batch(1, 3, [2, 3]));
  await device.clock.advance(50_000);
  device.take();
  await settled();
  assert.deepEqual(device.ids, ['1', '2', '3']);
  assert.deepEqual(device.got.map(({ attempt }) => attempt), [1, 1, 1]);
});

test('an oplog that expired while it waited, by the service\'s clock, is not given; a given one repeats', async () => {
  const device = new Device();
  const now = device.clock.wall();
  await device.start({ user: 'u1', serverTimeMs: BigInt(now + 3_600_000) });
  const entries = [entry(1, { validUntilMs: BigInt(now + 60_000) }), entry(2, { validUntilMs: BigInt(now + 7_200_000) }),
    entry(3)];
  await device.push(batch(0, 3, [], { entries }));
  device.take();
  await settled();
  assert.deepEqual(device.ids, ['2', '3']);
});

test('D11: a change of the device\'s clock while it runs ends no validity', async () => {
  const device = new Device();
  const now = device.clock.wall();
  await device.start({ user: 'u1', serverTimeMs: BigInt(now) });
  device.clock.ahead = 86_400_000;
  await device.push(batch(0, 1, [], { entries: [entry(1, { validUntilMs: BigInt(now + 60_000) })] }));
  device.take();
  await settled();
  assert.deepEqual(device.ids, ['1']);
});

test('a handler of ANY gets oplogs without a handler of their own; an iterator is another way to read', async () => {
  const device = await started();
  const other = [];
  device.client.on(ANY, ({ bizType }) => other.push(bizType));
  const iterator = device.client.oplogs('NEWS');
  await device.push(batch(0, 1, [1]), batch(0, 1, [1], { bizType: 'NEWS' }), batch(0, 1, [1], { bizType: 'X' }));
  assert.deepEqual([device.ids, other], [['1'], ['X']]);
  for await (const { payload } of iterator) {
    assert.equal(payload, 'p1');
    break;
  }
});

test('confirmations are repeated with a new number until one of the numbers is recorded', async () => {
  const device = await started();
  await device.push(batch(0, 1, [1]));
  await device.client.confirm(device.got);
  await device.clock.advance(25_000);
  device.socket.say('ping', { number: 1n });
  await device.clock.advance(6_000);
  const reports = device.socket.all('confirmReport');
  assert.equal(reports.length, 2);
  assert.notEqual(reports[0].reportId, reports[1].reportId);
  assert.deepEqual(reports[1].channels, [{ kind: 0, bizType: 'UCHAT', bindNumber: 1, oplogIds: [1n] }]);
  device.socket.say('confirmRecorded', { reportId: 1n });
  await device.client.stop();
  const again = await started({ store: device.store });
  assert.deepEqual(confirmedIds(again.socket), [1n]);
  again.socket.say('confirmRecorded', { reportId: again.socket.last('confirmReport').reportId });
  await settled();
  await again.reconnect();
  assert.deepEqual(confirmedIds(again.socket), []);
});

test('the ladder resends six times in connected time, reports each, and ends', async () => {
  const device = await started({ connected: { firstResendMs: 1_000, heartbeatSeconds: 3_600 } });
  await device.push(batch(0, 1, [1]));
  await device.clock.advance(900);
  await device.reconnect();
  await device.clock.advance(0);
  const alive = async (ms) => {
    for (let at = 0; at < ms; at += 5_000) {
      await device.clock.advance(Math.min(5_000, ms - at));
      device.socket.say('ping', { number: 1n });
      device.socket.say('confirmRecorded', { reportId: device.socket.last('confirmReport')?.reportId ?? 0n });
    }
  };
  await alive(1_000_000);
  assert.deepEqual(device.got.map(({ attempt }) => attempt), [1, 2, 3, 4, 5, 6, 7]);
  const resent = device.socket.all('confirmReport').flatMap((report) => report.resent);
  assert.deepEqual(resent.at(-1), { kind: 0, bizType: 'UCHAT', bindNumber: 1, oplogId: 1n, attempts: 7, dead: true });
  await device.client.stop();
  const again = await started({ store: device.store });
  assert.deepEqual(again.ids, []);
});

test('after 50 hand-outs of any cause an entry is dead', async () => {
  const store = new MemoryStore();
  let last;
  for (let start = 1; start <= 52; start += 1) {
    last = await started({ store });
    if (start === 1) await last.push(batch(0, 1, [1]));
    await settled();
    if (start === 50) assert.deepEqual(last.got.map(({ attempt }) => attempt), [50]);
    if (start < 52) await last.client.stop();
  }
  assert.deepEqual(last.ids, []);
  assert.equal(last.socket.last('confirmReport').resent[0].dead, true);
});

test('a tombstone drops an oplog that the app has not seen, and otherwise notifies the app', async () => {
  const seen = await started();
  await seen.push(batch(0, 1, [1]));
  await seen.push(batch(1, 2, [], { entries: [entry(2, { payload: new Uint8Array(0), recalls: 1n })] }));
  assert.deepEqual(seen.got.map(({ id, recalls }) => [id, recalls]), [['1', null], ['2', '1']]);
  const unseen = new Device();
  await unseen.start({ user: 'u1' });
  await unseen.push(batch(0, 1, [1]));
  await unseen.push(batch(1, 2, [], { entries: [entry(2, { payload: new Uint8Array(0), recalls: 1n })] }));
  unseen.take();
  await settled();
  assert.deepEqual(unseen.ids, []);
  assert.deepEqual(acked(unseen), [1n, 2n]);
  assert.deepEqual(confirmedIds(unseen.socket), [2n]);
});

test('a re-read is stored once, acknowledged each time, and moves no position', async () => {
  const device = await started();
  await device.push(batch(0, 3, [1, 2, 3]));
  await confirmAndRecord(device, [device.got[0]]);
  await device.push(batch(0, 0, [1, 2], { reread: 77n }));
  assert.deepEqual(device.ids, ['1', '2', '3', '2']);
  assert.equal(device.got[3].replay, true);
  await device.reconnect();
  await device.push(batch(0, 0, [1, 2], { reread: 77n }));
  assert.deepEqual(device.ids, ['1', '2', '3', '2']);
  assert.deepEqual(device.socket.last('storedAck').rereads, [77n]);
  assert.deepEqual(device.socket.last('connect').bind.syncPoints[0].oplogId, 3n);
});

test('a re-read above the position does not come again with its batch', async () => {
  const device = await started();
  await device.push(batch(0, 0, [9], { reread: 5n }));
  await device.push(batch(0, 9, [8, 9]));
  assert.deepEqual(device.ids, ['9', '8']);
});

test('each user sees only own data; late frames of a former bind are dropped and not acknowledged', async () => {
  const device = new Device();
  await device.start({ user: 'u1' });
  await device.push(batch(0, 1, [1]));
  device.client.bind('u2', 's2');
  const bind = device.socket.last('bind');
  assert.deepEqual([bind.bindNumber, bind.userId, bind.syncPoints], [2, 'u2', []]);
  device.socket.say('bindResult', { bindNumber: 2, accepted: true });
  device.take();
  await device.push(batch(1, 2, [2]), batch(0, 7, [7], { bindNumber: 2 }));
  assert.deepEqual(device.got.map(({ userId, id }) => [userId, id]), [['u2', '7']]);
  assert.deepEqual(device.socket.last('storedAck').channels.map(({ bindNumber }) => bindNumber), [2]);
  device.client.bind('u1', 's1');
  await settled();
  assert.deepEqual(device.socket.last('bind').syncPoints, [{ kind: 0, bizType: 'UCHAT', oplogId: 1n }]);
  assert.deepEqual(device.got.map(({ userId, id }) => [userId, id]), [['u2', '7'], ['u1', '1']]);
});

test('a result for a former user\'s report is ignored; the report is made again when the user is back', async () => {
  const device = await started();
  await device.push(batch(0, 1, [1]));
  await device.client.confirm(device.got);
  const { reportId } = device.socket.last('confirmReport');
  device.client.unbind();
  device.socket.say('confirmRecorded', { reportId });
  await settled();
  device.client.bind('u1', 's1');
  device.socket.say('bindResult', { bindNumber: 3, accepted: true });
  await settled();
  assert.deepEqual(device.socket.last('confirmReport').channels.map((channel) => channel.bindNumber), [3]);
});

test('a device requests ownership until it is answered, then names the epoch, until its app binds again', async () => {
  const device = new Device();
  await device.start({ user: 'u1' });
  const asked = (body) => {
    const bind = body === 'bind' ? device.socket.last('bind') : device.socket.last('connect').bind;
    return [bind.requestedByApp ?? false, bind.ownershipEpoch ?? 0n];
  };
  assert.deepEqual(asked('connect'), [true, 0n]);
  await device.reconnect();
  assert.deepEqual(asked('connect'), [true, 0n]);
  device.socket.say('ownershipTaken', { bindNumber: 7, ownershipEpoch: 39n });
  device.socket.say('ownershipTaken', { bindNumber: 1, ownershipEpoch: 40n });
  await device.reconnect();
  assert.deepEqual(asked('connect'), [false, 40n]);
  device.client.bind('u1', 's1');
  await settled();
  assert.deepEqual(asked('bind'), [true, 0n]);
});

test('a refused bind is reported; the device\'s own data continues', async () => {
  const device = new Device();
  device.take();
  device.client.bind('u1', 's1');
  await device.client.start();
  device.socket.onopen();
  device.socket.say('connected', { heartbeatSeconds: 60 });
  device.socket.say('bindResult', { bindNumber: 1, accepted: false, reason: 'no' });
  await device.push(batch(0, 1, [1], { kind: 1, bindNumber: 0 }));
  assert.deepEqual(sink(device, 'bindRefused'), [{ userId: 'u1', reason: 'no' }]);
  assert.deepEqual(device.got.map(({ kind, userId }) => [kind, userId]), [['device', null]]);
});

test('close codes: reconnect, later, elsewhere and back, without a user, and away until asked', async () => {
  const device = await started();
  const closed = async (code, values = {}) => {
    device.socket.say('close', { code, ...values });
    await settled();
    return sink(device, 'closed').at(-1).retryInMs;
  };
  assert.ok(await closed(2000, { retryAfterMs: 60_000 }) >= 60_000);
  await device.redial();
  await device.greet();
  await closed(3000, { address: 'other.example:8443' });
  await device.redial();
  assert.equal(device.socket.url, 'wss://other.example:8443/mss/1');
  device.socket.onerror();
  await device.redial();
  assert.equal(device.socket.url, 'wss://gateway.example/mss/1');
  await device.greet();
  await closed(4000, { reason: 'revoked' });
  assert.deepEqual(sink(device, 'sessionInvalid'), [{ reason: 'revoked' }]);
  await device.redial();
  await device.greet();
  assert.equal(device.socket.last('connect').bind, null);
  assert.equal(await closed(5002), null);
  const before = device.sockets.length;
  await device.clock.advance(10_000_000);
  assert.equal(device.sockets.length, before);
  assert.equal(device.client.status, Status.connectFailed);
  await device.client.start();
  await device.greet();
  assert.equal(device.client.status, Status.connected);
});

test('a device closes after 10 s without an answer, while connecting, greeting and after a ping', async () => {
  const device = new Device();
  await device.client.start();
  await device.clock.advance(10_000);
  assert.equal(device.socket.closed, 1000);
  await device.redial();
  device.socket.onopen();
  await device.clock.advance(10_000);
  assert.equal(device.socket.closed, 1000);
  await device.redial();
  await device.greet({ heartbeatSeconds: 5 });
  const { socket } = device;
  await device.clock.advance(5_000);
  assert.deepEqual(device.socket.last('ping').intervalSeconds, 5);
  await device.clock.advance(4_000);
  socket.say('pong', { number: 1n });
  await device.clock.advance(10_000);
  assert.equal(socket.closed, null);
  await device.clock.advance(5_000);
  assert.equal(socket.closed, 1000);
});

test('frames at the wrong time, text messages and broken bytes end the connection; unknown ones do not', async () => {
  const violations = [
    (socket) => socket.onmessage({ data: 'hello' }),
    (socket) => socket.onmessage({ data: Uint8Array.of(0, 0, 0, 1, 7).buffer }),
    (socket) => socket.say('connected', {}),
  ];
  for (const violate of violations) {
    const device = await started();
    device.socket.onmessage({ data: Uint8Array.of(0, 0, 0, 3, 0xa2, 6, 0).buffer });
    device.socket.say('bind', { bindNumber: 1, userId: 'u' });
    device.socket.say('pong', { number: 99n });
    assert.equal(device.socket.closed, null);
    violate(device.socket);
    assert.equal(device.socket.closed, 1000);
  }
  const early = new Device();
  await early.client.start();
  early.socket.onopen();
  early.socket.say('push', { batches: [] });
  assert.equal(early.socket.closed, 1000);
});

test('history and summary: at most four at once, answered in any order, failed with the connection', async () => {
  const device = await started();
  const asked = [1, 2, 3, 4, 5].map((before) => device.client.history('UCHAT', { before, count: 2 }));
  assert.deepEqual(device.socket.all('historyRequest').map(({ before }) => before), [1n, 2n, 3n, 4n]);
  device.socket.say('historyPage', { requestNumber: 2, refusal: 1 });
  await assert.rejects(asked[1], { code: 'notEligible' });
  device.socket.say('historyPage', { requestNumber: 1, bindNumber: 1, entries: [entry(8), entry(7)], more: true,
    next: 7n, head: 9n });
  const page = await asked[0];
  assert.deepEqual([page.oplogs.map(({ id }) => id), page.more, page.next, page.head], [['8', '7'], true, '7', '9']);
  assert.deepEqual(device.ids, []);
  assert.equal(device.socket.all('historyRequest').length, 5);
  const summary = device.client.summary();
  device.socket.onclose();
  for (const promise of [asked[2], asked[3], asked[4], summary]) {
    await assert.rejects(promise, { code: 'notConnected' });
  }
});

test('a summary requests pages until it has all', async () => {
  const device = await started();
  const summary = device.client.summary();
  device.socket.say('summaryPage', { requestNumber: 1, bindNumber: 1, more: true,
    channels: [{ kind: 0, bizType: 'A', head: 9n, syncPoint: 4n, last: entry(9), waiting: 2 }] });
  await settled();
  assert.equal(device.socket.last('summaryRequest').afterBizType, 'A');
  device.socket.say('summaryPage', { requestNumber: 2, bindNumber: 1, channels: [{ kind: 1, bizType: 'B' }] });
  const [first, second] = await summary;
  assert.deepEqual([first.bizType, first.head, first.last.payload, first.waiting], ['A', '9', 'p9', 2]);
  assert.deepEqual([second.kind, second.last], ['device', null]);
});

test('an oplog has its conversation, also when it is handed out again after a restart', async () => {
  const device = await started();
  await device.push(batch(0, 2, [], { entries: [entry(1, { conversation: 'a' }), entry(2)] }));
  assert.deepEqual(device.got.map(({ conversation }) => conversation), ['a', null]);
  await device.client.stop();
  const again = await started({ store: device.store });
  assert.equal(again.got[0].conversation, 'a');
});

test('a history of a conversation names it', async () => {
  const device = await started();
  const asked = device.client.history('UCHAT', { conversation: 'a', before: 9 });
  assert.equal(device.socket.last('historyRequest').conversation, 'a');
  device.socket.say('historyPage', { requestNumber: 1, bindNumber: 1, entries: [entry(8, { conversation: 'a' })] });
  assert.equal((await asked).oplogs[0].conversation, 'a');
  await assert.rejects(device.client.history('UCHAT', { conversation: '' }), RangeError);
});

test('the conversations of a Sync ID are requested page by page, also over an empty page, newest first', async () => {
  const device = await started();
  const asked = device.client.conversations('UCHAT');
  const answer = async (values) => {
    const { requestNumber } = device.socket.last('summaryRequest');
    device.socket.say('summaryPage', { requestNumber, bindNumber: 1, ...values });
    await settled();
    return device.socket.last('summaryRequest');
  };
  const one = (conversation, id, waiting) => (
    { bizType: 'UCHAT', conversation, last: entry(id, { conversation }), waiting });
  let next = device.socket.last('summaryRequest');
  assert.deepEqual([next.conversationsOf, next.afterConversation, next.afterBizType], ['UCHAT', '', '']);
  next = await answer({ channels: [one('a', 3, 1), one('b', 9, 2)], more: true, nextConversation: 'f' });
  assert.deepEqual([next.conversationsOf, next.afterConversation], ['UCHAT', 'f']);
  next = await answer({ more: true, nextConversation: 'p' });
  assert.equal(next.afterConversation, 'p');
  await answer({ channels: [one('q', 5, 0)] });
  assert.equal(device.socket.all('summaryRequest').length, 3);
  assert.deepEqual((await asked).map(({ conversation, last, waiting }) => [conversation, last.payload, waiting]),
    [['b', 'p9', 2], ['q', 'p5', 0], ['a', 'p3', 1]]);
});

test('suspended types are named at once and on every connection, and are not given to the app', async () => {
  const device = await started();
  await device.client.suspend('UCHAT');
  assert.deepEqual(device.socket.last('subscriptions').suspended, ['UCHAT']);
  await device.push(batch(0, 1, [1]));
  assert.deepEqual(device.ids, []);
  await device.client.stop();
  const again = await started({ store: device.store });
  assert.deepEqual(again.socket.last('connect').suspended, ['UCHAT']);
  await again.client.resume('UCHAT');
  await settled();
  assert.deepEqual(again.socket.last('subscriptions').suspended, []);
  assert.deepEqual(again.ids, ['1']);
});

test('unsubscribe drops waiting oplogs', async () => {
  const device = new Device();
  await device.start({ user: 'u1' });
  await device.push(batch(0, 1, [1]));
  await device.client.unsubscribe('UCHAT');
  await device.client.resume('UCHAT');
  device.take();
  await settled();
  assert.deepEqual(device.ids, []);
});

test('recover requests everything again, page by page, also over a restart', async () => {
  const device = await started();
  await device.push(batch(0, 3, [1, 2, 3]));
  await confirmAndRecord(device);
  await device.client.recover('UCHAT');
  await settled();
  const { after, before, oldestFirst } = device.socket.last('historyRequest');
  assert.deepEqual([after, before, oldestFirst], [0n, 4n, true]);
  device.socket.say('historyPage', { requestNumber: 1, bindNumber: 1, entries: [entry(1)], more: true, next: 1n });
  await settled();
  assert.deepEqual(device.got.at(-1).recovered, true);
  await device.client.stop();
  const again = await started({ store: device.store });
  assert.equal(again.socket.last('historyRequest').after, 1n);
  again.socket.say('historyPage', { requestNumber: 1, bindNumber: 1, entries: [entry(2), entry(3)] });
  await settled();
  assert.deepEqual(again.ids, ['1', '2', '3']);
  assert.deepEqual(sink(again, 'recovered'), [{ bizType: 'UCHAT' }]);
});

test('a full inbox stores and acknowledges nothing until there is space', async () => {
  const device = await started({ inboxLimit: 2 });
  await device.push(batch(0, 2, [1, 2]));
  await device.push(batch(2, 3, [3]));
  assert.equal(sink(device, 'storeError').length, 1);
  assert.deepEqual(acked(device), [2n]);
  await device.reconnect();
  await confirmAndRecord(device);
  await device.push(batch(2, 3, [3]));
  assert.deepEqual(device.ids, ['1', '2', '3']);
});

test('sync points that do not fit into one frame are left out', async () => {
  const device = await started();
  const long = (index) => `B${index}${'x'.repeat(90)}`;
  for (let index = 0; index < 900; index += 100) {
    await device.push(...Array.from({ length: 100 }, (_, at) => batch(0, 1, [], { bizType: long(index + at) })));
  }
  await device.reconnect();
  const { syncPoints } = device.socket.last('connect').bind;
  assert.ok(syncPoints.length > 500 && syncPoints.length < 900, `${syncPoints.length}`);
});

test('data on the device is available without a gateway', async () => {
  const device = await started();
  await device.push(batch(0, 3, [1, 2, 3]));
  await confirmAndRecord(device, [device.got[0]]);
  assert.deepEqual((await device.client.stored()).map(({ oplog, confirmed }) => [oplog.id, confirmed]),
    [['3', false], ['2', false], ['1', true]]);
  device.client.unbind();
  assert.deepEqual(await device.client.stored(), []);
});

test('only the tab with the lock connects; the next one takes over', async () => {
  const waiting = [];
  let held = false;
  const locks = {
    async request(name, how, work) {
      if (held && how.ifAvailable) return work(null);
      if (held) await new Promise((resolve) => waiting.push(resolve));
      held = true;
      await work({ name });
      held = false;
      waiting.shift()?.();
    },
  };
  const clock = new ManualClock();
  const store = new MemoryStore();
  const first = new Device({ store, clock, locks });
  const second = new Device({ store, clock, locks });
  await first.start();
  const start = second.client.start();
  await settled();
  assert.deepEqual([sink(second, 'standby').length, second.sockets.length], [1, 0]);
  await first.client.stop();
  await start;
  assert.equal(second.sockets.length, 1);
});

test('Random events: in order per channel, nothing twice, nothing lost', async () => {
  for (const seed of [1, 2, 3]) await randomRun(seed);
});

/** Random numbers from a seed, so that a failing run can be repeated. */
function generator(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

async function randomRun(seed) {
  const random = generator(seed);
  const store = new MemoryStore();
  const confirmed = [];
  let device = await started({ store });
  let head = 0;
  let position = 0;
  const step = [
    () => device.push(batch(position, head += 1 + random(3), [head])).then(() => { position = head; }),
    () => device.push(batch(Math.max(0, position - random(5)), position, [])),
    () => device.reconnect(),
    async () => {
      const open = device.got.filter(({ id }) => !confirmed.includes(id));
      if (open.length === 0) return;
      const oplog = open[random(open.length)];
      confirmed.push(oplog.id);
      await confirmAndRecord(device, oplog);
    },
    async () => {
      await device.client.stop();
      device = await started({ store });
      await settled();
      assert.ok(device.ids.every((id) => !confirmed.includes(id)), `seed ${seed}`);
    },
  ];
  for (let count = 0; count < 200; count += 1) {
    await step[random(20) < 12 ? 0 : random(5)]();
    const ids = device.ids.map(Number);
    assert.deepEqual(ids, [...new Set(ids)].sort((a, b) => a - b), `seed ${seed}`);
    assert.equal(acked(device).at(-1) ?? BigInt(position), BigInt(position), `seed ${seed}`);
  }
}
