/**
 * The caps: one button per control. Outlined = pressed here; filled = the frame on screen was made with it.
 *
 * Fingers press by where they are and slide from cap to cap; several may rest on one. A keyboard on a cap holds it with
 * Enter or Space; a click without a pointer (a switch, a screen reader) holds it until the next one.
 */

import { element, make } from '../page/dom.js';
import { pressTime } from './keyboard.js';
import { capsAt, layout } from './layout.js';

/** @typedef {import('../../sdk/messages.js').ControlView} ControlView */

const SLOP = 7;
/** @type {Record<string, string>} */
const GLYPHS = {
  ArrowLeft: '←', ArrowRight: '→', ArrowUp: '↑', ArrowDown: '↓', Space: '␣', Enter: '↵', ShiftLeft: '⇧', ShiftRight: '⇧',
  PageUp: '⇞', PageDown: '⇟', Tab: '⇥', Backspace: '⌫',
};

export class Caps {
  /**
   * @param {{
   *   press: (source: string, key: string, down: boolean, at_ms: number) => void, letGo: (source: string) => void,
   * }} to
   */
  constructor(to) {
    this.to = to;
    this.root = element('keys', HTMLElement);
    /** @type {{ control: ControlView, cap: HTMLButtonElement }[]} */
    this.caps = [];
    /** Letters of this keyboard by code, where the browser tells. @type {Map<string, string>} */
    this.letters = new Map();
    /** Which caps each finger is on. @type {Map<number, number[]>} */
    this.fingers = new Map();
    /** Caps held by a click without a pointer. @type {Set<number>} */
    this.latched = new Set();
    this.before = '';
    this.#listen();
    void this.#learnLetters();
  }

  /** @param {ControlView[]} controls */
  show(controls) {
    const now = JSON.stringify(controls);
    if (now === this.before) return;
    this.before = now;
    this.caps = controls.map((control, index) => ({ control, cap: this.#cap(control, index) }));
    const { cross, left, right } = layout(controls);
    const clusters = [['left', left], ['right', right]].map(([side, slots]) => {
      const cluster = make('div', { class: `cluster ${side}` });
      for (const { index, direction } of /** @type {import('./layout.js').Slot[]} */ (slots)) {
        const cap = this.caps[index]?.cap;
        if (!cap) continue;
        if (direction) cap.dataset.direction = direction;
        cluster.append(cap);
      }
      cluster.classList.toggle('pad', cluster.querySelector('[data-direction]') !== null);
      return cluster;
    });
    this.root.replaceChildren(...clusters.filter((cluster) => cluster.childElementCount > 0));
    this.root.classList.toggle('cross', cross);
    document.body.classList.toggle('many-controls', controls.length > 6);
  }

  /** Which controls this page steers, of several people who drive; null = all, or none at all. @param {readonly number[] | null} controls */
  own(controls) {
    this.caps.forEach(({ cap }, index) => {
      const theirs = controls !== null && !controls.includes(index);
      cap.classList.toggle('theirs', theirs);
      if (theirs) cap.setAttribute('aria-disabled', 'true');
      else cap.removeAttribute('aria-disabled');
    });
  }

  /** @param {string} key */
  owns(key) {
    return this.caps.some(({ control, cap }) => control.keys.includes(key) && !cap.classList.contains('theirs'));
  }

  /**
   * @param {ReadonlySet<string>} held keys down on this page
   * @param {readonly [number, number][]} levels
   */
  pressed(held, levels) {
    const partly = new Set(levels.map(([control]) => control));
    this.caps.forEach(({ control, cap }, index) => {
      const down = partly.has(index) || control.keys.some((key) => held.has(key));
      if (cap.classList.toggle('pressed', down) !== (cap.getAttribute('aria-pressed') === 'true')) {
        cap.setAttribute('aria-pressed', String(down));
      }
    });
  }

  /** @param {readonly number[]} values the receipt's controls, 0..1, in the card's order */
  applied(values) {
    this.caps.forEach(({ cap }, i) => {
      const value = values[i] ?? 0;
      cap.classList.toggle('applied', value > 0);
      const share = value > 0 && value < 1 ? `${Math.round(100 * value)}%` : '';
      if (cap.style.getPropertyValue('--share') !== share) cap.style.setProperty('--share', share);
    });
  }

  /** Nothing is latched any more: the wheel is somebody else's. */
  unlatch() {
    for (const index of this.latched) this.to.letGo(`cap:${index}`);
    this.latched.clear();
  }

  // ---- inside -------------------------------------------------------------------------------------------------------

  #listen() {
    const { root } = this;
    root.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || !(event.target instanceof Element) || !event.target.closest('.cap')) return;
      event.preventDefault();
      root.setPointerCapture(event.pointerId);
      this.#finger(event);
    });
    root.addEventListener('pointermove', (event) => {
      if (this.fingers.has(event.pointerId)) this.#finger(event);
    });
    for (const end of /** @type {const} */ (['pointerup', 'pointercancel', 'lostpointercapture'])) {
      root.addEventListener(end, (event) => this.#lift(event.pointerId));
    }
    root.addEventListener('contextmenu', (event) => event.preventDefault());
  }

