/** The buttons under the picture: pause, reset, like, dislike. Knows no connection. */

import { element, say } from './dom.js';
import { toast, untoast } from './toast.js';

/** @typedef {import('../../sdk/messages.js').WorldState} WorldState */
/** @typedef {{ pause: () => void, resume: () => void, reset: () => void, feedback: (value: 1 | -1) => void }} Does */

const CHOSEN_MS = 900;
/** A reset cannot be taken back, so it waits a moment for who did not mean it. */
const REGRET_MS = 2500;

export class Acts {
  /** @param {Does} does */
  constructor(does) {
    this.does = does;
    /** @type {WorldState} */
    this.world = 'opening';
    this.pause = element('pause', HTMLButtonElement);
    this.resetButton = element('reset', HTMLButtonElement);
    this.like = element('like', HTMLButtonElement);
    this.dislike = element('dislike', HTMLButtonElement);
    this.resetting = 0;
    this.pause.addEventListener('click', () => this.togglePause());
    this.resetButton.addEventListener('click', () => this.reset());
    this.like.addEventListener('click', () => this.#feedback(this.like, 1));
    this.dislike.addEventListener('click', () => this.#feedback(this.dislike, -1));
  }

  togglePause() {
    if (this.pause.disabled) return;
    if (this.world === 'paused') this.does.resume();
    else this.does.pause();
  }

  /** Start anew after a moment in which it can be undone; asked a second time, at once. */
  reset() {
    if (this.resetButton.disabled) return;
    if (this.resetting !== 0) return this.#resetNow();
    this.resetting = setTimeout(() => this.#resetNow(), REGRET_MS);
    toast('The world starts anew', { act: 'Undo', does: () => this.#keepWorld(), for_ms: REGRET_MS });
  }

  /**
   * Whoever drives pauses and resets; whoever is in a world that can be seen says whether they like it. A replay can
   * only be paused.
   * @param {WorldState} world
   * @param {boolean} live
   * @param {boolean} drives
   * @param {boolean} replays
   */
  state(world, live, drives, replays) {
    this.world = world;
    const paused = world === 'paused';
    const open = live && world !== 'opening' && world !== 'closed';
    this.pause.disabled = !drives || !(paused || world === 'running') || !live;
    this.pause.setAttribute('aria-pressed', String(paused));
    say(element('pause-text', HTMLElement), paused ? 'Resume' : 'Pause');
    this.resetButton.disabled = !drives || !open || replays;
    this.like.disabled = this.dislike.disabled = !open || replays;
    if (this.resetButton.disabled && this.resetting !== 0) this.#keepWorld();
  }

  #resetNow() {
    clearTimeout(this.resetting);
    this.resetting = 0;
    untoast();
    this.does.reset();
  }

  #keepWorld() {
    clearTimeout(this.resetting);
    this.resetting = 0;
    toast('The world goes on as it was');
  }

  /**
   * @param {HTMLButtonElement} button
   * @param {1 | -1} value
   */
  #feedback(button, value) {
    this.does.feedback(value);
    button.classList.add('chosen');
    setTimeout(() => button.classList.remove('chosen'), CHOSEN_MS);
  }
}
