/**
 * What is held, as the wire wants it: the state now plus the last changes, numbered. Pure: time comes in as an argument.
 *
 * Every source (keyboard, touch, each pad, a program) holds its own keys and levels and releases only those; a key is
 * down while any source holds it, a control's level is the largest that any source gives it.
 *
 * The `input` channel loses messages, so every change is said again for a moment, and a held key says so slowly:
 *
 *   change  |x-x-x-x-x-x-x-x|........x............x........   x = one message
 *            BURST_MS at RESEND_MS    HOLD_MS apart while something is held
 *
 * Knows no keyboard and no channel.
 */

export const RESEND_MS = 40;
export const BURST_MS = 300;
export const HOLD_MS = 500;
export const EDGES = 8;
/** Motion and levels change with every event; messages about them keep this distance. */
export const SMOOTH_MS = 8;
const HELD_MAX = 16;
/** Levels travel in steps: a stick that trembles says nothing. */
const STEPS = 50;

/** @typedef {import('./messages.js').Input} Input */
/** @typedef {import('./messages.js').KeyEdge} KeyEdge */

export class Hold {
  constructor() {
    this.seq = 0;
    /** Keys that are down, in the order of coming. @type {Set<string>} */
    this.held = new Set();
    /** @type {Map<string, Set<string>>} */
    this.sources = new Map();
    /** Control index to level 0..1, by source. @type {Map<string, Map<number, number>>} */
    this.levels = new Map();
    /** @type {KeyEdge[]} */
    this.edges = [];
    /** Motion since the connection began, in picture widths and heights. @type {[number, number]} */
    this.pointer = [0, 0];
    /** @type {'' | 'smooth' | 'edge'} */
    this.unsaid = '';
    this.changed_ms = -Infinity;
    this.sent_ms = 0;
  }

  /** A new connection: the server counts from 1 again. What sources hold is pressed anew. @param {number} now_ms */
  restart(now_ms) {
    const { sources, levels, held } = this;
    Object.assign(this, new Hold(), { sources, levels });
    for (const key of held) this.#edge(key, true, now_ms);
    if (this.level().length > 0) this.#change('smooth', now_ms);
  }

  /**
   * A source presses or releases a key. Returns the change's sequence number, or 0 when nothing changed for the world.
   * @param {string} source
   * @param {string} key KeyboardEvent.code
   * @param {boolean} down
   * @param {number} now_ms
   */
  set(source, key, down, now_ms) {
    const own = this.sources.get(source) ?? new Set();
    if (down === own.has(key)) return 0;
    if (down && !this.held.has(key) && this.held.size >= HELD_MAX) return 0;
    if (down) own.add(key);
    else own.delete(key);
    this.sources.set(source, own);
    const still = [...this.sources.values()].some((keys) => keys.has(key));
    return still === this.held.has(key) ? 0 : this.#edge(key, still, now_ms);
  }

  /**
   * A source sets how far a control is pressed, 0..1. Returns whether that changed anything.
   * @param {string} source
   * @param {number} control index in the card's controls
   * @param {number} value
   * @param {number} now_ms
   */
  setLevel(source, control, value, now_ms) {
    const own = this.levels.get(source) ?? new Map();
    const rounded = Math.round(Math.min(1, Math.max(0, value)) * STEPS) / STEPS;
    if ((own.get(control) ?? 0) === rounded) return false;
    if (rounded === 0) own.delete(control);
    else own.set(control, rounded);
    this.levels.set(source, own);
    this.#change('smooth', now_ms);
    return true;
  }

  /**
   * The pointer moved, in picture widths and heights.
   * @param {number} dx
   * @param {number} dy
   * @param {number} now_ms
   */
  move(dx, dy, now_ms) {
    if (!(Math.abs(dx) + Math.abs(dy) > 0)) return;
    this.pointer = [this.pointer[0] + dx, this.pointer[1] + dy];
    this.#change('smooth', now_ms);
  }

  /** Levels of all sources: pairs of control index and value, zeros left out. @returns {[number, number][]} */
  level() {
    /** @type {Map<number, number>} */
    const most = new Map();
    for (const own of this.levels.values()) {
      for (const [control, value] of own) most.set(control, Math.max(value, most.get(control) ?? 0));
    }
    return [...most].sort(([a], [b]) => a - b);
  }

  /**
   * A source lets go of everything. Returns whether it held anything.
   * @param {string} source
   * @param {number} now_ms
   */
  release(source, now_ms) {
    const keys = [...(this.sources.get(source) ?? [])];
    const levels = [...(this.levels.get(source) ?? new Map()).keys()];
    for (const key of keys) this.set(source, key, false, now_ms);
    for (const control of levels) this.setLevel(source, control, 0, now_ms);
    return keys.length + levels.length > 0;
  }

  /** Nothing is held any more. Returns whether anything was. @param {number} now_ms */
  releaseAll(now_ms) {
    const sources = new Set([...this.sources.keys(), ...this.levels.keys()]);
    return [...sources].map((source) => this.release(source, now_ms)).some(Boolean);
  }

  /**
   * The message to send now.
   * @param {number} now_ms
   * @returns {Input}
   */
  message(now_ms) {
    this.unsaid = '';
    this.sent_ms = now_ms;
    const levels = this.level();
    return {
      type: 'input',
      seq: this.seq,
      held: [...this.held],
      edges: [...this.edges],
      pointer: [...this.pointer],
      sent_ms: now_ms,
      ...(levels.length > 0 && { levels }),
    };
  }

  /**
   * Milliseconds from now to the next message, 0 = send at once, Infinity = nothing to say.
   * @param {number} now_ms
   */
  due(now_ms) {
    if (this.unsaid === 'edge') return 0;
    if (this.unsaid === 'smooth') return Math.max(0, this.sent_ms + SMOOTH_MS - now_ms);
    const burst = this.sent_ms + RESEND_MS;
    if (burst <= this.changed_ms + BURST_MS) return Math.max(0, burst - now_ms);
    if (this.held.size > 0 || this.level().length > 0) return Math.max(0, this.sent_ms + HOLD_MS - now_ms);
    return Infinity;
  }

  /**
   * @param {string} key
   * @param {boolean} down
   * @param {number} now_ms
   */
  #edge(key, down, now_ms) {
    if (down) this.held.add(key);
    else this.held.delete(key);
    this.#change('edge', now_ms);
    this.edges.push({ seq: this.seq, key, down });
    if (this.edges.length > EDGES) this.edges.shift();
    return this.seq;
  }

  /**
   * @param {'smooth' | 'edge'} kind
   * @param {number} now_ms
   */
  #change(kind, now_ms) {
    this.seq += 1;
    this.changed_ms = now_ms;
    if (this.unsaid !== 'edge') this.unsaid = kind;
  }
}
