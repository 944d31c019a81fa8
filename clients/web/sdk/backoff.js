/** How long to wait before the next attempt to connect. Pure. */

const FIRST_S = 0.3;
const MOST_S = 8;
/** A network may come back any moment, and for a minute the seat waits. */
const HURRY_S = 1;
const SEAT_WAITS_S = 60;

/**
 * Doubles from 0.3 s to 8 s, spread over its upper half so that many pages do not come back at once.
 * What the server asked for is honoured, plus the same spread.
 * @param {number} attempt 0 = the first failure
 * @param {number} random 0..1
 * @param {{ retry_after_s?: number, unheard_s?: number }} [why] the server's wish; or for how long nobody has answered,
 *   which for a minute is no reason to wait longer than a second
 */
export function delay_s(attempt, random, { retry_after_s = 0, unheard_s = Infinity } = {}) {
  const grown = Math.min(unheard_s < SEAT_WAITS_S ? HURRY_S : MOST_S, FIRST_S * 2 ** attempt);
  if (retry_after_s > 0) return retry_after_s + 0.5 * random;
  return grown * (0.5 + 0.5 * random);
}
