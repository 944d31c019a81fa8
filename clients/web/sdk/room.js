/**
 * A room as a program sees it: press, look, prompt, pause; and what the world says, as events. No DOM: time comes from
 * `performance.now()`, pictures leave as a track.
 *
 *   const room = connect('https://host/r/blue-otter-12')
 *   room.on('frame', ({ receipt }) => ...)
 *   room.press('ArrowUp'); await room.prompt('snowy night')
 */

import { Connection } from './connection.js';
import { Emitter } from './emitter.js';
import { Hold } from './hold.js';
import { Latency } from './latency.js';
import { World } from './world.js';

/** @typedef {import('./connection.js').Link} Link */
/** @typedef {import('./messages.js').ServerMessage} ServerMessage */
/** A steer before it has an id. @typedef {import('./messages.js').Prompt
 *   | import('./messages.js').PauseOrResume | import('./messages.js').ResetWorld
 *   | import('./messages.js').Futures | import('./messages.js').Feedback | import('./messages.js').PassWheel | import('./messages.js').RefuseWheel
 *   | import('./messages.js').Adapt | import('./messages.js').Leave} Steer */
/** @template T @typedef {T extends unknown ? Omit<T, 'id'> : never} WithoutId */
/** `accepted`: it is journaled. `applied`: it took effect at this chunk. Both fail with a `SteerError`.
 * @typedef {{ id: number, accepted: Promise<void>, applied: Promise<number> }} Fate */
/**
 * @typedef {{
 *   link: [Link], welcome: [import('./messages.js').Welcome], message: [ServerMessage], world: [World],
 *   frame: [import('./latency.js').Joined], problem: [import('./messages.js').Problem], track: [MediaStreamTrack],
 *   closing: [],
 * }} Events
 */

/** How long a goodbye may take. */
const LEAVING_MS = 400;
const ASKED_MOST = 64;
const SHOWN_MOST = 64;
const SHOWN_EVERY_MS = 250;

/** A steer that was refused or never answered. `code` 'lost' = the connection ended first, 'unsent' = there was none. */
export class SteerError extends Error {
  /**
   * @param {string} code
   * @param {string} detail
   */
  constructor(code, detail) {
    super(detail);
    this.code = code;
  }
}

/** @extends {Emitter<Events>} */
export class Room extends Emitter {
  /**
   * @param {{
   *   base: string, name: string, seat: import('./seat.js').Seat, person?: string | null,
   *   role?: import('./messages.js').Role | null, consent?: boolean, card?: string | null, drivers?: string | null, way?: import('./peer.js').Way,
   * }} options
   */
  constructor({ base, name, seat, person = null, role = null, consent = false, card = null, drivers = null, way }) {
    super();
    this.name = name;
    this.seat = seat;
    this.hold = new Hold();
    this.latency = new Latency();
    this.world = new World();
    /** @type {Link} */
    this.link = { phase: 'connecting' };
    /** @type {Map<number, { accept: () => void, apply: (chunk: number) => void, fail: (error: SteerError) => void }>} */
    this.asked = new Map();
    this.ids = 0;
    /** @type {[number, number][]} */
    this.shownFrames = [];
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.connection = new Connection({
      base, name, person, role, seat, consent, card, drivers, way,
      on: {
        link: (link) => this.#linked(link),
        message: (message) => this.#hear(message),
        track: (track) => this.emit('track', track),
        closing: () => this.emit('closing'),
      },
    });
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.reports = undefined;
  }

  get peer() {
    return this.connection.peer;
  }

