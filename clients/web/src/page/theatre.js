/**
 * Full screen that can be driven, prompted and left: the whole page, not the picture alone. Where the browser has no full
 * screen for pages (iPhone), the page takes the whole window in the same shape.
 */

import { element } from './dom.js';

export class Theatre {
  constructor() {
    this.button = element('fullscreen', HTMLButtonElement);
    for (const id of ['fullscreen', 'leave-fullscreen']) element(id, HTMLButtonElement).addEventListener('click', () => this.toggle());
    document.addEventListener('fullscreenchange', () => this.#show(document.fullscreenElement !== null));
    addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && this.on && document.fullscreenElement === null && !document.querySelector('dialog[open], :popover-open')) this.#show(false);
    });
  }

  get on() {
    return document.body.classList.contains('theatre');
  }

  toggle() {
    const on = !this.on;
    this.#show(on);
    if (on) void document.documentElement.requestFullscreen?.({ navigationUI: 'hide' }).catch(() => {});
    else if (document.fullscreenElement) void document.exitFullscreen();
  }

  /** @param {boolean} on */
  #show(on) {
    document.body.classList.toggle('theatre', on);
    document.documentElement.classList.toggle('dark', on);
    this.button.setAttribute('aria-pressed', String(on));
  }
}
