/**
 * The line under the prompt box: what became of the words that were sent (sent -> accepted -> in the picture since chunk
 * n), what the world made of them, how far a blend is, and what waits for its chunk. Knows no box and no connection.
 */

import { element, say } from './dom.js';
import { Planned } from './planned.js';
import { mixed } from './shares.js';

/** @typedef {import('../../sdk/messages.js').Transition} Transition */
/** @typedef {import('./mix.js').Wish & { text: string, transition: Transition, seconds: number }} Asked */
/** @typedef {import('../../sdk/world.js').World['prompt']} Prompt what the world's prompt is */

const DONE_MS = 6000;

export class PromptLine {
  /** @param {import('./chunks.js').ChunkClock} chunks */
  constructor(chunks) {
    this.chunks = chunks;
    this.planned = new Planned(chunks);
    this.line = element('now', HTMLElement);
    this.bar = element('share-of-blend', HTMLProgressElement);
    /** @type {Prompt} */
    this.current = { version: 0, text: '', understood: [], missed: [], weight: 1, others: [] };
    /** The newest that is not done. */
    this.pending = 0;
    this.timer = 0;
    /** A blend that is under way: its length in frames and the frame at which it began. */
    this.blend = { frames: 0, from: -1, version: 0 };
  }

  /** The world's prompt, whoever gave it. @param {Prompt} prompt */
  changed(prompt) {
    this.current = prompt;
    if (this.pending === 0) this.#say('', 'Now', mixed(prompt), understanding(prompt));
  }

  /** @param {number} id @param {Asked} asked */
  sent(id, asked) {
    this.pending = id;
    clearTimeout(this.timer);
    this.#say('busy', 'Sent', mixed(asked));
    if (asked.at === undefined) this.#blends(asked, this.current.version);
  }

  /** @param {number} id @param {Asked} asked */
  accepted(id, asked) {
    const { at } = asked;
    if (typeof at === 'number') this.planned.add(id);
    if (id !== this.pending) return;
    if (typeof at === 'number') this.#finish('done', 'Scheduled', `for chunk ${at}`);
    else this.#say('busy', 'Accepted', mixed(asked));
  }

  /** @param {number} id @param {number} chunk @param {Asked} asked */
  applied(id, chunk, asked) {
    if (this.planned.drop(id)) this.#blends(asked, this.current.version - 1);
    if (this.pending !== id && this.pending !== 0) return;
    const understood = mixed(this.current) === mixed(asked) ? understanding(this.current) : '';
    this.#finish('done', `Applied at chunk ${chunk}`, mixed(asked), understood);
  }

  /** @param {number} id @param {string} why */
  failed(id, why) {
    const waited = this.planned.drop(id);
    if (!waited) {
      this.blend.frames = 0;
      this.bar.hidden = true;
    }
    if (id === this.pending || (waited && this.pending === 0)) this.#finish('back', 'Not done', why);
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

  // ---- inside -------------------------------------------------------------------------------------------------------

  /** A blend begins once the world is past this version. @param {Asked} asked @param {number} version */
  #blends({ transition, seconds, over }, version) {
    const frames = typeof over === 'number' ? over * this.chunks.frames : seconds * this.chunks.fps;
    this.blend = { frames: transition === 'blend' ? Math.round(frames) : 0, from: -1, version };
    if (this.blend.frames === 0) this.bar.hidden = true;
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
