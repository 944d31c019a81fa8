/**
 * What a page remembers: the browser's storage where it may be used, else this page's memory. Blocked storage throws on
 * access, a full one on writing; neither is a reason not to play.
 */

/** @typedef {{ get: (key: string) => string | null, set: (key: string, value: string) => void, remove: (key: string) => void }} Memory */

/**
 * @param {() => Storage} open e.g. `() => sessionStorage`: the access itself may throw
 * @returns {Memory}
 */
export function memory(open) {
  /** @type {Map<string, string>} */
  const own = new Map();
  const attempt = (/** @type {(storage: Storage) => string | null | void} */ act) => {
    try {
      return act(open()) ?? null;
    } catch {
      return null;
    }
  };
  return {
    get: (key) => own.get(key) ?? attempt((storage) => storage.getItem(key)),
    set: (key, value) => {
      own.set(key, value);
      attempt((storage) => storage.setItem(key, value));
    },
    remove: (key) => {
      own.delete(key);
      attempt((storage) => storage.removeItem(key));
    },
  };
}
