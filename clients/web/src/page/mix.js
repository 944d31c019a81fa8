/**
 * What the expander beside the prompt box opens: other texts with their shares, when the change begins, and how many
 * chunks a blend takes. It keeps what was set until it is sent. Knows no connection.
 */

import { wellFormed } from '../../sdk/room.js';
import { element, make, say } from './dom.js';
import { Panel } from './popover.js';
import { joined, spread, turned, without } from './shares.js';

/** What a prompt has beside its text and transition. @typedef {Pick<import('../../sdk/messages.js').PromptHow, 'weight' | 'others' | 'at' | 'over'>} Wish */
/** One text of the mix, and its slider. The first is that of the box. @typedef {{ root: HTMLElement, text: HTMLInputElement | null, slider: HTMLInputElement, share: HTMLElement }} Row */

const BOX = 'The text in the box';
const OVER_MOST = 1000;
const IN_S = 5;
const AWAY = 10;

export class MixPanel {
  /**
   * @param {import('./chunks.js').ChunkClock} chunks
   * @param {HTMLInputElement} box has the first text
   * @param {() => void} changed texts were written, added or taken away
   */
  constructor(chunks, box, changed) {
    this.chunks = chunks;
    this.changed = changed;
    this.most = 1;
    this.opener = element('mix', HTMLButtonElement);
    this.more = element('mix-more', HTMLButtonElement);
    this.when = element('mix-when', HTMLSelectElement);
    this.begins = element('mix-begins', HTMLInputElement);
    this.over = element('mix-over', HTMLSelectElement);
    this.lasts = element('mix-lasts', HTMLInputElement);
    this.first = make('span', { class: 'mix-own', text: BOX });
    this.own = this.#row(null);
    /** @type {Row[]} */
    this.rows = [];
    this.shares = [100];
    this.panel = new Panel(element('mix-panel', HTMLElement), this.opener, () => {
      say(this.first, box.value.trim() || BOX);
      this.#show();
    });
    this.more.addEventListener('click', () => this.#add('').focus());
    this.when.addEventListener('change', () => {
      this.begins.value = String(this.when.value === 'at' ? this.chunks.now + AWAY : IN_S);
      this.#show();
    });
    for (const each of [this.begins, this.over, this.lasts]) each.addEventListener('input', () => this.#show());
    this.#show();
  }

  /** @param {number} most texts in all; a world that takes one alone has no expander @param {string[]} suggestions */
  offer(most, suggestions) {
    this.most = most;
    this.opener.hidden = most < 2;
    if (most < 2) this.panel.close();
    while (this.rows.length >= most && this.rows.length > 0) this.#remove(this.rows.length - 1);
    element('mix-ideas', HTMLDataListElement).replaceChildren(...suggestions.map((text) => new Option(text)));
    this.#show();
  }

  /** The texts beside that of the box, as they were written. */
  get texts() {
    return this.rows.map(({ text }) => text?.value.trim() ?? '').filter(Boolean);
  }

  /** What was set, for a prompt that is sent now. @returns {Wish} */
  wish() {
    if (this.opener.hidden) return {};
    const others = this.rows.map(({ text }, index) => ({ text: wellFormed(text?.value.trim() ?? ''), weight: this.shares[index + 1] ?? 1 }));
    const written = others.filter(({ text }) => text !== '');
    const { at } = this;
    return {
      ...(written.length > 0 && { weight: this.shares[0] ?? 1, others: written }),
      ...(at !== null && { at }),
      ...(this.over.value === 'chunks' && { over: Math.round(within(this.lasts, 0, OVER_MOST)) }),
    };
  }

  /** The chunk at which it shall begin; null = at once. */
  get at() {
    if (this.when.value === 'now') return null;
    const wanted = within(this.begins, 0, Number.MAX_SAFE_INTEGER);
    return this.when.value === 'at' ? Math.round(wanted) : this.chunks.chunkIn(wanted);
  }

  /** What was sent is set again, or nothing. @param {Wish} [wish] */
  put({ weight = 1, others = [], at = null, over = null } = {}) {
    for (const { root } of this.rows) root.remove();
    this.rows = [];
    for (const { text } of others) this.#add(text);
    this.shares = spread([weight, ...others.map((other) => other.weight ?? 1)]);
    this.when.value = at === null ? 'now' : 'at';
    this.begins.value = String(at ?? IN_S);
    this.over.value = over === null ? 'seconds' : 'chunks';
    this.lasts.value = String(over ?? AWAY);
    this.#show();
    this.changed();
  }

  /** The world went on. */
  tick() {
    const { now } = this.chunks;
    const chosen = this.when.value === 'in' ? ` This begins at chunk ${this.at}.` : '';
    say(element('mix-said', HTMLElement), now < 0 ? '' : `The world is at chunk ${now}.${chosen}`);
  }

  // ---- inside -------------------------------------------------------------------------------------------------------

  /** @param {string} words */
  #add(words) {
    const text = make('input');
    Object.assign(text, { type: 'text', value: words, placeholder: 'Another text…', enterKeyHint: 'send', spellcheck: false });
    text.setAttribute('aria-label', 'Text to mix in');
    text.setAttribute('list', 'mix-ideas');
    text.addEventListener('input', () => {
      this.#show();
      this.changed();
    });
    this.rows.push(this.#row(text));
    this.shares = joined(this.shares);
    this.#show();
    return text;
  }

  /** @param {number} index */
  #remove(index) {
    this.rows[index]?.root.remove();
    this.rows.splice(index, 1);
    this.shares = without(this.shares, index + 1);
    this.#show();
    this.changed();
  }

  /** @param {HTMLInputElement | null} text null = that of the box @returns {Row} */
  #row(text) {
    const slider = make('input');
    Object.assign(slider, { type: 'range', min: '1', max: '99', step: '1' });
    slider.setAttribute('aria-label', text ? 'Share of this text' : 'Share of the text in the box');
    const share = make('span', { class: 'share' });
    const root = make('div', { class: 'mix-row' }, [text ?? this.first, slider, share]);
    const row = { root, text, slider, share };
    slider.addEventListener('input', () => {
      this.shares = turned(this.shares, text === null ? 0 : this.rows.indexOf(row) + 1, Number(slider.value));
      this.#show();
    });
    if (text) {
      const remove = make('button', { class: 'mix-less', text: '×' });
      remove.type = 'button';
      remove.setAttribute('aria-label', 'Take this text out');
      remove.addEventListener('click', () => {
        this.#remove(this.rows.indexOf(row));
        this.more.focus();
      });
      root.append(remove);
    }
    element('mix-rows', HTMLElement).append(root);
    return row;
  }

  #show() {
    this.own.root.hidden = this.rows.length === 0;
    for (const [index, { slider, share }] of [this.own, ...this.rows].entries()) {
      slider.value = String(this.shares[index] ?? 1);
      slider.setAttribute('aria-valuetext', `${slider.value} %`);
      say(share, `${slider.value} %`);
    }
    this.more.hidden = this.rows.length + 1 >= this.most;
    this.begins.hidden = this.when.value === 'now';
    this.begins.setAttribute('aria-label', this.when.value === 'at' ? 'Chunk at which it begins' : 'Seconds until it begins');
    this.lasts.hidden = this.over.value !== 'chunks';
    const set = this.texts.length > 0 || this.when.value !== 'now' || this.over.value === 'chunks';
    this.opener.classList.toggle('set', set);
    this.opener.setAttribute('aria-label', set ? 'Mix and time: set' : 'Mix and time');
    this.tick();
  }
}

/** The number in a field, whatever was typed. @param {HTMLInputElement} field @param {number} least @param {number} most */
function within(field, least, most) {
  const number = Number(field.value);
  return Math.min(most, Math.max(least, Number.isFinite(number) ? number : least));
}
