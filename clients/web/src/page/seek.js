/** Where a replay is, of how much, and on from another moment of it. Only there in a replay. */

import { element, say } from './dom.js';
import { toast } from './toast.js';

/** @param {number} seconds */
export function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

export class SeekBar {
  /** @param {(chunk: number) => Promise<unknown>} seek @param {import('./chunks.js').ChunkClock} chunks */
  constructor(seek, chunks) {
    this.chunks = chunks;
    this.bar = element('seek', HTMLElement);
    this.range = element('seek-range', HTMLInputElement);
    this.at = element('seek-at', HTMLElement);
    /** Whether a hand is on it, or it is on its way: then it does not follow the picture. */
    this.held = false;
    this.range.addEventListener('input', () => {
      this.held = true;
      this.#say();
    });
    this.range.addEventListener('change', () => {
      this.held = true;
      seek(Number(this.range.value)).catch((error) => toast(error.message)).finally(() => (this.held = false));
    });
  }

  /** @param {number} chunks of the replay, 0 = this is none @param {string} differs from what was recorded, '' = not */
  offer(chunks, differs) {
    this.bar.hidden = chunks === 0;
    this.range.max = String(Math.max(0, chunks - 1));
    say(element('seek-differs', HTMLElement), differs === '' ? '' : `Not as it was: ${differs}`);
    this.#say();
  }

  /** @param {boolean} can who drives a replay that is there */
  enable(can) {
    this.range.disabled = !can;
  }

  /** That chunk is on the screen. @param {number} chunk */
  seen(chunk) {
    if (this.bar.hidden || this.held || Number(this.range.value) === chunk) return;
    this.range.value = String(chunk);
    this.#say();
  }

  #say() {
    const seconds = (/** @type {number} */ chunk) => (chunk * this.chunks.frames) / this.chunks.fps;
    const [now, all] = [clock(seconds(Number(this.range.value))), clock(seconds(Number(this.range.max) + 1))];
    say(this.at, `${now} / ${all}`);
    this.range.setAttribute('aria-valuetext', `${now} of ${all}`);
  }
}