  /** A finger lies on these caps now. @param {PointerEvent} event */
  #finger(event) {
    const boxes = this.caps.map(({ cap }) => cap.getBoundingClientRect());
    const now = capsAt(boxes, event.clientX, event.clientY, SLOP);
    const before = this.fingers.get(event.pointerId) ?? [];
    this.fingers.set(event.pointerId, now);
    const source = `touch:${event.pointerId}`;
    for (const index of before) if (!now.includes(index)) this.#press(source, index, false, event);
    for (const index of now) if (!before.includes(index)) this.#press(source, index, true, event);
  }

  /** @param {number} pointer */
  #lift(pointer) {
    if (this.fingers.delete(pointer)) this.to.letGo(`touch:${pointer}`);
  }

  /**
   * @param {string} source
   * @param {number} index
   * @param {boolean} down
   * @param {Event} event
   */
  #press(source, index, down, event) {
    const key = this.caps[index]?.control.keys[0];
    if (key !== undefined) this.to.press(source, key, down, pressTime(event));
  }

  /**
   * @param {ControlView} control
   * @param {number} index
   */
  #cap(control, index) {
    const cap = make('button', { class: 'cap' }, [make('b', { text: this.#glyph(control) }), make('span', { text: control.name })]);
    cap.type = 'button';
    cap.dataset.control = control.name;
    cap.setAttribute('aria-label', control.name);
    cap.setAttribute('aria-pressed', 'false');
    cap.title = `${control.name}: ${control.keys.map((key) => this.keyName(key)).join(' or ')}`;
    const held = (/** @type {KeyboardEvent} */ event, /** @type {boolean} */ down) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      if (!event.repeat) this.#press('caps', index, down, event);
    };
    cap.addEventListener('keydown', (event) => held(event, true));
    cap.addEventListener('keyup', (event) => held(event, false));
    cap.addEventListener('blur', () => this.to.letGo('caps'));
    cap.addEventListener('click', (event) => {
      if (event.detail === 0) this.#latch(index, event);
    });
    return cap;
  }

  /**
   * @param {number} index
   * @param {Event} event
   */
  #latch(index, event) {
    const down = !this.latched.delete(index);
    if (down) this.latched.add(index);
    this.#press(`cap:${index}`, index, down, event);
  }

  /** @param {ControlView} control */
  #glyph(control) {
    const arrow = control.keys.find((key) => key.startsWith('Arrow'));
    return this.keyName(arrow ?? control.keys[0] ?? '');
  }

  /** What is printed on a key of this keyboard. @param {string} code */
  keyName(code) {
    return GLYPHS[code] ?? this.letters.get(code)?.toUpperCase() ?? code.replace(/^(Key|Digit)/, '');
  }

  async #learnLetters() {
    const keyboard = /** @type {{ getLayoutMap?: () => Promise<Map<string, string>> } | undefined} */ (
      /** @type {any} */ (navigator).keyboard
    );
    try {
      this.letters = (await keyboard?.getLayoutMap?.()) ?? new Map();
    } catch {
      return; // a foreign frame may not ask; the names of the American layout stay
    }
    const controls = this.caps.map(({ control }) => control);
    this.before = '';
    if (controls.length > 0) this.show(controls);
  }
}
