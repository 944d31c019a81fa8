/**
 * The prompt box: words for the world, suggestions, and how the change goes. The box is never taken away from who writes
 * in it, and words that did not arrive come back to it. Knows no connection.
 */

import { ChunkClock } from './chunks.js';
import { element, make, say } from './dom.js';
import { MixPanel } from './mix.js';
import { Panel } from './popover.js';
import { PromptLine } from './promptline.js';
import { mixed } from './shares.js';
import { speak } from './toast.js';

/** @typedef {import('../../sdk/messages.js').Transition} Transition */
/** @typedef {import('./promptline.js').Asked} Asked */
/** @typedef {(asked: Asked) => import('../../sdk/room.js').Fate} Send */

export class PromptBox {
  /**
   * @param {Send} send
   * @param {import('./words.js').Words} words
   */
  constructor(send, words) {
    this.send = send;
    this.words = words;
    this.form = element('prompt', HTMLFormElement);
    this.text = element('prompt-text', HTMLInputElement);
    this.button = element('prompt-send', HTMLButtonElement);
    this.chips = element('chips', HTMLElement);
    /** @type {string[]} */
    this.suggestions = [];
    /** Code points; 0 = unknown. */
    this.limit = 0;
    this.why = '';
    this.chunks = new ChunkClock();
    this.line = new PromptLine(this.chunks);
    this.mix = new MixPanel(this.chunks, this.text, () => this.#explain());
    this.panel = new Panel(element('ideas-panel', HTMLElement), element('ideas', HTMLElement), () => this.#fill());
    this.#listen();
  }

  /**
   * @param {string[]} suggestions
   * @param {boolean} recaches whether this world can rebuild what it remembers
   * @param {number} limit
   * @param {number} most texts that one prompt may mix
   */
  suggest(suggestions, recaches, limit, most) {
    element('recache', HTMLLabelElement).hidden = !recaches;
    this.limit = limit;
    this.mix.offer(most, suggestions);
    this.suggestions = suggestions;
    this.chips.replaceChildren(...suggestions.map((text) => this.#chip(text, 'chip')));
    this.#mark();
  }

  /** @param {string} why why nothing can be sent now; '' = it can */
  enable(why) {
    this.why = why;
    this.button.setAttribute('aria-disabled', String(why !== ''));
    for (const chip of this.chips.querySelectorAll('button')) chip.setAttribute('aria-disabled', String(why !== ''));
    this.#explain();
  }

  /** The world's prompt, whoever gave it. @param {import('./promptline.js').Prompt} prompt */
  changed(prompt) {
    this.line.changed(prompt);
    this.#mark();
  }

  /** A frame was shown. @param {{ chunk: number, frame: number, prompt_version: number }} receipt */
  seen(receipt) {
    this.line.seen(receipt);
    if (receipt.chunk === this.chunks.now) return;
    this.chunks.seen(receipt);
    this.line.planned.show();
    if (this.mix.panel.isOpen) this.mix.tick();
  }

  /** @param {number} fps frames of a second, for the length of a blend */
  pace(fps) {
    this.chunks.fps = fps;
  }

  // ---- inside -------------------------------------------------------------------------------------------------------

  #listen() {
    this.text.value = this.words.draft;
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.#submit(this.text.value, this.mix.wish())) this.text.blur();
    });
    this.text.addEventListener('input', () => {
      this.words.typed(this.text.value);
      this.#explain();
    });
    this.text.addEventListener('keydown', (event) => {
      if (event.isComposing) return;
      if (event.key === 'Escape') this.text.blur();
      else if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
        event.preventDefault();
        this.text.value = this.words.walk(event.key === 'ArrowUp' ? 1 : -1);
      }
    });
    // A wheel without a second axis still reaches every suggestion.
    this.chips.addEventListener('wheel', (event) => {
      if (event.deltaX !== 0 || this.chips.scrollWidth <= this.chips.clientWidth) return;
      event.preventDefault();
      this.chips.scrollLeft += event.deltaY;
    }, { passive: false });
    // Choices made by mouse or finger leave the keyboard to the world.
    element('seconds', HTMLSelectElement).addEventListener('change', (event) => {
      if (event.target instanceof HTMLElement) event.target.blur();
    });
  }

