import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { FrameDecoder, FrameError, decodeMessage, encodeFrame, encodeMessage, signConnect, signedText }
  from '../../Shared/Client/JavaScript/Web/mss-client.js';

const bytesOf = (text) => Uint8Array.from(text.match(/[0-9a-f]{2}/g) ?? [], (pair) => Number.parseInt(pair, 16));
const decodeOne = (bytes) => new FrameDecoder().push(bytes)[0];

/** The examples of the protocol's text: the left column of each code block below its heading. */
function examples() {
  const text = readFileSync(new URL('../../Shared/Device/DeviceProtocol/DeviceProtocol.md', import.meta.url), 'utf8');
  const blocks = text.split('## Examples')[1].match(/```\n[\s\S]*?```/g);
  return blocks.map((block) => bytesOf(block.split('\n').slice(1, -1).map((line) => line.slice(0, 31)).join(' ')));
}

const created = 1_700_000_000_000n;
const hello = { oplogId: 9n, payload: new TextEncoder().encode('hello'), thirdMessageId: 'm1', createdAtMs: created };
const points = [{ bizType: 'UCHAT', oplogId: 4n }];
const connect = {
  protocolVersion: 1, instanceId: 'demo_app', deviceId: 'd1', storeId: 's1', osName: 'iOS', appVersion: '2.0',
  bind: { bindNumber: 1, userId: 'u1', sessionId: 'x', syncPoints: points },
};
const counted = (first, count) => Uint8Array.from({ length: count }, (_, index) => first + index);
const signed = await signConnect({ ...connect, deviceSecret: counted(0x20, 32) },
  { id: 'k1', secret: Buffer.from(counted(0, 32)).toString('base64') }, Number(created), counted(0, 16));
const samples = [
  ['connect', connect],
  ['connected', {
    connectionId: '17', heartbeatSeconds: 60, maxFrameBytes: 65_536, serverTimeMs: created, firstResendMs: 10_000,
    maxHeartbeatSeconds: 300,
  }],
  ['ping', { number: 7n }],
  ['push', { batches: [{ bizType: 'UCHAT', bindNumber: 1, after: 4n, upto: 9n, entries: [hello] }] }],
  ['storedAck', { channels: [{ bizType: 'UCHAT', bindNumber: 1, upto: 9n }] }],
  ['confirmReport', { reportId: 1n, channels: [{ bizType: 'UCHAT', bindNumber: 1, oplogIds: [9n, 300n] }] }],
  ['historyRequest', { requestNumber: 1, bizType: 'UCHAT', bindNumber: 1, before: 9n, count: 20 }],
  ['summaryRequest', { requestNumber: 1, bindNumber: 1, count: 16, conversationsOf: 'UCHAT' }],
  ['connect', signed],
  // Browsers have no operations and parameters: those fields have no names here, and are skipped.
  [null], [null], [null],
];

test('the examples of the text are encoded and decoded byte by byte', () => {
  const golden = examples();
  assert.equal(golden.length, samples.length);
  samples.forEach(([name, values], index) => {
    const [body, decoded] = decodeOne(golden[index]);
    assert.equal(body, name);
    if (name === null) return;
    assert.deepEqual(encodeFrame(name, values), golden[index], name);
    assert.deepEqual(encodeFrame(body, decoded), golden[index], `${name} decoded and encoded again`);
  });
  const [, { batches: [{ entries: [entry], ...batch }] }] = decodeOne(golden[3]);
  assert.deepEqual([batch.kind, batch.after, batch.upto, batch.reread], [0, 4n, 9n, 0n]);
  assert.deepEqual([entry.oplogId, new TextDecoder().decode(entry.payload), entry.binary], [9n, 'hello', false]);
  assert.equal(entry.createdAtMs, created);
});

test('SEC9: the signed bytes are those of the text, byte by byte', () => {
  const text = readFileSync(new URL('../../Shared/Device/DeviceProtocol/DeviceProtocol.md', import.meta.url), 'utf8');
  const rows = text.split('| Parts | Bytes |')[1].split('\n\n')[0].split('\n').slice(2);
  const written = rows.map((row) => row.split('|')[2].replaceAll(/[^0-9a-f]/g, '')).join('');
  assert.equal(Buffer.from(signedText(signed)).toString('hex'), written);
});

