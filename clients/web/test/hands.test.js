import assert from 'node:assert/strict';
import { test } from 'node:test';

import { capsAt, groups, layout } from '../src/hands/layout.js';
import { pressedBy, readPad, restOf, wiring } from '../src/hands/pad.js';

const control = (/** @type {string} */ name, /** @type {string[]} */ ...keys) => ({ name, keys });
const DRIVE = [
  control('left', 'ArrowLeft', 'KeyA'), control('right', 'ArrowRight', 'KeyD'), control('gas', 'ArrowUp', 'KeyW'),
  control('brake', 'ArrowDown', 'KeyS'),
];
const WALK = [
  control('forward', 'KeyW', 'ArrowUp'), control('back', 'KeyS', 'ArrowDown'), control('left', 'KeyA', 'ArrowLeft'),
  control('right', 'KeyD', 'ArrowRight'), control('use', 'KeyE'), control('jump', 'Space'), control('sprint', 'ShiftLeft'),
];
const LOOK = [
  control('forward', 'KeyW'), control('back', 'KeyS'), control('left', 'KeyA'), control('right', 'KeyD'),
  control('look up', 'KeyI', 'ArrowUp'), control('look down', 'KeyK', 'ArrowDown'),
  control('look left', 'KeyJ', 'ArrowLeft'), control('look right', 'KeyL', 'ArrowRight'),
];
const parts = (/** @type {number[]} */ axes, /** @type {Record<number, number>} */ pressed = {}) => ({
  axes, buttons: Array.from({ length: 17 }, (_, i) => ({ value: pressed[i] ?? 0, pressed: false, touched: false })),
});
const indices = (/** @type {{ index: number }[]} */ slots) => slots.map(({ index }) => index);

test('directions alone are a cross whose halves fit two thumbs', () => {
  const { cross, left, right } = layout(DRIVE);
  assert.deepEqual([cross, indices(left), indices(right)], [true, [0, 1], [2, 3]]);
});

test('directions and more: the cross left, the rest right', () => {
  const { cross, left, right } = layout(WALK);
  assert.deepEqual([cross, indices(left).sort(), indices(right)], [false, [0, 1, 2, 3], [4, 5, 6]]);
});

test('moving and looking are two crosses', () => {
  const { move, look, rest } = groups(LOOK);
  assert.deepEqual([move.length, look.length, rest.length], [4, 4, 0]);
  assert.deepEqual(look.map(({ direction }) => direction), ['up', 'down', 'left', 'right']);
});

test('sixteen controls without directions are split in half', () => {
  const many = Array.from({ length: 16 }, (_, i) => control(`c${i}`, `Digit${i}`));
  const { left, right } = layout(many);
  assert.deepEqual([left.length, right.length], [8, 8]);
});

test('case 55: between two caps a finger means both', () => {
  const boxes = [{ left: 0, top: 0, right: 50, bottom: 50 }, { left: 56, top: 0, right: 106, bottom: 50 }];
  assert.deepEqual(capsAt(boxes, 25, 25, 7), [0]);
  assert.deepEqual(capsAt(boxes, 53, 25, 7), [0, 1]);
  assert.deepEqual(capsAt(boxes, 80, 90, 7), []);
});

test('case 48: nothing is steered until a part leaves its rest', () => {
  const wheel = parts([0, -1, 1], { 7: 0.5 });
  const rest = restOf(wheel);
  assert.deepEqual(readPad(wheel, rest).axes, [0, 0, 0]);
  assert.equal(readPad(wheel, rest).buttons[7], 0);
  assert.equal(readPad(parts([0.05, -1, 1], { 7: 0.5 }), rest).axes[0], 0, 'a stick that trembles');
  const pushed = readPad(parts([1, 1, 1], { 7: 1 }), rest);
  assert.equal(pushed.axes[0], 1);
  assert.equal(pushed.axes[1], 1, 'a pedal that rests at -1');
  assert.equal(pushed.buttons[7], 1);
});

test('the stick goes part of the way', () => {
  const rest = restOf(parts([0, 0, 0, 0]));
  const [left, right] = wiring(DRIVE).map((wire) => pressedBy(wire, readPad(parts([0.575, 0, 0, 0]), rest)));
  assert.deepEqual([left, right?.toFixed(2)], [0, '0.50']);
});

test('triggers, cross and buttons drive a car; its stick steers alone', () => {
  const rest = restOf(parts([0, 0, 0, 0]));
  const [, , gas, brake] = wiring(DRIVE);
  const at = (/** @type {Record<number, number>} */ pressed, axes = [0, 0, 0, 0]) => readPad(parts(axes, pressed), rest);
  assert.equal(pressedBy(/** @type {any} */ (gas), at({ 7: 1 })), 1);
  assert.equal(pressedBy(/** @type {any} */ (gas), at({ 0: 1 })), 1);
  assert.equal(pressedBy(/** @type {any} */ (gas), at({ 12: 1 })), 1);
  assert.equal(pressedBy(/** @type {any} */ (brake), at({ 6: 1 })), 1);
  assert.equal(pressedBy(/** @type {any} */ (gas), at({}, [0, -1, 0, 0])), 0);
});

test('jumping is A, the other controls the next buttons; the right stick looks', () => {
  const wires = wiring(WALK);
  assert.deepEqual(wires.slice(4).map(({ buttons }) => buttons), [[2], [0], [1]]);
  assert.deepEqual(wires[0], { axis: 1, sign: -1, buttons: [12] });
  assert.deepEqual(wiring(LOOK).slice(4).map(({ axis, sign }) => [axis, sign]), [[3, -1], [3, 1], [2, -1], [2, 1]]);
});
