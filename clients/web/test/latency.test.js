import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Latency, PARTS, percentile, rtpSince } from '../sdk/latency.js';

const receipt = (/** @type {object} */ fields) => ({
  type: /** @type {const} */ ('receipt'),
  frame: 7, chunk: 7, epoch: 0, rtp: 90000, prompt_version: 0, input_seq: 0, applied: [0, 1],
  hold_us: 4000, wait_us: 1000, step_us: 9000, decode_us: 2000, encode_us: 1500, pace_us: 500,
  ...fields,
});

test('press, receipt and shown frame make one sample with its parts', () => {
  const latency = new Latency();
  latency.pressed(3, 1000);
  assert.equal(latency.receipt(receipt({ input_seq: 3 })), null);
  const joined = latency.shown(90000, 1040, 1030);
  assert.deepEqual(joined?.samples, [{ seq: 3, ms: 40, parts: [4, 1, 9, 2, 1.5, 0.5, 12, 10] }]);
  assert.deepEqual(PARTS, ['hold', 'wait', 'step', 'decode', 'encode', 'pace', 'network', 'display']);
});

test('the frame may be shown before its receipt arrives', () => {
  const latency = new Latency();
  latency.pressed(3, 1000);
  assert.equal(latency.shown(90000, 1040, undefined), null);
  const joined = latency.receipt(receipt({ input_seq: 3 }));
  assert.equal(joined?.shown_ms, 1040);
  assert.deepEqual(joined?.samples[0]?.parts.slice(6), [22, 0]);
});

test('a press is answered by the first frame that contains it, not by later ones', () => {
  const latency = new Latency();
  latency.pressed(1, 1000);
  latency.receipt(receipt({ rtp: 1, input_seq: 0 }));
  latency.receipt(receipt({ rtp: 3751, input_seq: 1 }));
  latency.receipt(receipt({ rtp: 7501, input_seq: 1 }));
  assert.deepEqual(latency.shown(1, 1010)?.samples, []);
  assert.equal(latency.shown(3751, 1052)?.samples[0]?.ms, 52);
  assert.deepEqual(latency.shown(7501, 1094)?.samples, []);
});

test('two presses in one chunk: the older one was held longer', () => {
  const latency = new Latency();
  latency.pressed(1, 1000);
  latency.pressed(2, 1015);
  latency.receipt(receipt({ input_seq: 2 }));
  const samples = latency.shown(90000, 1055)?.samples ?? [];
  assert.deepEqual(samples.map(({ ms, parts }) => [ms, parts[0]]), [[55, 19], [40, 4]]);
});

test('a lost receipt costs one frame, not the sample', () => {
  const latency = new Latency();
  latency.pressed(1, 1000);
  assert.equal(latency.shown(3750, 1030), null);
  latency.receipt(receipt({ rtp: 7500, input_seq: 1 }));
  assert.equal(latency.shown(7500, 1072)?.samples[0]?.ms, 72);
});

test('timestamps join across the 32-bit wrap-around and within rounding', () => {
  const latency = new Latency();
  latency.receipt(receipt({ rtp: 2 ** 32 - 1, frame: 1 }));
  latency.receipt(receipt({ rtp: 3749, frame: 2 }));
  assert.equal(latency.shown(0, 1000)?.receipt.frame, 1);
  assert.equal(latency.shown(3750, 1042)?.receipt.frame, 2);
  assert.equal(latency.shown(3755, 1043), null);
  assert.equal(rtpSince(3749, 2 ** 32 - 1), 3750);
  assert.equal(rtpSince(2 ** 32 - 1, 3749), -3750);
});

test('server parts longer than the whole never make a negative network', () => {
  const latency = new Latency();
  latency.pressed(1, 1000);
  latency.receipt(receipt({ input_seq: 1, hold_us: 60000 }));
  assert.deepEqual(latency.shown(90000, 1040, 1039)?.samples[0]?.parts.slice(6), [0, 0]);
});

test('what is never joined is bounded', () => {
  const latency = new Latency();
  for (let i = 0; i < 1000; i += 1) {
    latency.receipt(receipt({ rtp: i * 3750 }));
    latency.shown(i * 3750 + 1000, i);
    latency.pressed(i + 1, i);
  }
  assert.deepEqual([latency.receipts.size, latency.seen.size, latency.presses.size], [256, 256, 256]);
});

test('median and p95 run over the window only', () => {
  const latency = new Latency(20);
  for (let i = 1; i <= 40; i += 1) {
    latency.pressed(i, i * 1000);
    latency.receipt(receipt({ rtp: i * 3750, input_seq: i }));
    latency.shown(i * 3750, i * 1000 + i);
  }
  const { n, median, p95 } = latency.summary();
  assert.deepEqual([n, median, p95], [20, 30, 39]);
});

test('a pause is no latency: presses before it are forgotten', () => {
  const latency = new Latency();
  latency.pressed(1, 1000);
  latency.forgetPresses();
  latency.receipt(receipt({ input_seq: 1 }));
  assert.deepEqual(latency.shown(90000, 9000)?.samples, []);
});

test('percentiles are nearest ranks', () => {
  assert.equal(percentile([4, 1, 3, 2], 50), 2);
  assert.equal(percentile([4, 1, 3, 2], 95), 4);
  assert.equal(Number.isNaN(percentile([], 50)), true);
});