test('SEC9: every field of a Connect is signed', () => {
  const changes = { protocolVersion: 2, instanceId: 'x', deviceId: 'x', storeId: 'x', osName: 'x', osVersion: 'x',
    appVersion: 'x', sdkVersion: 'x', background: true, syncPoints: points, bind: null, simple: true,
    suspended: ['x'], deviceSecret: counted(0, 32) };
  const texts = new Set([signed, ...Object.entries(changes).map(([name, value]) => ({ ...signed, [name]: value })),
    ...Object.entries({ bindNumber: 2, userId: 'x', sessionId: 'y', syncPoints: [] })
      .map(([name, value]) => ({ ...signed, bind: { ...signed.bind, [name]: value } })),
    ...Object.entries({ keyId: 'x', timestampMs: 1n, nonce: counted(1, 16) })
      .map(([name, value]) => ({ ...signed, signature: { ...signed.signature, [name]: value } })),
  ].map((values) => Buffer.from(signedText(values)).toString('hex')));
  assert.equal(texts.size, 1 + 14 + 4 + 3);
});

test('every split of the stream gives the same packets', () => {
  const stream = Uint8Array.from(examples().concat([bytesOf('00000000')], examples()).flatMap((part) => [...part]));
  const whole = new FrameDecoder().push(stream);
  assert.equal(whole.length, 2 * samples.length);
  for (let cut = 0; cut <= stream.length; cut += 1) {
    const decoder = new FrameDecoder();
    assert.deepEqual([...decoder.push(stream.subarray(0, cut)), ...decoder.push(stream.subarray(cut))], whole);
  }
  const decoder = new FrameDecoder();
  assert.deepEqual([...stream].flatMap((byte) => decoder.push(Uint8Array.of(byte))), whole);
});

test('integers are exact up to their last bit', () => {
  for (const id of [1n, 127n, 128n, 2n ** 31n, 2n ** 32n, 2n ** 53n - 1n, 2n ** 53n + 1n, 2n ** 63n - 1n]) {
    const back = decodeMessage('SyncPoint', encodeMessage('SyncPoint', { oplogId: id }));
    assert.equal(back.oplogId, id);
  }
  assert.equal(decodeMessage('Ping', encodeMessage('Ping', { number: 2n ** 64n - 1n })).number, 2n ** 64n - 1n);
  assert.equal(decodeMessage('Close', encodeMessage('Close', { code: 2 ** 32 - 1 })).code, 2 ** 32 - 1);
  assert.throws(() => decodeMessage('SyncPoint', encodeMessage('SyncPoint', { oplogId: -1n })), FrameError);
});

test('repeated integers are sent packed, and accepted unpacked too', () => {
  const packed = encodeMessage('StoredAck', { rereads: [1n, 300n] });
  assert.deepEqual(packed, bytesOf('12 03 01 ac 02'));
  assert.deepEqual(decodeMessage('StoredAck', packed).rereads, [1n, 300n]);
  assert.deepEqual(decodeMessage('StoredAck', bytesOf('10 01 10 ac 02')).rereads, [1n, 300n]);
});

test('the fields of conversations have their numbers', () => {
  assert.deepEqual(encodeMessage('Entry', { conversation: 'c' }), bytesOf('4a 01 63'));
  assert.deepEqual(encodeMessage('HistoryRequest', { conversation: 'c' }), bytesOf('42 01 63'));
  assert.deepEqual(encodeMessage('SummaryRequest', { conversationsOf: 'UCHAT', afterConversation: 'c' }),
    bytesOf('2a 05 5543484154 32 01 63'));
  const page = decodeMessage('SummaryPage', bytesOf('22 03 3a 01 63 28 01 32 01 64'));
  assert.deepEqual([page.channels[0].conversation, page.nextConversation], ['c', 'd']);
});

test('absent fields are not sent, the last of a field counts, and unknown fields are ignored', () => {
  assert.equal(encodeMessage('Foreground', { foreground: false }).length, 0);
  assert.deepEqual(decodeMessage('Foreground', new Uint8Array(0)), { foreground: false });
  assert.equal(decodeMessage('Ping', bytesOf('08 01 08 02')).number, 2n);
  const unknown = bytesOf('98 06 01 a2 06 01 ff a9 06 0102030405060708 ad 06 01020304 08 07');
  assert.equal(decodeMessage('Ping', unknown).number, 7n);
  assert.deepEqual(decodeOne(bytesOf('00 00 00 03 a2 06 00')), [null, null]);
});

test('an empty body is a body', () => {
  assert.deepEqual(decodeOne(encodeFrame('caughtUp', {})), ['caughtUp', { bindNumber: 0 }]);
});

test('invalid bytes end the stream', () => {
  const broken = {
    'a frame over 1 MiB': '00 10 00 01',
    'a field longer than its message': '00 00 00 02 62 05',
    'a varint that is cut off': '00 00 00 03 62 01 88',
    'a varint without end': '00 00 00 0d 62 0b 08 ff ff ff ff ff ff ff ff ff ff',
    'a group': '00 00 00 01 63',
    'text that is not UTF-8': '00 00 00 06 72 04 12 02 c3 28',
  };
  for (const [name, bytes] of Object.entries(broken)) {
    assert.throws(() => new FrameDecoder().push(bytesOf(bytes)), FrameError, name);
  }
});
