/**
 * Motion-to-photon, measured in band: press times by sequence number, receipts and shown frames joined by RTP timestamp.
 *
 *   press ── up ──> server: hold wait step decode encode pace ──> down ── receive ──> shown
 *                          └───────── from the receipt ────────┘
 *   network = shown - press - server parts - display        display = shown - receive (jitter buffer, decode, vsync)
 *
 * Pure: times are arguments, all on this page's clock. Knows no video element and no channel.
 */

/** @typedef {import('./messages.js').Receipt} Receipt */

export const PARTS = /** @type {const} */ (['hold', 'wait', 'step', 'decode', 'encode', 'pace', 'network', 'display']);

/** @typedef {{ seq: number, ms: number, parts: number[] }} Sample `parts` in the order of PARTS, in ms */
/** @typedef {{ receipt: Receipt, shown_ms: number, samples: Sample[] }} Joined one frame that was seen, and the presses it answers */
/** @typedef {{ shown_ms: number, receive_ms: number | undefined }} Seen */

const PENDING = 256;
/** The sender's and the receiver's idea of one frame's timestamp may differ by rounding. */
const RTP_SLACK = [0, 1, -1, 2, -2];

/**
 * The difference of two RTP timestamps in ticks, right across the 32-bit wrap-around.
 * @param {number} a
 * @param {number} b
 */
export function rtpSince(a, b) {
  return (a - b) | 0;
}

/**
 * Nearest-rank percentile; NaN for no values.
 * @param {readonly number[]} values
 * @param {number} p 0..100
 */
export function percentile(values, p) {
  if (values.length === 0) return NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const rank = Math.max(1, Math.ceil((p / 100) * sorted.length));
  return /** @type {number} */ (sorted[rank - 1]);
}

export class Latency {
  /** @param {number} window samples kept for median and p95 */
  constructor(window = 240) {
    this.window = window;
    /** @type {Map<number, number>} */
    this.presses = new Map();
    /** @type {Map<number, Receipt>} */
    this.receipts = new Map();
    /** @type {Map<number, Seen>} */
    this.seen = new Map();
    /** @type {Sample[]} */
    this.samples = [];
    this.joined = 0;
  }

  /**
   * @param {number} seq
   * @param {number} press_ms
   */
  pressed(seq, press_ms) {
    keep(this.presses, seq, press_ms);
  }

  /**
   * @param {Receipt} receipt
   * @returns {Joined | null} the frame, when it has been shown already
   */
  receipt(receipt) {
    const seen = take(this.seen, receipt.rtp);
    if (seen) return this.#join(receipt, seen);
    keep(this.receipts, receipt.rtp >>> 0, receipt);
    return null;
  }

  /**
   * A frame is on the screen.
   * @param {number} rtp
   * @param {number} shown_ms
   * @param {number} [receive_ms] when its last packet arrived, where the browser tells
   * @returns {Joined | null} the frame, when its receipt is here already
   */
  shown(rtp, shown_ms, receive_ms) {
    const receipt = take(this.receipts, rtp);
    const seen = { shown_ms, receive_ms };
    if (receipt) return this.#join(receipt, seen);
    keep(this.seen, rtp >>> 0, seen);
    return null;
  }

  /** The world stopped or began anew: an answer to these presses would measure that and not the way. */
  forgetPresses() {
    this.presses.clear();
  }

  /** Forget what waits to be joined: a new connection numbers its frames anew. Samples stay. */
  restart() {
    this.presses.clear();
    this.receipts.clear();
    this.seen.clear();
  }

  /** @returns {{ n: number, median: number, p95: number, parts: number[] }} over the window; parts are means */
  summary() {
    const times = this.samples.map((sample) => sample.ms);
    const parts = PARTS.map((_, i) => mean(this.samples.map((sample) => sample.parts[i] ?? 0)));
    return { n: times.length, median: percentile(times, 50), p95: percentile(times, 95), parts };
  }

  /**
   * @param {Receipt} receipt
   * @param {Seen} seen
   * @returns {Joined}
   */
  #join(receipt, seen) {
    this.joined += 1;
    const last_ms = this.presses.get(receipt.input_seq);
    const samples = [];
    for (const [seq, press_ms] of this.presses) {
      if (seq > receipt.input_seq) continue;
      this.presses.delete(seq);
      samples.push(sampleOf(receipt, seen, seq, press_ms, last_ms ?? press_ms));
    }
    this.samples.push(...samples);
    if (this.samples.length > this.window) this.samples.splice(0, this.samples.length - this.window);
    return { receipt, shown_ms: seen.shown_ms, samples };
  }
}

/**
 * `hold` in the receipt is that of its last input; an older press of the same chunk was held longer by their distance.
 * @param {Receipt} receipt
 * @param {Seen} seen
 * @param {number} seq
 * @param {number} press_ms
 * @param {number} last_ms
 * @returns {Sample}
 */
function sampleOf(receipt, seen, seq, press_ms, last_ms) {
  const ms = seen.shown_ms - press_ms;
  const server = [
    receipt.hold_us / 1000 + (last_ms - press_ms),
    receipt.wait_us / 1000,
    receipt.step_us / 1000,
    receipt.decode_us / 1000,
    receipt.encode_us / 1000,
    receipt.pace_us / 1000,
  ];
  const rest = Math.max(0, ms - server.reduce((sum, part) => sum + part, 0));
  const display = seen.receive_ms === undefined ? 0 : Math.min(rest, Math.max(0, seen.shown_ms - seen.receive_ms));
  return { seq, ms, parts: [...server, rest - display, display] };
}

/**
 * Put into a bounded map; the oldest entry goes.
 * @template V
 * @param {Map<number, V>} map
 * @param {number} key
 * @param {V} value
 */
function keep(map, key, value) {
  map.set(key, value);
  if (map.size <= PENDING) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}

/**
 * Take the entry of an RTP timestamp out of a map, within the rounding slack.
 * @template V
 * @param {Map<number, V>} map
 * @param {number} rtp
 * @returns {V | undefined}
 */
function take(map, rtp) {
  for (const slack of RTP_SLACK) {
    const key = (rtp + slack) >>> 0;
    const value = map.get(key);
    if (value === undefined) continue;
    map.delete(key);
    return value;
  }
  return undefined;
}

/** @param {number[]} values */
function mean(values) {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
