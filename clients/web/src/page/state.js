/** What the page says of its link and its world, in words. */

/** @typedef {import('../../sdk/world.js').World} World */

/** @type {Record<string, string>} */
const WORLD_NAMES = { opening: 'Opening', running: 'Live', paused: 'Paused', held: 'Held', closed: 'Ended' };
/** @type {Record<string, string>} */
const LINK_NAMES = {
  connecting: 'Connecting', live: 'Live', lost: 'Reconnecting', full: 'Server full', refused: 'Refused',
  elsewhere: 'In another tab', ended: 'Ended', 'no-webrtc': 'Not supported', 'no-codec': 'Not supported',
};

/** Without a frame for so long the page does not say Live. */
const STALE_MS = 2500;

/** Frames come, or have stopped for a while. */
export class FrameWatch {
  #timer = 0;

  /**
   * @param {() => number} shown_ms when the newest frame was shown
   * @param {() => void} stopped
   */
  constructor(shown_ms, stopped) {
    this.shown_ms = shown_ms;
    this.stopped = stopped;
  }

  get #since_ms() {
    return performance.now() - this.shown_ms();
  }

  get fresh() {
    return this.#since_ms < STALE_MS;
  }

  /** A frame was shown. */
  seen() {
    if (this.#timer === 0) this.#timer = setTimeout(() => this.#check(), STALE_MS);
  }

  #check() {
    this.#timer = this.fresh ? setTimeout(() => this.#check(), STALE_MS - this.#since_ms) : 0;
    if (!this.fresh) this.stopped();
  }
}

/**
 * One word for the corner of the page. `flows`: frames come.
 * @param {string} phase of the link
 * @param {string} state of the world
 * @param {boolean} flows
 * @param {boolean} drives
 * @param {boolean} replays
 * @returns {string}
 */
export function nameOf(phase, state, flows, drives, replays) {
  if (phase !== 'live') return LINK_NAMES[phase] ?? phase;
  if (state !== 'running') return WORLD_NAMES[state] ?? state;
  if (!flows) return 'No picture';
  if (replays) return 'Replay';
  return drives ? 'Live' : 'Watching';
}

/**
 * Why a prompt cannot be sent now; '' = it can.
 * @param {boolean} live
 * @param {World} world
 * @returns {string}
 */
export function whyNoPrompt(live, world) {
  if (!live) return 'Not connected: what you write is kept here';
  if (world.state === 'closed') return 'This world has ended';
  if (world.welcome?.replay) return 'A replay: it can be watched, paused and moved in';
  if (world.drives) return '';
  const free = world.shared && world.places.some(({ holder }) => holder === null);
  return `Whoever drives changes the world: ${free ? 'take a place' : 'ask for the wheel'}`;
}