  /** @param {string} text code points in it */
  #over(text) {
    return this.limit > 0 ? [...text].length - this.limit : 0;
  }

  /** Why the words in the box cannot be sent, beside it. */
  #explain() {
    const over = Math.max(...[this.text.value.trim(), ...this.mix.texts].map((text) => this.#over(text)));
    const why = over > 0 ? `${over} ${over === 1 ? 'character' : 'characters'} too long: this world takes ${this.limit}` : this.why;
    const box = element('prompt-why', HTMLElement);
    say(box, why);
    box.hidden = why === '';
  }

  /** @param {string} words @param {import('./mix.js').Wish | null} [wish] null = a suggestion, which comes alone and at once */
  #submit(words, wish = null) {
    const text = words.trim();
    if (text === '') {
      if (wish !== null) this.#askForWords();
      return false;
    }
    this.#explain();
    if (this.why !== '' || [text, ...(wish ? this.mix.texts : [])].some((each) => this.#over(each) > 0)) {
      speak(element('prompt-why', HTMLElement).textContent ?? '');
      return false;
    }
    const transition = /** @type {Transition} */ (new FormData(this.form).get('transition'));
    const seconds = transition === 'blend' ? Number(element('seconds', HTMLSelectElement).value) : 0;
    const asked = { text, transition, seconds, ...wish };
    const own = this.text.value === words;
    const fate = this.send(asked);
    this.line.sent(fate.id, asked);
    if (own) this.#write('');
    if (wish !== null) {
      this.mix.panel.close();
      this.mix.put();
    }
    fate.accepted.then(() => this.line.accepted(fate.id, asked), () => {});
    fate.applied.then((chunk) => {
      this.#remember(asked);
      this.line.applied(fate.id, chunk, asked);
    }, (error) => this.#failed(fate.id, error, asked));
    return true;
  }

  /** A mix has no text of the box: that is where it goes. */
  #askForWords() {
    this.mix.panel.close();
    this.text.focus();
    if (this.mix.texts.length > 0) speak('Write the first text into the box');
  }

  /** @param {string} text */
  #write(text) {
    this.text.value = text;
    this.words.typed(text);
  }

  /** @param {Asked} asked */
  #remember({ text, others = [] }) {
    for (const each of [...others, { text }]) this.words.sent(each.text);
  }

  /**
   * The words come back, where nothing was written meanwhile and nobody changed their mind; else they are the newest of
   * the earlier ones.
   * @param {number} id
   * @param {import('../../sdk/room.js').SteerError} error
   * @param {Asked} asked
   */
  #failed(id, error, asked) {
    if (error.code !== 'overtaken' && this.text.value.trim() === '' && this.mix.texts.length === 0) {
      this.#write(asked.text);
      this.mix.put(asked);
    } else this.#remember(asked);
    this.line.failed(id, error.message);
    speak(error.message);
  }

  #mark() {
    for (const chip of this.chips.querySelectorAll('button')) {
      chip.setAttribute('aria-pressed', String(chip.textContent === mixed(this.line.current)));
    }
  }

  #fill() {
    element('ideas-suggested', HTMLElement).replaceChildren(...this.suggestions.map((text) => this.#chip(text, '')));
    const { earlier } = this.words;
    element('ideas-before', HTMLElement).replaceChildren(...earlier.map((text) => this.#chip(text, '')));
    element('ideas-before-title', HTMLElement).hidden = earlier.length === 0;
  }

  /**
   * @param {string} text
   * @param {string} look
   */
  #chip(text, look) {
    const chip = make('button', { class: look, text });
    chip.type = 'button';
    chip.addEventListener('click', () => {
      this.panel.close();
      this.#submit(text);
    });
    return chip;
  }
}