  start() {
    clearInterval(this.reports);
    this.reports = setInterval(() => this.#reportShown(), SHOWN_EVERY_MS);
    this.connection.start();
  }

  /** @param {string} reason */
  stop(reason) {
    clearInterval(this.reports);
    this.connection.stop(reason);
  }

  /** Give the seat and the wheel up, for good. */
  async leave() {
    const { accepted } = this.ask({ type: 'leave' });
    const patience = new Promise((resolve) => setTimeout(resolve, LEAVING_MS));
    await Promise.race([accepted.catch(() => {}), patience]);
    this.stop('left');
    this.seat.forget();
  }

  // ---- steering -----------------------------------------------------------------------------------------------------

  /**
   * Press a key; returns the sequence number that receipts answer, 0 when nothing changed.
   * @param {string} key KeyboardEvent.code of one of the welcome's controls
   * @param {{ source?: string, at_ms?: number }} [how]
   */
  press(key, { source = 'program', at_ms = performance.now() } = {}) {
    if (!this.world.drives) return 0;
    return this.#changed(this.hold.set(source, key, true, performance.now()), at_ms);
  }

  /**
   * @param {string} key
   * @param {{ source?: string, at_ms?: number }} [how]
   */
  release(key, { source = 'program', at_ms = performance.now() } = {}) {
    return this.#changed(this.hold.set(source, key, false, performance.now()), at_ms);
  }

  /**
   * Press a control part of the way, for worlds that take it (`analog`).
   * @param {number} control index in the welcome's controls
   * @param {number} value 0..1
   * @param {string} [source]
   */
  level(control, value, source = 'program') {
    if (!this.world.drives && value > 0) return;
    if (this.hold.setLevel(source, control, value, performance.now())) this.#send();
  }

  /** A source lets go of all it holds. @param {string} [source] */
  releaseAll(source) {
    const now_ms = performance.now();
    const let_go = source === undefined ? this.hold.releaseAll(now_ms) : this.hold.release(source, now_ms);
    if (let_go) this.#send();
    return let_go;
  }

  /**
   * Look around: motion in picture widths and heights, for worlds that take it.
   * @param {number} dx
   * @param {number} dy
   */
  pointer(dx, dy) {
    if (!this.world.drives || this.world.welcome?.pointer !== true) return;
    this.hold.move(dx, dy, performance.now());
    this.#send();
  }

  /**
   * Resolves to the chunk from which on the world follows the words. `others`: texts that are mixed in, this one has
   * `weight`; `at`: the chunk to begin at; `over`: chunks instead of seconds.
   * @param {string} text
   * @param {import('./messages.js').PromptHow} [how]
   */
  prompt(text, { transition = 'blend', seconds = transition === 'blend' ? 0.5 : 0, others = [], ...how } = {}) {
    const mixed = others.map((other) => ({ ...other, text: wellFormed(other.text) }));
    const mix = mixed.length > 0 ? { others: mixed } : {};
    return this.ask({ type: 'prompt', text: wellFormed(text), transition, seconds, ...mix, ...how }).applied;
  }

  pause() {
    return this.ask({ type: 'pauseworld' }).applied;
  }

  resume() {
    return this.ask({ type: 'resumeworld' }).applied;
  }

  /** @param {number | null} [seed] */
  reset(seed = null) {
    return this.ask({ type: 'resetworld', ...(seed !== null && { seed }) }).applied;
  }

  /** On in several futures side by side: as it is, then so. @param {import('./messages.js').Way[]} others */
  fork(others = [{}]) {
    return this.ask({ type: 'fork', others }).applied;
  }

  /** Another take: of so many seconds, or of what plays under the present words. @param {number | null} [seconds] */
  again(seconds = null) {
    return this.ask(seconds === null ? { type: 'regenerate' } : { type: 'rewind', seconds }).applied;
  }

  /** In a replay: on from that chunk. @param {number} chunk */
  seek(chunk) {
    return this.ask({ type: 'seek', chunk }).applied;
  }

  /** @param {import('./messages.js').Keep} keep @param {number | null} [place] of those side by side */
  choose(keep, place = null) {
    return this.ask({ type: 'choose', keep, ...(place !== null && { place }) }).applied;
  }

  /**
   * Say something that is answered.
   * @param {WithoutId<Steer>} steer
   * @returns {Fate}
   */
  ask(steer) {
    const id = (this.ids += 1);
    /** @type {{ accept: () => void, apply: (chunk: number) => void, fail: (error: SteerError) => void }} */
    const fate = { accept: () => {}, apply: () => {}, fail: () => {} };
    const accepted = /** @type {Promise<void>} */ (new Promise((resolve, reject) => Object.assign(fate, { accept: resolve, fail: reject })));
    const refuse = fate.fail;
    const applied = /** @type {Promise<number>} */ (new Promise((resolve, reject) => {
      Object.assign(fate, { apply: resolve, fail: (/** @type {SteerError} */ error) => [refuse, reject].forEach((no) => no(error)) });
    }));
    for (const promise of [accepted, applied]) promise.catch(() => {}); // whoever does not wait need not catch
    if (this.connection.send('control', /** @type {Steer} */ ({ ...steer, id }))) this.#remember(id, fate);
    else fate.fail(new SteerError('unsent', 'Not connected: nothing was sent'));
    return { id, accepted, applied };
  }

  /**
   * Begin the world from a file; resolves to what the server had against it, or null.
   * @param {Blob} file
   * @returns {Promise<string | null>}
   */
  async firstFrame(file) {
    const type = file.type.split(';')[0] ?? '';
    const headers = { 'Content-Type': type, Authorization: `Bearer ${this.seat.token ?? ''}` };
    try {
      const path = `${this.connection.base}v1/rooms/${encodeURIComponent(this.name)}/first_frame`;
      const response = await fetch(path, { method: 'POST', headers, body: file });
      return response.ok ? null : String((await response.json()).detail);
    } catch {
      return 'Not connected: nothing was sent';
    }
  }

  // ---- what was seen ------------------------------------------------------------------------------------------------

  /**
   * A frame is on the screen: measure what it answers and tell the server.
   * @param {{ rtp: number | undefined, shown_ms: number, receive_ms: number | undefined }} frame
   */
  shown({ rtp, shown_ms, receive_ms }) {
    if (rtp !== undefined) this.#joined(this.latency.shown(rtp, shown_ms, receive_ms));
  }

  /** @returns {Promise<RTCStatsReport | null>} */
  async stats() {
    const pc = this.peer?.pc;
    return pc && pc.connectionState === 'connected' ? pc.getStats() : null;
  }

  // ---- inside -------------------------------------------------------------------------------------------------------

  /**
   * @param {number} seq
   * @param {number} at_ms
   */
  #changed(seq, at_ms) {
    if (seq === 0) return 0;
    if (this.world.state === 'running' && this.link.phase === 'live') this.latency.pressed(seq, at_ms);
    this.#send();
    return seq;
  }

