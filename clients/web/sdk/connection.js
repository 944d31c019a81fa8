/**
 * The way to a room: connected until stopped, whatever happens to single connections in between.
 *
 *   connecting -> live -> lost -> connecting -> live ...        elsewhere, ended, no-webrtc, no-codec: stays
 *
 * Knows no DOM and not what messages mean, but for those that end it.
 */

import { delay_s } from './backoff.js';
import { watchNetwork } from './network.js';
import { openPeer, support } from './peer.js';
import { Refusal } from './signalling.js';

/** @typedef {import('./messages.js').ClientMessage} ClientMessage */
/** @typedef {import('./messages.js').ServerMessage} ServerMessage */
/** @typedef {import('./messages.js').Role} Role */
/** @typedef {import('./peer.js').OpenPeer} OpenPeer */
/**
 * What a person should know about the connection. `until_ms`: when the next attempt comes (performance.now()).
 * `stopped`: the server said that it stops. `since_ms`: when the line was lost.
 * @typedef {{ phase: 'connecting' | 'live' | 'elsewhere' | 'ended' | 'no-webrtc' | 'no-codec' }
 *   | { phase: 'full' | 'refused', until_ms: number, code: string, queue_place: number, detail: string }
 *   | { phase: 'lost', until_ms: number, detail: string, failures: number, stopped: boolean, since_ms: number }} Link
 */
/**
 * @typedef {{
 *   link: (link: Link) => void,
 *   message: (message: ServerMessage) => void,
 *   track: (track: MediaStreamTrack) => void,
 *   closing: () => void,
 * }} ConnectionEvents
 */
const FULL = 503;
const TOKEN_REFUSED = [401, 403, 410];
/** Problems after which the server closes the connection for good, and the phase that this page is in then. */
const ENDS = new Map(/** @type {const} */ ([['taken_over', 'elsewhere'], ['room_closed', 'ended'], ['left', 'ended']]));
/** The problem that says that the server stops; the page tries to come back. */
const GOING_AWAY = 'going_away';

export class Connection {
  /**
   * @param {{
   *   base: string, name: string, person?: string | null, role?: Role | null, seat: import('./seat.js').Seat,
   *   consent?: boolean, card?: string | null, drivers?: string | null, on: ConnectionEvents, way?: import('./peer.js').Way,
   * }} options `way`: how a connection comes about, if not directly
   */
  constructor({ base, name, person = null, role = null, seat, consent = false, card = null, drivers = null, on, way = openPeer }) {
    this.way = way;
    this.base = base;
    this.name = name;
    this.person = person;
    this.consent = consent;
    this.card = card;
    this.drivers = drivers;
    /** What this page came as; a seat that is lost is taken again as what it was. */
    this.role = role;
    this.seat = seat;
    this.on = on;
    /** @type {OpenPeer | null} */
    this.peer = null;
    this.running = false;
    this.stopped = false;
    this.lost_ms = 0;
    /** Ends the present wait. */
    this.wake = () => {};
    /** Ends the present attempt. */
    this.attempt = new AbortController();
    this.failures = 0;
    this.unwatch = () => {};
    seat.onTaken(() => this.#rest('elsewhere'));
  }

  start() {
    if (this.running) return;
    const able = support();
    if (able !== 'ready') {
      this.on.link({ phase: able });
      return;
    }
    this.running = true;
    this.unwatch = watchNetwork(() => this.#moved());
    void this.#run();
  }

  /** @param {string} reason */
  stop(reason) {
    this.running = false;
    this.unwatch();
    this.attempt.abort();
    this.peer?.close(reason);
    this.wake();
  }

  /**
   * Whether it left.
   * @param {import('./peer.js').ChannelName} channel
   * @param {ClientMessage} message
   */
  send(channel, message) {
    return this.peer?.send(channel, message) ?? false;
  }

  /** The network may be another one: what waits for the old one begins anew. */
  #moved() {
    this.failures = 0;
    if (this.peer) this.peer.check();
    else this.attempt.abort();
    this.wake();
  }

  async #run() {
    this.failures = 0;
    while (this.running) {
      this.attempt = new AbortController();
      if (this.failures === 0) this.on.link({ phase: 'connecting' });
      try {
        const peer = await this.way(this.#wish(), { ...this.on, message: (message) => this.#hear(message) });
        if (!this.running) return peer.close('stopped');
        this.failures = 0;
        this.stopped = false;
        this.peer = peer;
        this.seat.take(peer.token);
        this.on.link({ phase: 'live' });
        const reason = await peer.ended;
        this.peer = null;
        this.lost_ms = performance.now();
        if (!this.running) return;
        await this.#pause(this.#lost(new Error(reason), this.failures));
      } catch (error) {
        if (!this.running) return;
        if (error instanceof Refusal && error.code === 'no_codec') {
          this.running = false;
          this.on.link({ phase: 'no-codec' });
          return;
        }
        const end = error instanceof Refusal && ENDS.get(/** @type {'taken_over'} */ (error.code));
        if (end) return this.#rest(end);
        await this.#pause(this.#lost(error, this.failures));
      }
      this.failures += 1;
    }
  }

  #wish() {
    const { base, name: room, person, seat, consent, card, drivers } = this;
    return { base, room, person, consent, card, drivers, token: seat.token, access: seat.access ?? seat.token, role: this.role ?? seat.role, signal: this.attempt.signal };
  }

  /**
   * What a failure means for the person, and when to try again.
   * @param {unknown} error
   * @param {number} failures
   * @returns {Link & { until_ms: number }}
   */
  #lost(error, failures) {
    const now_ms = performance.now();
    const why = error instanceof Refusal ? { retry_after_s: error.retry_after_s } : { unheard_s: (now_ms - this.lost_ms) / 1000 };
    const until_ms = now_ms + 1000 * delay_s(failures, Math.random(), why);
    const detail = error instanceof Error ? error.message : String(error);
    if (!(error instanceof Refusal)) {
      return { phase: 'lost', until_ms, detail, failures, stopped: this.stopped, since_ms: this.lost_ms };
    }
    if (TOKEN_REFUSED.includes(error.status)) this.seat.forget();
    const { code, queue_place } = error;
    return { phase: error.status === FULL ? 'full' : 'refused', until_ms, code, queue_place, detail };
  }

  /**
   * Wait for the next attempt; `wake` or another network end it early.
   * @param {Link & { until_ms: number }} link
   */
  async #pause(link) {
    this.on.link(link);
    const retry = new AbortController();
    this.wake = () => retry.abort();
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
