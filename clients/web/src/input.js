/**
 * Keys as the wire wants them: the state now plus the last changes, numbered. Pure: time comes in as an argument.
 *
 * The `input` channel loses messages, so every change is said again for a moment, and a held key says so slowly:
 *
 *   change  |x-x-x-x-x-x-x-x|........x............x........   x = one message
 *            BURST_MS at RESEND_MS    HOLD_MS apart while keys are held
 *
 * Knows no keyboard and no channel.
 */

export const RESEND_MS = 40;
export const BURST_MS = 300;
export const HOLD_MS = 500;
export const EDGES = 8;
const HELD_MAX = 16;

/** @typedef {import('./messages.js').Input} Input */
/** @typedef {import('./messages.js').KeyEdge} KeyEdge */

export class Keys {
  constructor() {
    this.seq = 0;
    /** @type {Set<string>} */
    this.held = new Set();
    /** @type {KeyEdge[]} */
    this.edges = [];
    this.unsaid = false;
    this.changed_ms = -Infinity;
    this.sent_ms = 0;
  }

  /** A new connection: the server counts from 1 again. */
  restart() {
    Object.assign(this, new Keys());
  }

  /**
   * A key goes down or up. Returns the change's sequence number, or 0 when nothing changed (key repeat, stray keyup).
   * @param {string} key KeyboardEvent.code
   * @param {boolean} down
   * @param {number} now_ms
   */
  set(key, down, now_ms) {
    if (down === this.held.has(key)) return 0;
    if (down && this.held.size >= HELD_MAX) return 0;
    if (down) this.held.add(key);
    else this.held.delete(key);
    this.seq += 1;
    this.edges.push({ seq: this.seq, key, down });
    if (this.edges.length > EDGES) this.edges.shift();
    this.unsaid = true;
    this.changed_ms = now_ms;
    return this.seq;
  }

  /**
   * The window lost the keyboard: nothing is held any more. Returns whether anything was.
   * @param {number} now_ms
   */
  releaseAll(now_ms) {
    const held = [...this.held];
    for (const key of held) this.set(key, false, now_ms);
    return held.length > 0;
  }

  /**
   * The message to send now.
   * @param {number} now_ms
   * @returns {Input}
   */
  message(now_ms) {
    this.unsaid = false;
    this.sent_ms = now_ms;
    return {
      type: 'input',
      seq: this.seq,
      held: [...this.held],
      edges: [...this.edges],
      pointer: [0, 0],
      sent_ms: now_ms,
    };
  }

  /**
   * Milliseconds from now to the next message, 0 = send at once, Infinity = nothing to say.
   * @param {number} now_ms
   */
  due(now_ms) {
    if (this.unsaid) return 0;
    const burst = this.sent_ms + RESEND_MS;
    if (burst <= this.changed_ms + BURST_MS) return Math.max(0, burst - now_ms);
    if (this.held.size > 0) return Math.max(0, this.sent_ms + HOLD_MS - now_ms);
    return Infinity;
  }
}
