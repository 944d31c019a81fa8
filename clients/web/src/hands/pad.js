/**
 * Gamepads as sources: sticks and triggers with their way, buttons for the rest. Browsers have no events for buttons,
 * so pads are read once per display frame while one is plugged in and the page has the focus.
 *
 * A part speaks only after it left its rest: a wheel's pedal rests at -1 or 1, a worn stick beside 0.
 * `readPad` and `wiring` are pure.
 */

import { groups } from './layout.js';

/** @typedef {import('../../sdk/messages.js').ControlView} ControlView */
/** @typedef {Pick<Gamepad, 'axes' | 'buttons'>} PadParts */
/** What was read when a pad was first seen, and which parts have moved since. @typedef {{ axes: number[], buttons: number[], awake: Set<string> }} Rest */
/** Values after rest and dead zone: axes -1..1, buttons 0..1. @typedef {{ axes: number[], buttons: number[] }} Reading */
/** Which part of the standard layout presses a control: the larger one counts. @typedef {{ axis?: number, sign?: -1 | 1, buttons: number[] }} Wire */

const WAKES = 0.2;
const DEAD = 0.15;
const DOWN = 0.35;
const UP = 0.25;
const LOOK_PER_S = 0.9;
export const START = 9;
export const SELECT = 8;
const DIRECTION_BUTTONS = { up: 12, down: 13, left: 14, right: 15 };
/** A, X, B, Y, the shoulders, the triggers, the sticks. */
const FACE = [0, 2, 1, 3, 5, 4, 7, 6, 10, 11];

/** What is plugged in; nothing where a page may not know (plain http, a foreign frame). @returns {Gamepad[]} */
export function connectedPads() {
  try {
    return (navigator.getGamepads?.() ?? []).flatMap((pad) => (pad?.connected ? [pad] : []));
  } catch {
    return [];
  }
}

/** @param {PadParts} pad @returns {Rest} */
export function restOf(pad) {
  return { axes: [...pad.axes], buttons: pad.buttons.map(({ value }) => value), awake: new Set() };
}

/**
 * @param {PadParts} pad
 * @param {Rest} rest parts that moved are noted in it
 * @returns {Reading}
 */
export function readPad(pad, rest) {
  const axes = pad.axes.map((value, i) => {
    const still = rest.axes[i] ?? 0;
    if (Math.abs(value - still) > WAKES) rest.awake.add(`axis ${i}`);
    if (!rest.awake.has(`axis ${i}`)) return 0;
    const centre = Math.abs(still) > 0.5 ? still : 0;
    return beyond((value - centre) / (1 + Math.abs(centre)), DEAD);
  });
  const buttons = pad.buttons.map(({ value }, i) => {
    if (Math.abs(value - (rest.buttons[i] ?? 0)) > WAKES || value === 0) rest.awake.add(`button ${i}`);
    return rest.awake.has(`button ${i}`) ? beyond(value, DEAD) : 0;
  });
  return { axes, buttons };
}

/**
 * @param {number} value
 * @param {number} dead
 */
function beyond(value, dead) {
  const size = Math.abs(value);
  return size <= dead ? 0 : (Math.sign(value) * Math.min(1, size - dead)) / (1 - dead);
}

/**
 * Which part of a pad presses each control of a card, in the card's order.
 * @param {ControlView[]} controls
 * @returns {Wire[]}
 */
