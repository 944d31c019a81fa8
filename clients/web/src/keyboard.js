/**
 * The keyboard as a source of presses. Ignores keys while somebody types, and lets go of everything when the window
 * loses the keyboard: its keyup would never come. A key that is held through that presses again by its own repeats. Knows which keys steer only through `steers`.
 */

/** @typedef {(key: string, down: boolean, at_ms: number) => void} Press */

/**
 * @param {{ steers: (key: string) => boolean, press: Press, release: () => void }} to
 */
export function listenToKeyboard({ steers, press, release }) {
  addEventListener('keydown', (event) => {
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || !steers(event.code)) return;
    event.preventDefault();
    press(event.code, true, pressTime(event));
  });
  addEventListener('keyup', (event) => {
    if (steers(event.code)) press(event.code, false, pressTime(event));
  });
  addEventListener('blur', release);
  addEventListener('focusin', (event) => {
    if (isTyping(event.target)) release();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) release();
  });
}

/** Whether keys belong to this element: a text field, or a choice that was reached by keyboard. @param {EventTarget | null} target */
export function isTyping(target) {
  if (!(target instanceof HTMLInputElement)) return false;
  return target.type === 'text' || target.matches(':focus-visible');
}

/**
 * When the key moved, as the browser saw it; the handler may run later. Nonsense stamps are replaced by now.
 * @param {Event} event
 */
export function pressTime(event) {
  const now_ms = performance.now();
  return event.timeStamp > now_ms - 1000 && event.timeStamp <= now_ms ? event.timeStamp : now_ms;
}
