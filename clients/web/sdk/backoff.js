/** How long to wait before the next attempt to connect. Pure. */

const FIRST_S = 0.3;
const MOST_S = 8;

/**
 * Doubles from 0.3 s to 8 s, spread over its upper half so that many pages do not come back at once.
 * What the server asked for is honoured, plus the same spread.
 * @param {number} attempt 0 = the first failure
 * @param {number} random 0..1
 * @param {number} [retry_after_s] the server's wish
 */
export function delay_s(attempt, random, retry_after_s = 0) {
  const grown = Math.min(MOST_S, FIRST_S * 2 ** attempt);
  if (retry_after_s > 0) return retry_after_s + 0.5 * random;
  return grown * (0.5 + 0.5 * random);
}
