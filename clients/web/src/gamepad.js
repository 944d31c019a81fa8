/**
 * A gamepad as a source of presses, in the standard layout: stick or cross steer, triggers and A/B go and stop.
 * Browsers have no events for buttons, so the pad is read once per display frame while one is plugged in.
 */

const STICK = 0.35;
const TRIGGER = 0.2;

/** Which of a control's keys the pad's parts stand for. */
const PARTS = /** @type {const} */ ({
  left: ['ArrowLeft', 'KeyA'],
  right: ['ArrowRight', 'KeyD'],
  up: ['ArrowUp', 'KeyW'],
  down: ['ArrowDown', 'KeyS'],
  space: ['Space'],
});

/**
 * What the pad holds now. Pure.
 * @param {Pick<Gamepad, 'axes' | 'buttons'>} pad
 * @returns {Set<keyof typeof PARTS>}
 */
export function padParts({ axes, buttons }) {
  /** @type {Set<keyof typeof PARTS>} */
  const held = new Set();
  const at = (/** @type {number} */ i) => buttons[i]?.value ?? 0;
  const x = axes[0] ?? 0;
  if (x < -STICK || at(14) > 0.5) held.add('left');
  if (x > STICK || at(15) > 0.5) held.add('right');
  if (at(7) > TRIGGER || at(0) > 0.5 || at(12) > 0.5) held.add('up');
  if (at(6) > TRIGGER || at(1) > 0.5 || at(13) > 0.5) held.add('down');
  if (at(2) > 0.5) held.add('space');
  return held;
}

/**
 * @param {{ steers: (key: string) => boolean, press: import('./keyboard.js').Press }} to
 */
export function listenToGamepad({ steers, press }) {
  /** @type {Set<keyof typeof PARTS>} */
  let before = new Set();
  let reading = false;

  const look = () => {
    const pad = navigator.getGamepads().find((each) => each?.connected);
    const held = pad ? padParts(pad) : new Set();
    for (const part of /** @type {(keyof typeof PARTS)[]} */ (Object.keys(PARTS))) {
      if (held.has(part) === before.has(part)) continue;
      const key = PARTS[part].find(steers);
      if (key) press(key, held.has(part), performance.now());
    }
    before = held;
    reading = pad !== undefined;
    if (reading) requestAnimationFrame(look);
  };

  addEventListener('gamepadconnected', () => {
    if (!reading) requestAnimationFrame(look);
  });
}
