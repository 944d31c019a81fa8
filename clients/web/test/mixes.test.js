import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ChunkClock } from '../src/page/chunks.js';
import { waits } from '../src/page/planned.js';
import { joined, mixed, spread, turned, without } from '../src/page/shares.js';

const sum = (/** @type {number[]} */ shares) => shares.reduce((total, share) => total + share, 0);

test('shares stay whole percent that sum to a hundred, whichever is turned how far', () => {
  for (let seed = 1, shares = [100]; seed < 2000; seed += 1) {
    const dice = (seed * 7919) % 1009;
    const index = dice % shares.length;
    if (dice % 10 === 0 && shares.length < 4) shares = joined(shares);
    else if (dice % 10 === 1 && shares.length > 1) shares = without(shares, index);
    else shares = turned(shares, index, (dice % 140) - 20);
    assert.equal(sum(shares), 100, shares.join());
    assert.ok(shares.every((share) => Number.isInteger(share) && share >= 1), shares.join());
  }
});

test('the shares that are not turned keep their proportions', () => {
  assert.deepEqual(turned([50, 30, 20], 0, 75), [75, 15, 10]);
  assert.deepEqual(turned([40, 60], 1, 70), [30, 70]);
  assert.deepEqual(turned([98, 1, 1], 0, 40), [40, 30, 30]);
  assert.deepEqual(turned([50, 50], 0, 120), [99, 1]);
  assert.deepEqual(joined([100]), [50, 50]);
  assert.deepEqual(joined([50, 50]), [34, 33, 33]);
  assert.deepEqual(without([50, 25, 25], 0), [50, 50]);
  assert.deepEqual(spread([67, 33]), [67, 33]);
});

test('a mix is said with its shares, a text alone as itself', () => {
  assert.equal(mixed({ text: 'night' }), 'night');
  assert.equal(mixed({ text: 'night', weight: 3, others: [{ text: 'snow' }] }), '75 % night + 25 % snow');
});

test('seconds become chunks by the frames that the last chunks had', () => {
  const clock = new ChunkClock();
  clock.fps = 24;
  assert.equal(clock.frames, 1);
  for (let frame = 2; frame < 62; frame += 1) clock.seen({ chunk: 10 + Math.floor(frame / 12), frame });
  assert.deepEqual([clock.now, clock.frames], [15, 12]);
  assert.equal(clock.chunkIn(5), 25);
  assert.equal(clock.chunkIn(0), 16, 'never one that is on the screen');
  assert.equal(clock.secondsTo(25), 5);
  assert.equal(waits({ text: 'night', at: 25 }, clock), 'at chunk 25, in 5 s: night');
  clock.seen({ chunk: 3, frame: 70 });
  assert.deepEqual([clock.now, clock.frames], [3, 1], 'a rewound world counts anew');
});
