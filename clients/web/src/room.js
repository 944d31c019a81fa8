/**
 * A room as a program sees it: connected until stopped, whatever happens to single connections in between.
 *
 *   connecting -> live -> lost -> connecting -> live ...        elsewhere, ended, no-webrtc, no-h264: stays
 *
 * Usable without the page: `new Room({ name, place, on }).start()`. Knows no DOM.
 */

import { delay_s } from './backoff.js';
import { Refusal, openPeer, support } from './peer.js';

/** @typedef {import('./messages.js').ClientMessage} ClientMessage */
/** @typedef {import('./messages.js').ServerMessage} ServerMessage */
/** @typedef {import('./messages.js').Role} Role */
/** @typedef {import('./peer.js').Peer} Peer */
/**
 * What a person should know about the connection. `until_ms`: when the next attempt comes (performance.now()).
 * `stopped`: the server said that it stops.
 * @typedef {{ phase: 'connecting' | 'live' | 'elsewhere' | 'ended' | 'no-webrtc' | 'no-h264' }
 *   | { phase: 'full' | 'refused', until_ms: number, code: string, queue_place: number, detail: string }
 *   | { phase: 'lost', until_ms: number, detail: string, failures: number, stopped: boolean }} Link
 */
/**
 * @typedef {{
 *   link: (link: Link) => void,
 *   message: (message: ServerMessage) => void,
 *   track: (track: MediaStreamTrack) => void,
 *   closing: () => void,
 * }} RoomEvents
 */
/** A steer before it has an id. @typedef {import('./messages.js').Prompt
 *   | import('./messages.js').PauseOrResume | import('./messages.js').ResetWorld
 *   | import('./messages.js').Feedback | import('./messages.js').PassWheel} Steer */
/** @template T @typedef {T extends unknown ? Omit<T, 'id'> : never} WithoutId */

const FULL = 503;
const TOKEN_REFUSED = [401, 403, 410];
/** Problems after which the server closes the connection for good, and the phase that this page is in then. */
const ENDS = new Map(/** @type {const} */ ([['taken_over', 'elsewhere'], ['room_closed', 'ended']]));
/** The problem that says that the server stops; the page tries to come back. */
const GOING_AWAY = 'going_away';

export class Room {
  /** @param {{ name: string, person?: string | null, role?: Role | null, place: import('./place.js').Place, on: RoomEvents }} options */
  constructor({ name, person = null, role = null, place, on }) {
    this.name = name;
    this.person = person;
    this.role = role;
    this.place = place;
    this.on = on;
    /** @type {Peer | null} */
    this.peer = null;
    this.running = false;
    this.ids = 0;
    this.stopped = false;
    /** Ends the present wait. */
    this.wake = () => {};
    place.onTaken(() => this.#rest('elsewhere'));
  }

  start() {
    if (this.running) return;
    const able = support();
    if (able !== 'ready') {
      this.on.link({ phase: able });
      return;
    }
    this.running = true;
    void this.#run();
  }

  /** @param {string} reason */
  stop(reason) {
    this.running = false;
    this.peer?.close(reason);
    this.wake();
  }

  /**
   * Say something that is answered; returns the id that the answers carry, or 0 when there is no connection.
   * @param {WithoutId<Steer>} steer
   */
  steer(steer) {
    const id = this.ids + 1;
    if (!this.peer?.send('control', /** @type {Steer} */ ({ ...steer, id }))) return 0;
    this.ids = id;
    return id;
  }

  /** @param {import('./messages.js').Input} message */
  input(message) {
    return this.peer?.send('input', message) ?? false;
  }

  /** @param {import('./messages.js').Shown} message */
  shown(message) {
    return this.peer?.send('control', message) ?? false;
  }

  /**
   * Begin the world from a file; resolves to what the server had against it, or null.
   * @param {Blob} file
   * @returns {Promise<string | null>}
   */
  async firstFrame(file) {
    const headers = { 'Content-Type': file.type, Authorization: `Bearer ${this.place.token ?? ''}` };
    try {
      const path = `/v1/rooms/${encodeURIComponent(this.name)}/first_frame`;
      const response = await fetch(path, { method: 'POST', headers, body: file });
      return response.ok ? null : String((await response.json()).detail);
    } catch {
      return 'Not connected: nothing was sent';
    }
  }

  /** @returns {Promise<RTCStatsReport | null>} */
  async stats() {
    const pc = this.peer?.pc;
    return pc && pc.connectionState === 'connected' ? pc.getStats() : null;
  }

  async #run() {
    let failures = 0;
    while (this.running) {
      if (failures === 0) this.on.link({ phase: 'connecting' });
      try {
        const peer = await openPeer(this.#wish(), { ...this.on, message: (message) => this.#hear(message) });
        if (!this.running) return peer.close('stopped');
        failures = 0;
        this.stopped = false;
        this.peer = peer;
        this.place.take(peer.token);
        this.on.link({ phase: 'live' });
        const reason = await peer.ended;
        this.peer = null;
        if (!this.running) return;
        await this.#pause(this.#lost(new Error(reason), failures));
      } catch (error) {
        if (!this.running) return;
        if (error instanceof Refusal && error.code === 'no_h264') {
          this.running = false;
          this.on.link({ phase: 'no-h264' });
          return;
        }
        await this.#pause(this.#lost(error, failures));
      }
      failures += 1;
    }
  }

  #wish() {
    return { room: this.name, person: this.person, token: this.place.token, role: this.role };
  }

  /**
   * What a failure means for the person, and when to try again.
   * @param {unknown} error
   * @param {number} failures
   * @returns {Link & { until_ms: number }}
   */
  #lost(error, failures) {
    const retry_after_s = error instanceof Refusal ? error.retry_after_s : 0;
    const until_ms = performance.now() + 1000 * delay_s(failures, Math.random(), retry_after_s);
    const detail = error instanceof Error ? error.message : String(error);
    if (!(error instanceof Refusal)) return { phase: 'lost', until_ms, detail, failures, stopped: this.stopped };
    if (TOKEN_REFUSED.includes(error.status)) this.place.forget();
    const { code, queue_place } = error;
    return { phase: error.status === FULL ? 'full' : 'refused', until_ms, code, queue_place, detail };
  }

  /**
   * Wait for the next attempt; `wake` or the network coming back end it early.
   * @param {Link & { until_ms: number }} link
   */
  async #pause(link) {
    this.on.link(link);
    const retry = new AbortController();
    this.wake = () => retry.abort();
    if (link.phase === 'lost') addEventListener('online', this.wake, { signal: retry.signal });
    const timer = setTimeout(this.wake, Math.max(0, link.until_ms - performance.now()));
    await new Promise((resolve) => retry.signal.addEventListener('abort', resolve));
    clearTimeout(timer);
  }

  /** @param {ServerMessage} message */
  #hear(message) {
    const problem = message.type === 'problem' ? message.code : '';
    const end = ENDS.get(/** @type {'taken_over' | 'room_closed'} */ (problem));
    if (end) return this.#rest(end);
    if (problem !== GOING_AWAY) return this.on.message(message);
    this.stopped = true;
    this.peer?.close('the server stops');
  }

  /** Leave it at that until somebody starts the room again. @param {'elsewhere' | 'ended'} phase */
  #rest(phase) {
    if (!this.running) return;
    this.stop(phase);
    this.on.link({ phase });
  }
}
