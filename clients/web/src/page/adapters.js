/** Adapters beside the world's weights: which of the server's, and how strongly each acts. Knows no connection. */

import { element, make, say } from './dom.js';
import { Panel } from './popover.js';

/** @typedef {import('../../sdk/messages.js').AdapterChoice} AdapterChoice */

const MOST = 4;

/** Name and strength, in the order of the list; 0 = it is not there. @param {[string, number][]} strengths @returns {AdapterChoice[]} */
export function stackOf(strengths) {
  return strengths.filter(([, scale]) => scale !== 0).slice(0, MOST).map(([name, scale]) => ({ name, scale }));
}

/** How strong one is, beside its slider. @param {HTMLInputElement} slider */
function said(slider) {
  const output = make('output', { text: 'off' });
  slider.addEventListener('input', () => show(slider));
  return output;
}

/** @param {HTMLInputElement} slider */
function show(slider) {
  const strength = slider.value === '0' ? 'off' : slider.value;
  slider.setAttribute('aria-valuetext', strength);
  const output = slider.parentElement?.querySelector('output');
  if (output) output.textContent = strength;
}

export class Adapters {
  /** @param {(stack: AdapterChoice[]) => void} send */
  constructor(send) {
    this.send = send;
    this.button = element('adapters', HTMLButtonElement);
    this.list = element('adapters-list', HTMLElement);
    /** @type {Map<string, HTMLInputElement>} */
    this.sliders = new Map();
    this.said = element('adapters-said', HTMLElement);
    new Panel(element('adapters-panel', HTMLElement), this.button);
  }

  /** What the server has; none hides the control. @param {string[]} names @param {AdapterChoice[]} stack */
  offer(names, stack) {
    this.button.hidden = names.length === 0;
    this.sliders = new Map(names.map((name) => [name, this.#slider(name)]));
    this.list.replaceChildren(
      ...[...this.sliders].map(([name, slider]) => make('label', {}, [make('span', { text: name }), said(slider), slider])),
    );
    this.changed(stack);
  }

  /** What the world has now. @param {AdapterChoice[]} stack */
  changed(stack) {
    for (const [name, slider] of this.sliders) {
      slider.value = String(stack.find((choice) => choice.name === name)?.scale ?? 0);
      show(slider);
    }
  }

  /** What was asked for is not so. @param {AdapterChoice[]} stack @param {string} why */
  refused(stack, why) {
    this.changed(stack);
    say(this.said, why);
  }

  /** @param {boolean} able */
  enable(able) {
    this.button.disabled = !able;
    for (const slider of this.sliders.values()) slider.disabled = !able;
  }

  /** @param {string} name */
  #slider(name) {
    const slider = document.createElement('input');
    Object.assign(slider, { type: 'range', min: '-1', max: '2', step: '0.25', value: '0' });
    slider.setAttribute('aria-label', `Strength of ${name}`);
    slider.addEventListener('change', () => {
      say(this.said, '');
      this.send(stackOf([...this.sliders].map(([each, { value }]) => [each, Number(value)])));
    });
    return slider;
  }
}
