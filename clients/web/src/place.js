/**
 * This tab's place in a room: the token that takes the same place again after a reload.
 * A copied tab has the same token; whoever connects last has the place, and says so to the other tabs.
 */

export class Place {
  /**
   * @param {string} room
   * @param {Storage} storage
   */
  constructor(room, storage) {
    this.key = `worldroom:${room}`;
    this.storage = storage;
    this.token = storage.getItem(this.key);
    this.tab = Math.random().toString(36).slice(2);
    this.line = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel('worldroom');
  }

  /** @param {string} token */
  take(token) {
    this.token = token;
    this.storage.setItem(this.key, token);
    this.line?.postMessage({ token, tab: this.tab });
  }

  forget() {
    this.token = null;
    this.storage.removeItem(this.key);
  }

  /** @param {() => void} gone called when another tab took this place */
  onTaken(gone) {
    if (!this.line) return;
    this.line.onmessage = (event) => {
      if (event.data.tab !== this.tab && this.token !== null && event.data.token === this.token) gone();
    };
  }
}
