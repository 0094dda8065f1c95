import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Heartbeat, backOff, closeGroup, compareBatch, ladderStep, storeName } from
  '../../Shared/Client/JavaScript/Web/mss-client.js';

test('a batch is known, new, or shows a gap', () => {
  const table = [[0, 4, 5, 'known'], [0, 5, 5, 'known'], [0, 6, 5, 'new'], [5, 6, 5, 'new'], [6, 7, 5, 'gap']];
  for (const [after, upto, position, verdict] of table) {
    assert.equal(compareBatch({ after: BigInt(after), upto: BigInt(upto) }, BigInt(position)), verdict);
  }
});

test('the ladder waits w, 2w, 4w, 8w, 16w, 32w, and 32w once more', () => {
  [1, 2, 4, 8, 16, 32].forEach((factor, repeats) => {
    const entry = { repeats, handOuts: repeats + 1 };
    assert.equal(ladderStep(entry, factor * 10_000 - 1, 10_000), 'wait');
    assert.equal(ladderStep(entry, factor * 10_000, 10_000), 'repeat');
  });
  assert.equal(ladderStep({ repeats: 6, handOuts: 7 }, 319_999, 10_000), 'wait');
  assert.equal(ladderStep({ repeats: 6, handOuts: 7 }, 320_000, 10_000), 'dead');
  assert.equal(ladderStep({ repeats: 1, handOuts: 50 }, 20_000, 10_000), 'dead');
});

test('back-off has full jitter, a floor, a ceiling, and the gateway\'s request on top', () => {
  assert.equal(backOff(0, 0, 0, () => 0), 50);
  assert.equal(backOff(0, 0, 0, () => 1), 1_000);
  assert.equal(backOff(3, 3_000, 0, () => 0.5), 4_000);
  assert.equal(backOff(40, 120_000, 0, () => 1), 16_000);
  assert.equal(backOff(40, 800_000, 0, () => 1), 100_000);
  assert.equal(backOff(2, 800_000, 0, () => 1), 4_000);
  assert.equal(backOff(40, 1e9, 0, () => 1), 300_000);
  assert.equal(backOff(0, 0, 7_000, () => 1), 8_000);
  assert.equal(backOff(0, 0, 9_000_000, () => 1), 3_600_000);
});

test('the thousands of a close code select the action', () => {
  const table = { 1001: 'again', 1999: 'again', 2000: 'later', 3007: 'elsewhere', 4000: 'withoutUser', 5002: 'stayAway',
    5999: 'stayAway', 0: 'later', 999: 'later', 6000: 'later' };
  for (const [code, group] of Object.entries(table)) assert.equal(closeGroup(Number(code)), group, code);
});

test('the interval grows while pings are answered, up to its bound, and shrinks after a dead connection', () => {
  const heartbeat = new Heartbeat();
  heartbeat.begin({ heartbeatSeconds: 60, maxHeartbeatSeconds: 100 });
  assert.equal(heartbeat.seconds, 60);
  for (let pong = 0; pong < 3; pong += 1) heartbeat.answered();
  assert.equal(heartbeat.seconds, 75);
  for (let pong = 0; pong < 30; pong += 1) heartbeat.answered();
  assert.equal(heartbeat.seconds, 100);
  heartbeat.foundDead();
  heartbeat.begin({ heartbeatSeconds: 60, maxHeartbeatSeconds: 100 });
  assert.equal(heartbeat.seconds, 50);
});

test('SEC10: devices whose ids are the same text when joined have separate stores', () => {
  const ids = ['a', 'b', 'c', 'a:b', 'b:c', ':', '","', '["a"', 'a"', '\\'];
  const names = ids.flatMap((instance) => ids.map((device) => storeName(instance, device)));
  assert.equal(new Set(names).size, ids.length ** 2);
});
