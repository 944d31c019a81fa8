import assert from 'node:assert/strict';
import { test } from 'node:test';

import { BURST_MS, EDGES, HOLD_MS, Keys, RESEND_MS } from '../src/sdk/hold.js';

test('a press and its release are two numbered edges', () => {
  const keys = new Keys();
  assert.equal(keys.set('KeyA', true, 10), 1);
  assert.equal(keys.set('KeyA', false, 55), 2);
  assert.deepEqual(keys.message(56), {
    type: 'input',
    seq: 2,
    held: [],
    edges: [{ seq: 1, key: 'KeyA', down: true }, { seq: 2, key: 'KeyA', down: false }],
    pointer: [0, 0],
    sent_ms: 56,
  });
});

test('key repeat and a stray release change nothing', () => {
  const keys = new Keys();
  keys.set('KeyA', true, 0);
  assert.equal(keys.set('KeyA', true, 30), 0);
  assert.equal(keys.set('KeyD', false, 31), 0);
  assert.equal(keys.message(40).seq, 1);
});

test('the last eight edges are repeated, older ones are gone', () => {
  const keys = new Keys();
  for (let i = 0; i < 6; i += 1) {
    keys.set('KeyA', true, i);
    keys.set('KeyA', false, i);
  }
  const { edges } = keys.message(20);
  assert.equal(edges.length, EDGES);
  assert.deepEqual(edges.map((edge) => edge.seq), [5, 6, 7, 8, 9, 10, 11, 12]);
});

test('no more than sixteen keys are held', () => {
  const keys = new Keys();
  for (let i = 0; i < 20; i += 1) keys.set(`Digit${i}`, true, 0);
  assert.equal(keys.message(1).held.length, 16);
});

test('losing the keyboard releases all keys, once', () => {
  const keys = new Keys();
  keys.set('KeyA', true, 0);
  keys.set('KeyW', true, 5);
  assert.equal(keys.releaseAll(9), true);
  assert.equal(keys.releaseAll(10), false);
  assert.deepEqual(keys.message(11).held, []);
  assert.equal(keys.seq, 4);
});

test('nothing is due before the first change', () => {
  assert.equal(new Keys().due(1000), Infinity);
});

test('a change is due at once, then repeated for a burst, then held keys slowly', () => {
  const keys = new Keys();
  keys.set('KeyA', true, 1000);
  const sent = [];
  for (let now = 1000; now < 3000; ) {
    const wait = keys.due(now);
    if (wait === 0) {
      keys.message(now);
      sent.push(now - 1000);
    } else {
      now += wait;
    }
  }
  assert.deepEqual(sent.slice(0, 8), [0, 40, 80, 120, 160, 200, 240, 280]);
  assert.deepEqual(sent.slice(8), [780, 1280, 1780]);
  assert.equal(RESEND_MS * 7 <= BURST_MS, true);
  assert.equal(HOLD_MS, 500);
});

test('a tap is said for a burst and then nothing is due', () => {
  const keys = new Keys();
  keys.set('KeyA', true, 0);
  keys.message(0);
  keys.set('KeyA', false, 20);
  assert.equal(keys.due(20), 0);
  keys.message(20);
  keys.message(320);
  assert.equal(keys.due(320), Infinity);
});

test('a new connection counts from one again and holds nothing', () => {
  const keys = new Keys();
  keys.set('KeyA', true, 0);
  keys.restart();
  assert.deepEqual(keys.message(50).edges, []);
  assert.equal(keys.set('KeyA', true, 60), 1);
});
