/** The overlay that `?` opens: the keys of this world, shortcuts, pads and fingers, and what each figure means. */

import { element, make } from './dom.js';

/** @typedef {import('../../sdk/messages.js').ControlView} ControlView */

export const SHORTCUTS = /** @type {const} */ ([
  ['p', 'Pause and resume'],
  ['r', 'Start the world anew; Undo follows'],
  ['f', 'Full screen'],
  ['h', 'Figures'],
  ['/', 'Write a prompt; arrow up brings earlier ones back'],
  ['?', 'This help'],
]);

const FIGURES = /** @type {const} */ ([
  ['Motion to photon', 'from your key to the first frame that contains it, on your screen; the median, and the time that 95 of 100 stay below'],
  ['hold', 'the server had your key and the next chunk had not begun'],
  ['wait', 'the chunk had begun and the device was busy with others'],
  ['step', 'the model made the chunk'],
  ['decode', 'latents became a picture'],
  ['encode', 'the picture became video'],
  ['pace', 'everything else until it left, mostly waiting for its time'],
  ['network', 'the way there and back'],
  ['display', 'your browser: buffer, decoding, the next refresh of the screen'],
  ['Buffer', 'how long frames lie in the browser before they are decoded'],
]);

export class Help {
  /** @param {(code: string) => string} keyName */
  constructor(keyName) {
    this.keyName = keyName;
    this.sheet = element('help', HTMLDialogElement);
    /** @type {ControlView[]} */
    this.controls = [];
    this.looks = false;
    element('help-open', HTMLButtonElement).addEventListener('click', () => this.toggle());
    this.sheet.addEventListener('click', (event) => {
      if (event.target === this.sheet) this.sheet.close();
    });
    this.sheet.addEventListener('keydown', (event) => {
      if (event.key === '?') this.sheet.close();
    });
  }

  /**
   * @param {ControlView[]} controls
   * @param {boolean} looks whether the pointer looks around
   */
  about(controls, looks) {
    this.controls = controls;
    this.looks = looks;
  }

  toggle() {
    if (this.sheet.open) return this.sheet.close();
    element('help-body', HTMLElement).replaceChildren(...this.#sections());
    this.sheet.showModal();
    return undefined;
  }

  #sections() {
    const keys = this.controls.map(({ name, keys: codes }) => /** @type {const} */ ([codes.map(this.keyName).join(' or '), name]));
    const others = /** @type {[string, string][]} */ ([
      ['Touch', 'the caps; slide from one to the next'],
      ['Gamepad', 'stick or cross, triggers and buttons; Start pauses'],
      ['Switch', 'each cap is a button: Enter or Space holds it, a click holds it until the next one'],
      ...(this.looks ? [['Mouse', 'click the picture to look around, Escape lets go; a finger drags']] : []),
    ]);
    return [
      section('Keys of this world', keys, true),
      section('Other hands', others, false),
      section('Shortcuts', SHORTCUTS.map(([key, what]) => /** @type {const} */ ([key.toUpperCase(), what])), true),
      section('Figures', FIGURES, false),
    ];
  }
}

/**
 * @param {string} title
 * @param {readonly (readonly [string, string])[]} rows
 * @param {boolean} keys
 */
function section(title, rows, keys) {
  const list = make('dl', {}, rows.flatMap(([term, what]) => [
    make('dt', {}, [keys ? make('kbd', { text: term }) : document.createTextNode(term)]),
    make('dd', { text: what }),
  ]));
  return make('section', {}, [make('h3', { text: title }), list]);
}
