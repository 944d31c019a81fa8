import assert from 'node:assert/strict';
import { test } from 'node:test';

import { delay_s } from '../src/sdk/backoff.js';
import { padParts } from '../src/hands/pad.js';
import { covering, objection } from '../src/page/firstframe.js';
import { read } from '../src/sdk/messages.js';
import { words } from '../src/page/notice.js';
import { figures, readStats } from '../src/sdk/stats.js';

test('waits grow from a third of a second to eight, spread over their upper half', () => {
  assert.equal(delay_s(0, 1), 0.3);
  assert.equal(delay_s(0, 0), 0.15);
  assert.equal(delay_s(3, 1), 2.4);
  assert.equal(delay_s(30, 1), 8);
});

test("the server's wish is honoured", () => {
  assert.equal(delay_s(0, 0, 5), 5);
  assert.equal(delay_s(9, 0.5, 5), 5.25);
});

test('text that is no message of the server is nothing', () => {
  assert.equal(read('{"type":"pong","id":1,"sent_ms":2}')?.type, 'pong');
  for (const bad of ['', '{', 'null', '[]', '{"type":"novel"}', 7, new ArrayBuffer(2)]) assert.equal(read(bad), null);
});

test('stats survive absent fields', () => {
  const before = readStats(new Map([['v', { type: 'inbound-rtp', kind: 'video', framesDecoded: 100 }]]), 1000);
  const after = readStats(new Map([['v', { type: 'inbound-rtp', kind: 'video', framesDecoded: 124 }]]), 2000);
  assert.deepEqual(figures(before, after), { fps: 24, kbps: undefined, buffer_ms: undefined, rtt_ms: undefined });
  assert.equal(figures(readStats(new Map(), 0), readStats(new Map(), 1000)).fps, undefined);
});

test('stats are differences of two readings', () => {
  const entry = (/** @type {number} */ n) => ({
    type: 'inbound-rtp', kind: 'video', framesDecoded: 24 * n, bytesReceived: 250000 * n,
    jitterBufferDelay: 0.0096 * n, jitterBufferEmittedCount: 24 * n,
  });
  const { kbps, buffer_ms } = figures(readStats([['v', entry(1)]], 1000), readStats([['v', entry(2)]], 2000));
  assert.equal(kbps, 2000);
  assert.equal(buffer_ms?.toFixed(3), '0.400');
});

test('a picture covers the world and what stands over is cut off evenly', () => {
  assert.deepEqual(covering({ width: 400, height: 100 }, { width: 64, height: 48 }).map(Math.round), [133, 0, 133, 100]);
  assert.deepEqual(covering({ width: 48, height: 96 }, { width: 64, height: 48 }), [0, 30, 48, 36]);
  assert.equal(objection({ type: 'image/jpeg', size: 50e6 }), null);
  assert.equal(objection({ type: 'video/mp4', size: 1e6 }), null);
  assert.match(objection({ type: 'video/webm', size: 40e6 }) ?? '', /larger than 32 MB/);
  assert.match(objection({ type: 'text/html', size: 1 }) ?? '', /PNG, JPEG or WebP/);
});

test('every state of the connection has words', () => {
  assert.equal(words({ phase: 'live' }, 'running', true, 0), null);
  const full = (/** @type {number} */ queue_place) => words({ phase: 'full', code: 'no_slot', until_ms: 0, queue_place, detail: '' }, 'opening', false, 7);
  assert.equal(full(0)?.text, 'All it can carry is taken. Trying again in 7 s.');
  assert.equal(full(2)?.text, 'You are number 2 in line. The room opens by itself when it is your turn.');
  const lost = (/** @type {number} */ failures) => words({ phase: 'lost', until_ms: 0, detail: '', failures, stopped: false }, 'running', true, 3);
  assert.equal(lost(0)?.title, 'Reconnecting');
  assert.equal(lost(5)?.title, 'The server does not answer');
  const stopped = words({ phase: 'lost', until_ms: 0, detail: '', failures: 1, stopped: true }, 'running', true, 3);
  assert.deepEqual([stopped?.title, stopped?.text], ['The server has stopped', 'It may be starting again. Trying again in 3 s.']);
  assert.equal(words({ phase: 'elsewhere' }, 'running', true, 0)?.act, 'Take it back');
});

test('a gamepad steers with stick, cross, triggers and buttons', () => {
  const buttons = Array.from({ length: 17 }, () => ({ value: 0, pressed: false, touched: false }));
  const pad = { axes: [0.8, 0], buttons };
  assert.deepEqual(padParts(pad), new Set(['right']));
  buttons[7] = { value: 0.9, pressed: true, touched: true };
  assert.deepEqual(padParts(pad), new Set(['right', 'up']));
  assert.deepEqual(padParts({ axes: [], buttons: [] }), new Set());
});
