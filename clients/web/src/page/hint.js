/** What to press first, on the picture, until the world has answered once or some seconds have passed. */

import { element, make } from './dom.js';

const KEY = 'worldroom:hinted';
const SHOWN_MS = 12_000;

export class Hint {
  /** @param {import('../../sdk/storage.js').Memory} memory */
  constructor(memory) {
    this.memory = memory;
    this.box = element('hint', HTMLElement);
    this.timer = 0;
    this.offered = '';
  }

  /**
   * Once for the same controls.
   * @param {import('../../sdk/messages.js').ControlView[]} controls
   * @param {{ touch: boolean, looks: boolean, keyName: (code: string) => string }} how
   */
  offer(controls, { touch, looks, keyName }) {
    const offered = controls.map(({ name }) => name).join();
    if (this.memory.get(KEY) !== null || controls.length === 0 || offered === this.offered) return;
    this.offered = offered;
    const names = controls.slice(0, 4).map(({ name, keys }) => {
      const arrow = keys.find((key) => key.startsWith('Arrow')) ?? keys[0] ?? '';
      return touch ? [document.createTextNode(name)] : [make('kbd', { text: keyName(arrow) }), document.createTextNode(` ${name}`)];
    });
    const parts = names.flatMap((each, i) => (i === 0 ? each : [document.createTextNode(' · '), ...each]));
    const end = touch ? (looks ? ' · drag to look' : '') : looks ? ' · click to look · ? for help' : ' · ? for help';
    this.box.replaceChildren(document.createTextNode(touch ? 'Press the caps: ' : ''), ...parts, document.createTextNode(end));
    this.box.hidden = false;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.done(false), SHOWN_MS);
  }

  /** @param {boolean} [learned] whether the person has steered */
  done(learned = true) {
    if (this.box.hidden) return;
    this.box.hidden = true;
    clearTimeout(this.timer);
    if (learned) this.memory.set(KEY, 'yes');
  }
}
