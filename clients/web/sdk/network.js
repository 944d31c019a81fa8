/** Tells when the network may be another one: it is back, it changed its kind, or the machine slept. */

const LOOK_MS = 1000;
/** A timer that is so late has slept. */
const SLEPT_MS = 4000;

/** @param {() => void} moved @returns {() => void} which ends it */
export function watchNetwork(moved) {
  const ends = new AbortController();
  const kind = /** @type {EventTarget | undefined} */ (/** @type {any} */ (globalThis.navigator)?.connection);
  if (typeof addEventListener === 'function') addEventListener('online', moved, { signal: ends.signal });
  kind?.addEventListener?.('change', moved, { signal: ends.signal });
  let looked_ms = Date.now();
  const timer = setInterval(() => {
    const now_ms = Date.now();
    if (now_ms - looked_ms > SLEPT_MS) moved();
    looked_ms = now_ms;
  }, LOOK_MS);
  ends.signal.addEventListener('abort', () => clearInterval(timer));
  return () => ends.abort();
}
