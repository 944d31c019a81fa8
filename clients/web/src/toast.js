/** A short word at the edge of the screen that goes away by itself. */

import { element, say } from './dom.js';

const SHOWN_MS = 3200;
let timer = 0;

/** @param {string} text */
export function toast(text) {
  const box = element('toast', HTMLElement);
  say(box, text);
  box.classList.add('up');
  clearTimeout(timer);
  timer = setTimeout(() => box.classList.remove('up'), SHOWN_MS);
}
