/**
 * The keyboard as a source of presses. Keys steer by place (KeyboardEvent.code), shortcuts go by letter.
 *
 * A keyup may never come: when the window loses the keyboard, when a menu opens, and on a Mac while Cmd is down. So the
 * keyboard lets go of everything then, and a key that is really held presses again by its own repeats.
 */

import { isTyping, ownsKey } from './focus.js';

export const SOURCE = 'keyboard';
const MODIFIERS = new Set(['Meta', 'OS', 'Control', 'Alt', 'AltGraph', 'Shift']);

/** @typedef {(key: string, down: boolean, at_ms: number) => void} Press */

/** @param {{ steers: (key: string) => boolean, press: Press, letGo: () => void }} to */
export function listenToKeyboard({ steers, press, letGo }) {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !steers(event.code) || ownsKey(event)) return;
    event.preventDefault();
    press(event.code, true, pressTime(event));
  });
  addEventListener('keyup', (event) => {
    if (steers(event.code)) press(event.code, false, pressTime(event));
    else if (MODIFIERS.has(event.key)) letGo();
  });
  addEventListener('blur', letGo);
  addEventListener('contextmenu', letGo);
  addEventListener('focusin', (event) => {
    if (isTyping(event.target)) letGo();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) letGo();
  });
}

/**
 * Shortcuts by letter, whatever the layout; a key that is held does it once.
 * @param {{ steers: (key: string) => boolean, act: Record<string, () => void> }} what
 */
export function listenToShortcuts({ steers, act }) {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || steers(event.code) || ownsKey(event)) return;
    const does = act[event.key.toLowerCase()];
    if (!does) return;
    event.preventDefault();
    if (!event.repeat) does();
  });
}

/**
 * When the key moved, as the browser saw it; the handler may run later. Nonsense stamps are replaced by now.
 * @param {Event} event
 */
export function pressTime(event) {
  const now_ms = performance.now();
  return event.timeStamp > now_ms - 1000 && event.timeStamp <= now_ms ? event.timeStamp : now_ms;
}
