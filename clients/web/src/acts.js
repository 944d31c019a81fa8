/** The buttons around the picture: pause, reset, like, dislike, the wheel, share, full screen. Knows no connection. */

import { element, say } from './dom.js';
import { toast } from './toast.js';

/** @typedef {import('./messages.js').Participants} Participants */
/** @typedef {import('./messages.js').WorldState} WorldState */
/**
 * @typedef {{
 *   pause: () => void, resume: () => void, reset: () => void, feedback: (value: 1 | -1) => void,
 *   wheel: (to?: string) => void,
 * }} Does
 */

const CHOSEN_MS = 900;

export class Acts {
  /** @param {Does} does */
  constructor(does) {
    this.does = does;
    /** @type {WorldState} */
    this.world = 'opening';
    this.pause = element('pause', HTMLButtonElement);
    this.reset = element('reset', HTMLButtonElement);
    this.wheel = element('wheel', HTMLButtonElement);
    this.hands = element('hands', HTMLElement);
    this.drives = false;
    this.like = element('like', HTMLButtonElement);
    this.dislike = element('dislike', HTMLButtonElement);
    this.pause.addEventListener('click', () => this.togglePause());
    this.reset.addEventListener('click', does.reset);
    this.wheel.addEventListener('click', () => (this.drives ? this.hands.togglePopover() : does.wheel()));
    this.like.addEventListener('click', () => this.#feedback(this.like, 1));
    this.dislike.addEventListener('click', () => this.#feedback(this.dislike, -1));
    element('share', HTMLButtonElement).addEventListener('click', () => this.#share());
    element('fullscreen', HTMLButtonElement).addEventListener('click', () => this.fullscreen());
  }

  togglePause() {
    if (this.pause.disabled) return;
    if (this.world === 'paused') this.does.resume();
    else this.does.pause();
  }

  fullscreen() {
    if (document.fullscreenElement) void document.exitFullscreen();
    else void element('frame', HTMLElement).requestFullscreen?.();
  }

  /**
   * Whoever drives pauses and resets; whoever is in a world that can be seen says whether they like it.
   * @param {WorldState} world
   * @param {boolean} live
   * @param {boolean} drives
   */
  state(world, live, drives) {
    this.world = world;
    const paused = world === 'paused';
    const open = live && world !== 'opening' && world !== 'closed';
    this.pause.disabled = !drives || !(paused || world === 'running') || !live;
    this.pause.setAttribute('aria-pressed', String(paused));
    say(element('pause-text', HTMLElement), paused ? 'Resume' : 'Pause');
    this.reset.disabled = !drives || !open;
    this.like.disabled = this.dislike.disabled = !open;
  }

  /**
   * @param {Participants} who
   * @param {string} me
   */
  people({ driver, you, spectators, people }, me) {
    this.drives = you === 'driver';
    const others = spectators - (this.drives ? 0 : 1);
    const watching = others > 0 ? `${others} ${this.drives ? '' : 'more '}watching` : '';
    const name = people.find(({ participant }) => participant === driver)?.name ?? 'Somebody who is away';
    const wheel = this.drives ? 'You drive' : driver === null ? 'Nobody drives' : `${name} drives`;
    const line = element('people', HTMLElement);
    say(line, [wheel, watching].filter(Boolean).join(' · '));
    line.title = people.map((person) => (person.participant === me ? `${person.name} (you)` : person.name)).join(', ');
    this.wheel.hidden = this.drives ? spectators === 0 : driver !== null;
    say(element('wheel-text', HTMLElement), this.drives ? 'Pass the wheel' : 'Take the wheel');
    if (this.wheel.hidden || !this.drives) this.hands.hidePopover();
    this.#offerHands(people.filter(({ participant }) => participant !== me));
  }

  /** Whom the driver can hand the wheel to. @param {import('./messages.js').Person[]} others */
  #offerHands(others) {
    const choice = (/** @type {string} */ text, /** @type {string | undefined} */ to) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = text;
      button.addEventListener('click', () => {
        this.hands.hidePopover();
        this.does.wheel(to);
      });
      return button;
    };
    const hands = others.map(({ participant, name }) => choice(`Hand it to ${name}`, participant));
    this.hands.replaceChildren(...hands, choice('Let go of it', undefined));
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

  async #share() {
    const link = location.href;
    try {
      await navigator.clipboard.writeText(link);
      toast('Link copied: whoever opens it watches you drive');
    } catch {
      toast(link);
    }
  }
}
