/**
 * Whose a key is: the world's, or that of what has the focus. A text field owns every key; a button or a choice owns its
 * own keys when it was reached by keyboard, not when a mouse or a finger clicked it and the person drives on.
 */

let byTab = false;
let reachedByKey = false;

addEventListener('keydown', (event) => {
  if (event.key === 'Tab') byTab = true;
}, true);
addEventListener('pointerdown', () => {
  byTab = false;
  reachedByKey = false;
}, true);
addEventListener('focusin', () => {
  reachedByKey = byTab;
}, true);

/** Whether words are written here. @param {EventTarget | null} target */
export function isTyping(target) {
  if (target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  if (target instanceof HTMLInputElement) return !['radio', 'checkbox', 'range', 'button', 'file'].includes(target.type);
  return target instanceof HTMLElement && target.isContentEditable;
}

/** Whether a key event belongs to what has the focus. @param {KeyboardEvent} event */
export function ownsKey(event) {
  const target = event.target;
  if (isTyping(target) || document.querySelector('dialog[open]') !== null) return true;
  if (!(target instanceof HTMLElement) || !reachedByKey) return false;
  if (target instanceof HTMLInputElement) return true;
  const acts = target.closest('button, a[href], summary') !== null;
  return acts && (event.key === 'Enter' || event.key === ' ');
}

/** Whether the page may be steered by what is no keyboard: it has the focus, and nobody writes. */
export function isListening() {
  return document.hasFocus() && !document.hidden && !isTyping(document.activeElement);
}
