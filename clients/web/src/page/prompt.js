/**
 * The prompt box: words for the world, suggestions, how the change goes, and what became of the last ones:
 * sent -> accepted (journaled) -> in the picture since chunk n. The box is never taken away from who writes in it, and
 * words that did not arrive come back to it. Knows no connection.
 */

import { element, make, say } from './dom.js';
import { Panel } from './popover.js';
import { speak } from './toast.js';

/** @typedef {import('../../sdk/messages.js').Transition} Transition */
/** @typedef {(text: string, how: { transition: Transition, seconds: number }) => import('../../sdk/room.js').Fate} Send */
/** What the world's prompt is. @typedef {{ version: number, text: string, understood: string[], missed: string[] }} Prompt */

const DONE_MS = 6000;

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
    this.line = element('now', HTMLElement);
    this.bar = element('share-of-blend', HTMLProgressElement);
    /** @type {string[]} */
    this.suggestions = [];
    /** @type {Prompt} */
    this.current = { version: 0, text: '', understood: [], missed: [] };
    this.pending = 0;
    /** Code points; 0 = unknown. */
    this.limit = 0;
    this.why = '';
    this.timer = 0;
    /** A blend that is under way: its length in frames and the frame at which it began. */
    this.blend = { frames: 0, from: -1, version: 0 };
    this.panel = new Panel(element('ideas-panel', HTMLElement), element('ideas', HTMLElement), () => this.#fill());
    this.#listen();
  }

  /**
   * @param {string[]} suggestions
   * @param {boolean} recaches whether this world can rebuild what it remembers
   * @param {number} limit
   */
  suggest(suggestions, recaches, limit) {
    element('recache', HTMLLabelElement).hidden = !recaches;
    this.limit = limit;
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

  /** The world's prompt, whoever gave it. @param {Prompt} prompt */
  changed(prompt) {
    this.current = prompt;
    this.#mark();
    if (this.pending === 0) this.#say('', 'Now', prompt.text, understanding(prompt));
  }

  /**
   * A frame was shown: how far the blend is.
   * @param {{ frame: number, prompt_version: number }} receipt
   */
  seen({ frame, prompt_version }) {
    const { blend, bar } = this;
    if (blend.frames === 0) return;
    if (blend.from < 0 && prompt_version > blend.version) blend.from = frame;
    const share = blend.from < 0 ? 0 : Math.min(1, (frame - blend.from + 1) / blend.frames);
    bar.hidden = false;
    bar.value = share;
    if (share < 1) return;
    blend.frames = 0;
    bar.hidden = true;
  }

  /** @param {number} fps frames of a second, for the length of a blend */
  pace(fps) {
    this.fps = fps;
  }

  fps = 24;

  // ---- inside -------------------------------------------------------------------------------------------------------

  #listen() {
    this.text.value = this.words.draft;
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.#submit(this.text.value)) this.text.blur();
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
    const over = this.#over(this.text.value.trim());
    const why = over > 0 ? `${over} ${over === 1 ? 'character' : 'characters'} too long: this world takes ${this.limit}` : this.why;
    const box = element('prompt-why', HTMLElement);
    say(box, why);
    box.hidden = why === '';
  }

  /** @param {string} words */
  #submit(words) {
    const text = words.trim();
    if (text === '') return false;
    this.#explain();
    if (this.why !== '' || this.#over(text) > 0) {
      speak(element('prompt-why', HTMLElement).textContent ?? '');
      return false;
    }
    const transition = /** @type {Transition} */ (new FormData(this.form).get('transition'));
    const seconds = transition === 'blend' ? Number(element('seconds', HTMLSelectElement).value) : 0;
    const own = this.text.value === words;
    const fate = this.send(text, { transition, seconds });
    this.pending = fate.id;
    clearTimeout(this.timer);
    this.#say('busy', 'Sent', text);
    this.blend = { frames: Math.round(seconds * this.fps), from: -1, version: this.current.version };
    if (own) {
      this.text.value = '';
      this.words.typed('');
    }
    fate.accepted.then(() => this.#newest(fate.id) && this.#say('busy', 'Accepted', text), () => {});
    fate.applied.then((chunk) => this.#applied(fate.id, chunk, text), (error) => this.#failed(fate.id, error, text));
    return true;
  }

  /** @param {number} id */
  #newest(id) {
    return id === this.pending;
  }

  /**
   * @param {number} id
   * @param {number} chunk
   * @param {string} text
   */
  #applied(id, chunk, text) {
    this.words.sent(text);
    if (!this.#newest(id)) return;
    this.#finish('done', `Applied at chunk ${chunk}`, text, this.current.text === text ? understanding(this.current) : '');
  }

  /**
   * The words come back, where nothing was written meanwhile; else they are the newest of the earlier ones.
   * @param {number} id
   * @param {import('../../sdk/room.js').SteerError} error
   * @param {string} text
   */
  #failed(id, error, text) {
    this.blend.frames = 0;
    this.bar.hidden = true;
    if (this.text.value.trim() === '') {
      this.text.value = text;
      this.words.typed(text);
    } else this.words.sent(text);
    if (this.#newest(id)) this.#finish('back', 'Not done', error.message);
    speak(error.message);
  }

  /**
   * @param {'done' | 'back'} mood
   * @param {string} label
   * @param {string} text
   * @param {string} [understood]
   */
  #finish(mood, label, text, understood = '') {
    this.pending = 0;
    this.#say(mood, label, text, understood);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.changed(this.current), DONE_MS);
  }

  /**
   * @param {'' | 'busy' | 'done' | 'back'} mood
   * @param {string} label
   * @param {string} text
   * @param {string} [understood]
   */
  #say(mood, label, text, understood = '') {
    this.line.className = `now ${mood}`.trim();
    say(element('now-label', HTMLElement), label);
    say(element('now-text', HTMLElement), text || '–');
    say(element('now-understood', HTMLElement), understood);
  }

  #mark() {
    for (const chip of this.chips.querySelectorAll('button')) {
      chip.setAttribute('aria-pressed', String(chip.textContent === this.current.text));
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

/**
 * What the world made of the words, where it tells.
 * @param {{ understood: string[], missed: string[] }} prompt
 */
export function understanding({ understood, missed }) {
  const parts = [understood.join(', '), missed.length > 0 ? `not understood: ${missed.join(', ')}` : ''];
  const said = parts.filter(Boolean).join('; ');
  return said === '' ? '' : `(${said})`;
}
