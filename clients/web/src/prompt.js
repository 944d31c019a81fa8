/**
 * The prompt box: words for the world, suggestions, cut, blend or recache, and what became of the last ones:
 * sent -> accepted (journaled) -> in the picture since chunk n. Knows no connection.
 */

import { element, make, say } from './dom.js';

/** @typedef {import('./messages.js').Transition} Transition */

const BLEND_S = 0.5;
const DONE_MS = 4000;

export class PromptBox {
  /** @param {(text: string, transition: Transition, seconds: number) => number} send returns the id, 0 = not sent */
  constructor(send) {
    this.send = send;
    this.form = element('prompt', HTMLFormElement);
    this.text = element('prompt-text', HTMLInputElement);
    this.button = element('prompt-send', HTMLButtonElement);
    this.chips = element('chips', HTMLElement);
    this.line = /** @type {HTMLElement} */ (element('now-text', HTMLElement).parentElement);
    this.current = '';
    this.pending = { id: 0, text: '' };
    this.timer = 0;
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.#submit(this.text.value)) {
        this.text.value = '';
        this.text.blur();
      }
    });
    this.text.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.text.blur();
    });
  }

  /**
   * @param {string[]} suggestions
   * @param {boolean} recaches whether this world can rebuild what it remembers
   */
  suggest(suggestions, recaches) {
    element('recache', HTMLLabelElement).hidden = !recaches;
    this.chips.replaceChildren(...suggestions.map((text) => this.#chip(text)));
    this.#mark();
  }

  /** @param {boolean} able */
  enable(able) {
    this.text.disabled = !able;
    this.button.disabled = !able;
    for (const chip of this.chips.querySelectorAll('button')) chip.disabled = !able;
  }

  /** The world's prompt, whoever gave it. @param {string} text */
  changed(text) {
    this.current = text;
    this.#mark();
    if (!this.line.classList.contains('busy')) this.#say('', 'Now', text);
  }

  /** @param {number} id */
  accepted(id) {
    if (id === this.pending.id) this.#say('busy', 'Accepted', this.pending.text);
  }

  /**
   * @param {number} id
   * @param {number} chunk
   */
  applied(id, chunk) {
    if (id !== this.pending.id) return;
    this.current = this.pending.text;
    this.#mark();
    this.#finish('done', `Applied at chunk ${chunk}`, this.pending.text);
  }

  /**
   * @param {number | null | undefined} id
   * @returns {boolean} whether the problem was about the prompt
   */
  refused(id) {
    if (!id || id !== this.pending.id) return false;
    this.#finish('', 'Now', this.current);
    return true;
  }

  /** @param {string} words */
  #submit(words) {
    const text = words.trim();
    if (text === '') return false;
    const transition = /** @type {Transition} */ (new FormData(this.form).get('transition'));
    const id = this.send(text, transition, transition === 'blend' ? BLEND_S : 0);
    if (id === 0) return false;
    this.pending = { id, text };
    clearTimeout(this.timer);
    this.#say('busy', 'Sent', text);
    return true;
  }

  /**
   * @param {'' | 'done'} mood
   * @param {string} label
   * @param {string} text
   */
  #finish(mood, label, text) {
    this.#say(mood, label, text);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#say('', 'Now', this.current), DONE_MS);
  }

  /**
   * @param {'' | 'busy' | 'done'} mood
   * @param {string} label
   * @param {string} text
   */
  #say(mood, label, text) {
    this.line.className = `now ${mood}`.trim();
    say(element('now-label', HTMLElement), label);
    say(element('now-text', HTMLElement), text || '–');
  }

  #mark() {
    for (const chip of this.chips.querySelectorAll('button')) {
      chip.setAttribute('aria-pressed', String(chip.textContent === this.current));
    }
  }

  /** @param {string} text */
  #chip(text) {
    const chip = make('button', { class: 'chip', text });
    chip.type = 'button';
    chip.addEventListener('click', () => this.#submit(text));
    return chip;
  }
}
