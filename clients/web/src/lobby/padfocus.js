/** A gamepad walks a page of links: the cross or the stick moves the focus, A follows it. */

import { connectedPads, readPad, restOf } from '../hands/pad.js';

const EVERY_MS = 60;
const PUSHED = 0.6;
const A = 0;
const STEPS = { 12: -1, 14: -1, 13: 1, 15: 1 };

export function padMovesFocus() {
  /** @type {Map<number, { rest: import('../hands/pad.js').Rest, down: Set<string> }>} */
  const seen = new Map();
  setInterval(() => {
    if (!document.hasFocus()) return;
    for (const pad of connectedPads()) {
      const state = seen.get(pad.index) ?? { rest: restOf(pad), down: new Set() };
      seen.set(pad.index, state);
      const now = readPad(pad, state.rest);
      const stick = (now.axes[1] ?? 0) || (now.axes[0] ?? 0);
      once(state.down, 'back', stick < -PUSHED, () => step(-1));
      once(state.down, 'on', stick > PUSHED, () => step(1));
      for (const [button, by] of Object.entries(STEPS)) once(state.down, button, (now.buttons[Number(button)] ?? 0) > PUSHED, () => step(by));
      once(state.down, 'a', (now.buttons[A] ?? 0) > PUSHED, () => {
        const at = document.activeElement;
        if (at instanceof HTMLElement && at !== document.body) at.click();
        else document.querySelector('a')?.click();
      });
    }
  }, EVERY_MS);
}

/**
 * @param {Set<string>} down
 * @param {string} what
 * @param {boolean} is
 * @param {() => void} does
 */
function once(down, what, is, does) {
  if (is && !down.has(what)) does();
  if (is) down.add(what);
  else down.delete(what);
}

/** @param {number} by */
function step(by) {
  const all = [...document.querySelectorAll('a[href], button, input')].filter((each) => each instanceof HTMLElement && each.offsetParent !== null);
  const at = all.indexOf(/** @type {Element} */ (document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, at + by))];
  if (next instanceof HTMLElement) next.focus();
}
