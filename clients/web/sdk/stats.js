/**
 * Figures from `getStats`, as differences of two readings. Every field may be absent (browsers differ, old ones more):
 * a figure without its field is undefined and the HUD shows a dash. Pure.
 */

/**
 * @typedef {{
 *   at_ms: number, frames?: number, bytes?: number, buffer_s?: number, buffered?: number, fps?: number, rtt_s?: number,
 * }} Reading
 */
/** @typedef {{ fps?: number, kbps?: number, buffer_ms?: number, rtt_ms?: number }} Figures */

/**
 * @param {Iterable<[string, unknown]>} report an RTCStatsReport, or anything shaped like one
 * @param {number} now_ms for entries without a time of their own
 * @returns {Reading}
 */
export function readStats(report, now_ms) {
  /** @type {Reading} */
  const reading = { at_ms: now_ms };
  for (const [, entry] of report) {
    if (typeof entry !== 'object' || entry === null) continue;
    const stat = /** @type {Record<string, unknown>} */ (entry);
    if (stat.type === 'inbound-rtp' && (stat.kind ?? stat.mediaType ?? 'video') === 'video') {
      reading.at_ms = number(stat.timestamp) ?? now_ms;
      reading.frames = number(stat.framesDecoded);
      reading.bytes = number(stat.bytesReceived);
      reading.buffer_s = number(stat.jitterBufferDelay);
      reading.buffered = number(stat.jitterBufferEmittedCount);
      reading.fps = number(stat.framesPerSecond);
    }
    if (stat.type === 'candidate-pair' && (stat.nominated === true || stat.state === 'succeeded')) {
      reading.rtt_s = number(stat.currentRoundTripTime) ?? reading.rtt_s;
    }
  }
  return reading;
}

/**
 * @param {Reading} before
 * @param {Reading} now
 * @returns {Figures}
 */
export function figures(before, now) {
  const seconds = (now.at_ms - before.at_ms) / 1000;
  const frames = grown(before.frames, now.frames);
  const bytes = grown(before.bytes, now.bytes);
  const waited_s = grown(before.buffer_s, now.buffer_s);
  const emitted = grown(before.buffered, now.buffered);
  return {
    fps: frames !== undefined && seconds > 0 ? frames / seconds : now.fps,
    kbps: bytes !== undefined && seconds > 0 ? (bytes * 8) / 1000 / seconds : undefined,
    buffer_ms: waited_s !== undefined && emitted ? (waited_s / emitted) * 1000 : undefined,
    rtt_ms: now.rtt_s === undefined ? undefined : now.rtt_s * 1000,
  };
}

/** @param {unknown} value */
function number(value) {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/**
 * @param {number | undefined} before
 * @param {number | undefined} now
 */
function grown(before, now) {
  return before === undefined || now === undefined || now < before ? undefined : now - before;
}