  /** Send what is due and come back when the next message is. */
  #send() {
    clearTimeout(this.timer);
    if (this.link.phase !== 'live' || !(this.world.drives || this.hold.seq > 0)) return;
    const now_ms = performance.now();
    if (this.hold.due(now_ms) === 0) this.connection.send('input', this.hold.message(now_ms));
    const next_ms = this.hold.due(now_ms);
    if (next_ms !== Infinity) this.timer = setTimeout(() => this.#send(), next_ms);
  }

  /** @param {Link} link */
  #linked(link) {
    this.link = link;
    if (link.phase !== 'live' && link.phase !== 'connecting') this.#forgetAsked();
    this.emit('link', link);
    if (link.phase === 'live') this.#send();
  }

  /**
   * Some steers are accepted and never applied, so what waits is bounded.
   * @param {number} id
   * @param {{ accept: () => void, apply: (chunk: number) => void, fail: (error: SteerError) => void }} fate
   */
  #remember(id, fate) {
    this.asked.set(id, fate);
    const oldest = this.asked.keys().next().value;
    if (this.asked.size > ASKED_MOST && oldest !== undefined) this.asked.delete(oldest);
  }

  #forgetAsked() {
    const open = [...this.asked.values()];
    this.asked.clear();
    for (const { fail } of open) fail(new SteerError('lost', 'The line was lost before there was an answer'));
  }

  /** @param {ServerMessage} message */
  #hear(message) {
    const drove = this.world.drives;
    const changed = this.world.take(message, performance.now());
    switch (message.type) {
      case 'welcome':
        this.latency.restart();
        if (!this.world.drives) this.hold.releaseAll(performance.now());
        this.hold.restart(performance.now());
        break;
      case 'receipt':
        if (this.peer?.joins ?? true) this.#joined(this.latency.receipt(message));
        else this.#explained(message);
        break;
      case 'accepted':
        this.asked.get(message.id)?.accept();
        break;
      case 'applied':
        this.asked.get(message.id)?.apply(message.chunk);
        this.asked.delete(message.id);
        break;
      case 'problem':
        this.#problem(message);
        break;
      case 'statechanged':
        this.latency.forgetPresses();
        break;
    }
    if (changed) this.seat.was(this.world.drives ? 'driver' : 'spectator');
    if (drove && !this.world.drives && message.type === 'participants') this.releaseAll();
    if (message.type === 'welcome') this.emit('welcome', message);
    this.emit('message', message);
    if (changed) this.emit('world', this.world);
  }

  /** @param {import('./messages.js').Problem} problem */
  #problem(problem) {
    const fate = this.asked.get(problem.id ?? 0);
    this.asked.delete(problem.id ?? 0);
    if (fate) fate.fail(new SteerError(problem.code, problem.detail));
    else this.emit('problem', problem);
  }

  /** A receipt of a picture that cannot be found: it counts as seen when it comes. @param {import('./messages.js').Receipt} receipt */
  #explained(receipt) {
    if (this.world.seen(receipt)) this.emit('frame', { receipt, shown_ms: performance.now(), samples: [] });
  }

  /** @param {import('./latency.js').Joined | null} joined */
  #joined(joined) {
    if (joined === null) return;
    this.world.seen(joined.receipt);
    this.shownFrames.push([joined.receipt.frame, joined.shown_ms]);
    if (this.shownFrames.length >= SHOWN_MOST) this.#reportShown();
    this.emit('frame', joined);
  }

  #reportShown() {
    if (this.shownFrames.length === 0) return;
    this.connection.send('control', { type: 'shown', frames: this.shownFrames.splice(0, SHOWN_MOST) });
  }
}

/** Lone halves of a surrogate pair are no text that JSON can carry. @param {string} text */
export function wellFormed(text) {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}
