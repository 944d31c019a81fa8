/** Short words that go away by themselves, some with one thing to do; and words that are spoken once. */

import { element, say } from './dom.js';

const SHOWN_MS = 3600;
let timer = 0;

/**
 * @param {string} text
 * @param {{ act?: string, does?: () => void, for_ms?: number }} [how]
 */
export function toast(text, { act, does, for_ms = SHOWN_MS } = {}) {
  const box = element('toast', HTMLElement);
  const button = element('toast-act', HTMLButtonElement);
  say(element('toast-text', HTMLElement), text);
  say(button, act ?? '');
  button.hidden = act === undefined;
  button.onclick = () => {
    untoast();
    does?.();
  };
  box.classList.add('up');
  clearTimeout(timer);
  timer = setTimeout(untoast, for_ms);
}

export function untoast() {
  clearTimeout(timer);
  element('toast', HTMLElement).classList.remove('up');
}

/** For ears: said once, however often it is asked for. @param {string} text */
export function speak(text) {
  say(element('spoken', HTMLElement), text);
}
