/** Events with types: `on` gives back what takes the listener off again. Knows nothing else. */

/** @template {Record<string, unknown[]>} Events */
export class Emitter {
  constructor() {
    /** @type {Map<keyof Events, Set<(...args: any[]) => void>>} */
    this.listeners = new Map();
  }

  /**
   * @template {keyof Events} K
   * @param {K} event
   * @param {(...args: Events[K]) => void} listener
   * @returns {() => void}
   */
  on(event, listener) {
    const all = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, all.add(listener));
    return () => void all.delete(listener);
  }

  /**
   * @template {keyof Events} K
   * @param {K} event
   * @param {Events[K]} args
   */
  emit(event, ...args) {
    for (const listener of this.listeners.get(event) ?? []) listener(...args);
  }
}