export function wiring(controls) {
  const { move, look, rest } = groups(controls);
  /** @type {Wire[]} */
  const wires = controls.map(() => ({ buttons: [] }));
  const stick = (/** @type {import('./layout.js').Slot} */ { index, direction }, /** @type {number} */ first) => {
    if (direction === null) return;
    const sideways = direction === 'left' || direction === 'right';
    wires[index] = { axis: first + (sideways ? 0 : 1), sign: direction === 'left' || direction === 'up' ? -1 : 1, buttons: [] };
  };
  const only = look.length === 0 && rest.length === 0;
  for (const slot of move) {
    const vertical = slot.direction === 'up' || slot.direction === 'down';
    const pedal = vertical && /gas|brake|throttle|accelerate/.test(controls[slot.index]?.name ?? '');
    if (!pedal) stick(slot, 0);
    const wire = /** @type {Wire} */ (wires[slot.index]);
    if (slot.direction) wire.buttons.push(DIRECTION_BUTTONS[slot.direction]);
    if (only && slot.direction === 'up') wire.buttons.push(7, 0);
    if (only && slot.direction === 'down') wire.buttons.push(6, 1);
  }
  for (const slot of look) stick(slot, 2);
  const free = [...FACE];
  const jump = rest.find(({ index }) => controls[index]?.keys.includes('Space'));
  for (const { index } of [...(jump ? [jump] : []), ...rest.filter((slot) => slot !== jump)]) {
    const button = free.shift();
    if (button !== undefined) wires[index]?.buttons.push(button);
  }
  return wires;
}

/**
 * How far a pad presses a control, 0..1.
 * @param {Wire} wire
 * @param {Reading} reading
 */
export function pressedBy({ axis, sign, buttons }, reading) {
  const stick = axis === undefined || sign === undefined ? 0 : Math.max(0, sign * (reading.axes[axis] ?? 0));
  return Math.max(stick, ...buttons.map((button) => reading.buttons[button] ?? 0));
}

/**
 * @param {{
 *   controls: () => ControlView[], listens: () => boolean,
 *   press: (source: string, key: string, down: boolean) => void,
 *   level: (source: string, control: number, value: number) => void,
 *   look: ((dx: number, dy: number) => void) | null, letGo: (source: string) => void,
 *   button: (button: number) => void,
 * }} to `button`: a button that is no control went down
 */
export function listenToPads(to) {
  /** @type {Map<string, { rest: Rest, down: Set<number>, buttons: Set<number> }>} */
  const seen = new Map();
  let before_ms = 0;
  let reading = false;

  const read = (/** @type {Gamepad} */ pad, /** @type {number} */ seconds) => {
    const source = `pad:${pad.index}:${pad.id}`;
    const state = seen.get(source) ?? { rest: restOf(pad), down: new Set(), buttons: new Set() };
    seen.set(source, state);
    const now = readPad(pad, state.rest);
    const controls = to.controls();
    const wires = wiring(controls);
    controls.forEach((control, index) => {
      const value = pressedBy(/** @type {Wire} */ (wires[index]), now);
      if (control.analog) return to.level(source, index, value);
      const down = value > (state.down.has(index) ? UP : DOWN);
      if (down) state.down.add(index);
      else state.down.delete(index);
      return to.press(source, control.keys[0] ?? '', down);
    });
    const looks = wires.some(({ axis }) => axis === 2 || axis === 3);
    if (!looks) to.look?.((now.axes[2] ?? 0) * LOOK_PER_S * seconds, (now.axes[3] ?? 0) * LOOK_PER_S * seconds);
    now.buttons.forEach((value, i) => {
      if (value > 0.5 && !state.buttons.has(i)) to.button(i);
      if (value > 0.5) state.buttons.add(i);
      else state.buttons.delete(i);
    });
    return source;
  };

  const look = (/** @type {number} */ now_ms) => {
    const pads = connectedPads();
    const listens = to.listens();
    const seconds = Math.min(0.1, (now_ms - before_ms) / 1000);
    before_ms = now_ms;
    const here = new Set(listens ? pads.map((pad) => read(pad, seconds)) : []);
    for (const source of seen.keys()) {
      if (here.has(source)) continue;
      to.letGo(source);
      const gone = !pads.some((pad) => source === `pad:${pad.index}:${pad.id}`);
      if (gone) seen.delete(source);
    }
    reading = pads.length > 0;
    if (reading) requestAnimationFrame(look);
  };

  addEventListener('gamepadconnected', () => {
    if (reading) return;
    reading = true;
    requestAnimationFrame(look);
  });
}
