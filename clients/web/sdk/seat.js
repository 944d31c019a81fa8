/**
 * This tab's seat in a room: the token that takes the same seat again after a reload, and whether it drove.
 * A copied tab has the same token; whoever connects last has the seat, and says so to the other tabs.
 */

/** @typedef {import('./messages.js').Role} Role */

export class Seat {
  /**
   * @param {string} room
   * @param {import('./storage.js').Memory} memory
   * @param {string | null} [access] the token that opens the room, where its server asks for one
   */
  constructor(room, memory, access = null) {
    this.access = access;
    this.key = `worldroom:${room}`;
    this.memory = memory;
    this.token = memory.get(this.key);
    this.tab = Math.random().toString(36).slice(2);
    this.line = channel();
  }

  /** What it was when it was here last. @returns {Role | null} */
  get role() {
    const role = this.memory.get(`${this.key}:role`);
    return role === 'driver' || role === 'spectator' ? role : null;
  }

  /** @param {Role} role */
  was(role) {
    if (role !== this.role) this.memory.set(`${this.key}:role`, role);
  }

  /** @param {string} token */
  take(token) {
    this.token = token;
    this.memory.set(this.key, token);
    this.line?.postMessage({ token, tab: this.tab });
  }

  forget() {
    this.token = null;
    this.memory.remove(this.key);
    this.memory.remove(`${this.key}:role`);
  }

  /** @param {() => void} gone called when another tab took this seat */
  onTaken(gone) {
    if (!this.line) return;
    this.line.onmessage = (event) => {
      if (event.data.tab !== this.tab && this.token !== null && event.data.token === this.token) gone();
    };
  }
}

/** @returns {BroadcastChannel | null} where tabs hear each other; null where they may not */
function channel() {
  try {
    return new BroadcastChannel('worldroom');
  } catch {
    return null;
  }
}
