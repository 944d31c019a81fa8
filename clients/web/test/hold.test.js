import assert from 'node:assert/strict';
import { test } from 'node:test';

import { BURST_MS, EDGES, HOLD_MS, Hold, RESEND_MS, SMOOTH_MS } from '../sdk/hold.js';

test('a press and its release are two numbered edges', () => {
  const keys = new Hold();
  assert.equal(keys.set('keyboard', 'KeyA', true, 10), 1);
  assert.equal(keys.set('keyboard', 'KeyA', false, 55), 2);
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
  const keys = new Hold();
  keys.set('keyboard', 'KeyA', true, 0);
  assert.equal(keys.set('keyboard', 'KeyA', true, 30), 0);
  assert.equal(keys.set('keyboard', 'KeyD', false, 31), 0);
  assert.equal(keys.message(40).seq, 1);
});

test('the last eight edges are repeated, older ones are gone', () => {
  const keys = new Hold();
  for (let i = 0; i < 6; i += 1) {
    keys.set('keyboard', 'KeyA', true, i);
    keys.set('keyboard', 'KeyA', false, i);
  }
  const { edges } = keys.message(20);
  assert.equal(edges.length, EDGES);
  assert.deepEqual(edges.map((edge) => edge.seq), [5, 6, 7, 8, 9, 10, 11, 12]);
});

test('no more than sixteen keys are held', () => {
  const keys = new Hold();
  for (let i = 0; i < 20; i += 1) keys.set('keyboard', `Digit${i}`, true, 0);
  assert.equal(keys.message(1).held.length, 16);
});

test('losing the keyboard releases all keys, once', () => {
  const keys = new Hold();
  keys.set('keyboard', 'KeyA', true, 0);
  keys.set('keyboard', 'KeyW', true, 5);
  assert.equal(keys.releaseAll(9), true);
  assert.equal(keys.releaseAll(10), false);
  assert.deepEqual(keys.message(11).held, []);
  assert.equal(keys.seq, 4);
});

test('nothing is due before the first change', () => {
  assert.equal(new Hold().due(1000), Infinity);
});

test('a change is due at once, then repeated for a burst, then held keys slowly', () => {
  const keys = new Hold();
  keys.set('keyboard', 'KeyA', true, 1000);
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
  const keys = new Hold();
  keys.set('keyboard', 'KeyA', true, 0);
  keys.message(0);
  keys.set('keyboard', 'KeyA', false, 20);
  assert.equal(keys.due(20), 0);
  keys.message(20);
  keys.message(320);
  assert.equal(keys.due(320), Infinity);
});

test('a new connection counts from one again and presses anew what is still held', () => {
  const keys = new Hold();
  keys.set('keyboard', 'KeyA', true, 0);
  keys.set('touch:3', 'KeyW', true, 1);
  keys.set('touch:3', 'KeyW', false, 2);
  keys.restart(50);
  assert.deepEqual(keys.message(50).edges, [{ seq: 1, key: 'KeyA', down: true }]);
  assert.deepEqual(keys.message(50).held, ['KeyA']);
  assert.equal(keys.set('keyboard', 'KeyA', false, 60), 2);
});

test('each source releases its own: a key is up when the last one lets go', () => {
  const keys = new Hold();
  assert.equal(keys.set('keyboard', 'KeyW', true, 0), 1);
  assert.equal(keys.set('pad:0', 'KeyW', true, 1), 0, 'nothing changed for the world');
  assert.equal(keys.set('pad:0', 'KeyW', false, 2), 0);
  assert.deepEqual([...keys.held], ['KeyW']);
  assert.equal(keys.release('keyboard', 3), true);
  assert.deepEqual([...keys.held], []);
  assert.equal(keys.release('keyboard', 4), false);
});

test('levels of all sources are one level per control, the largest', () => {
  const keys = new Hold();
  assert.equal(keys.setLevel('pad:0', 1, 0.333, 0), true);
  assert.equal(keys.setLevel('pad:0', 1, 0.334, 1), false, 'a stick that trembles says nothing');
  keys.setLevel('pad:1', 1, 0.8, 2);
  assert.deepEqual(keys.message(3).levels, [[1, 0.8]]);
  keys.release('pad:1', 4);
  assert.deepEqual(keys.message(5).levels, [[1, 0.34]]);
  keys.releaseAll(6);
  assert.equal('levels' in keys.message(7), false);
});

test('motion adds up, and messages about it keep their distance', () => {
  const keys = new Hold();
  keys.move(0.25, 0, 100);
  assert.equal(keys.due(100), 0);
  keys.message(100);
  keys.move(0.25, -0.5, 101);
  assert.equal(keys.due(101), SMOOTH_MS - 1);
  assert.deepEqual(keys.message(108).pointer, [0.5, -0.5]);
  keys.move(0, 0, 109);
  assert.equal(keys.seq, 2);
});

test('a key does not wait for the distance of motion', () => {
  const keys = new Hold();
  keys.move(0.1, 0, 100);
  keys.message(100);
  keys.set('keyboard', 'KeyW', true, 101);
  keys.move(0.1, 0, 101);
  assert.equal(keys.due(101), 0);
});
