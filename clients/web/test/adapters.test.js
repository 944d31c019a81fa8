import assert from 'node:assert/strict';
import { test } from 'node:test';

import { stackOf } from '../src/page/adapters.js';
import { read } from '../sdk/messages.js';
import { World } from '../sdk/world.js';

test('a slider at nothing is no adapter, and a stack has four at most', () => {
  const strengths = /** @type {[string, number][]} */ ([['a', 0], ['b', 1], ['c', -0.5], ['d', 2], ['e', 1], ['f', 1]]);
  assert.deepEqual(stackOf(strengths).map(({ name }) => name), ['b', 'c', 'd', 'e']);
  assert.deepEqual(stackOf([['a', 0]]), []);
});

test('the world knows its stack from what everybody is told', () => {
  const world = new World();
  const message = read('{"type":"adapterschanged","version":2,"stack":[{"name":"snow","scale":0.5}]}');
  assert.ok(message);
  assert.ok(world.take(message, 0));
  assert.deepEqual(world.stack, [{ name: 'snow', scale: 0.5 }]);
});
