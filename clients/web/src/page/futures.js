/** Futures of a moment: another take of it, or several side by side in the picture, and which of them goes on. */

import { element, make } from './dom.js';
import { Panel } from './popover.js';
import { toast } from './toast.js';

/** @typedef {import('../../sdk/messages.js').FutureView} FutureView */
/** @typedef {import('../../sdk/messages.js').Keep} Keep */
/**
 * @typedef {{
 *   fork: (others: number) => Promise<unknown>, again: () => Promise<unknown>,
 *   choose: (keep: Keep, place?: number) => Promise<unknown>,
 * }} Does
 */

const OTHERS = 3;

/** What stands under a future. @param {FutureView} view @param {number} place */
export function caption(view, place) {
  const differs = view.prompt !== '' ? `“${view.prompt}”` : view.held.length > 0 ? view.held.join(' ') : 'another chance';
  return `${place + 1}: ${place === 0 ? 'as it was' : differs}`;
}

export class Futures {
  /** @param {Panel} panel that the buttons are in @param {Does} does */
  constructor(panel, does) {
    this.does = does;
    this.box = element('futures', HTMLElement);
    this.tiles = element('futures-tiles', HTMLElement);
    this.acts = element('futures-acts', HTMLElement);
    this.again = element('future-again', HTMLButtonElement);
    this.several = element('future-several', HTMLButtonElement);
    /** Two takes, one after the other: the earlier one waits. */
    this.earlier = false;
    /** @type {FutureView[]} */
    this.places = [];
    this.drives = false;
    this.again.addEventListener('click', () => {
      panel.close();
      void this.#ask(this.does.again());
    });
    this.several.addEventListener('click', () => {
      panel.close();
      void this.#ask(this.does.fork(OTHERS));
    });
  }

  /** @param {boolean} drives and the world can be steered now */
  enable(drives) {
    this.again.disabled = this.several.disabled = !drives;
    if (drives === this.drives) return;
    this.drives = drives;
    this.#show(this.earlier, this.places);
  }

  /**
   * As the server says it: futures side by side, none = one again; whether an earlier take stands still.
   * @param {FutureView[]} places @param {boolean} earlier
   */
  stand(places, earlier) {
    this.#show(earlier, places);
  }

  /** @param {boolean} earlier @param {FutureView[]} places */
  #show(earlier, places) {
    this.earlier = earlier;
    this.places = places;
    this.box.hidden = places.length === 0 && !(earlier && this.drives);
    this.box.classList.toggle('pair', places.length === 2);
    this.tiles.replaceChildren(...places.map((view, place) => {
      const button = make('button', { text: caption(view, place) });
      button.type = 'button';
      button.disabled = !this.drives;
      button.addEventListener('click', () => this.#choose('this', place));
      return button;
    }));
    /** @type {[string, Keep][]} */
    const acts = places.length > 0 ? [['All alike', 'tie'], ['Skip', 'skip']]
      : [['Keep this take', 'this'], ['Keep the one before', 'other'], ['Alike', 'tie'], ['Skip', 'skip']];
    this.acts.replaceChildren(...(this.drives ? acts : []).map(([text, keep]) => {
      const button = make('button', { class: 'quiet', text });
      button.type = 'button';
      button.addEventListener('click', () => this.#choose(keep));
      return button;
    }));
  }

  /** @param {Keep} keep @param {number} [place] */
  async #choose(keep, place) {
    if (await this.#ask(this.does.choose(keep, place))) this.#show(false, []);
  }

  /** @param {Promise<unknown>} fate @returns {Promise<boolean>} whether it happened */
  async #ask(fate) {
    try {
      await fate;
      return true;
    } catch (error) {
      toast(error instanceof Error ? error.message : 'That was not possible');
      return false;
    }
  }
}
