/**
 * The key overlay: one cap per control. Outlined = pressed here; filled = the frame on screen was made with it.
 * The caps are buttons too, so a finger or a mouse can press them.
 */

import { element, make } from './dom.js';
import { pressTime } from './keyboard.js';

/** @typedef {import('./messages.js').ControlView} ControlView */

/** @type {Record<string, string>} */
const GLYPHS = { ArrowLeft: '←', ArrowRight: '→', ArrowUp: '↑', ArrowDown: '↓', Space: '␣', Enter: '↵', ShiftLeft: '⇧' };
/** @type {Record<string, string>} */
const AREAS = { ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down' };

export class KeyOverlay {
  /** @param {import('./keyboard.js').Press} press */
  constructor(press) {
    this.press = press;
    this.root = element('keys', HTMLElement);
    /** @type {{ control: ControlView, cap: HTMLButtonElement }[]} */
    this.caps = [];
  }

  /** @param {ControlView[]} controls */
  show(controls) {
    if (JSON.stringify(controls) === JSON.stringify(this.caps.map(({ control }) => control))) return;
    this.caps = controls.map((control) => ({ control, cap: this.#cap(control) }));
    this.root.replaceChildren(...this.caps.map(({ cap }) => cap));
    this.root.classList.toggle('row', !this.caps.some(({ cap }) => cap.style.gridArea !== ''));
  }

  /** @param {ReadonlySet<string>} held keys down on this page */
  pressed(held) {
    for (const { control, cap } of this.caps) {
      const down = control.keys.some((key) => held.has(key));
      cap.classList.toggle('pressed', down);
      cap.setAttribute('aria-pressed', String(down));
    }
  }

  /** @param {number[]} values the receipt's controls, 0..1, in the card's order */
  applied(values) {
    this.caps.forEach(({ cap }, i) => cap.classList.toggle('applied', (values[i] ?? 0) > 0));
  }

  /** @param {ControlView} control */
  #cap(control) {
    const key = control.keys[0] ?? '';
    const arrow = control.keys.find((each) => each in AREAS);
    const glyph = GLYPHS[arrow ?? key] ?? key.replace(/^(Key|Digit)/, '');
    const cap = make('button', { class: 'cap' }, [make('b', { text: glyph }), make('span', { text: control.name })]);
    cap.type = 'button';
    cap.dataset.control = control.name;
    cap.setAttribute('aria-label', control.name);
    cap.title = `${control.name}: ${control.keys.map(keyName).join(' or ')}`;
    cap.tabIndex = -1;
    if (arrow) cap.style.gridArea = AREAS[arrow] ?? '';
    const set = (/** @type {boolean} */ down) => (/** @type {PointerEvent} */ event) => {
      event.preventDefault();
      if (down) cap.setPointerCapture(event.pointerId);
      this.press(key, down, pressTime(event));
    };
    cap.addEventListener('pointerdown', set(true));
    cap.addEventListener('pointerup', set(false));
    cap.addEventListener('pointercancel', set(false));
    cap.addEventListener('contextmenu', (event) => event.preventDefault());
    return cap;
  }
}

/** @param {string} code */
function keyName(code) {
  return GLYPHS[code] ?? code.replace(/^(Key|Digit)/, '');
}
