/**
 * The one large message over the picture: what is wrong, in plain words, and what the page does about it. It promises
 * only what the page knows. `words` is pure; `Notice` puts it on the screen, counts down and speaks each message once.
 */

import { element, say } from './dom.js';
import { speak } from './toast.js';

/** @typedef {import('../../sdk/connection.js').Link} Link */
/** @typedef {import('../../sdk/messages.js').WorldState} WorldState */
/** `lasts`: it stands until somebody does something. @typedef {{ title: string, text: string, act?: string, still?: boolean }} Words */
/**
 * `blocked`: the browser does not start the picture by itself. `seen`: a picture was shown on this connection.
 * `wait_s`: to the next attempt. `held_s`: how much longer a server that is still there keeps the world, null = unknown.
 * @typedef {{
 *   link: Link, world: WorldState, seen: boolean, blocked: boolean, drives: boolean, replays?: boolean, wait_s: number,
 *   held_s: number | null,
 * }} Situation
 */

const UNANSWERED_BEFORE_GONE = 3;

/**
 * @param {Situation} now
 * @returns {Words | null} null = nothing stands between the person and the picture
 */
export function words(now) {
  const { link, wait_s } = now;
  const soon = wait_s > 0 ? `Trying again in ${wait_s} s.` : 'Trying again…';
  switch (link.phase) {
    case 'connecting':
      return { title: 'Opening the room', text: 'Finding the server and the way to it.' };
    case 'no-webrtc':
      return { title: 'This browser has no WebRTC', text: 'A recent Chrome, Edge, Firefox or Safari can show the world.', still: true };
    case 'no-codec':
      return { title: 'This browser cannot play the video', text: 'The stream is H.264 or VP8 video, and this browser plays neither. Chrome, Edge, Firefox and Safari do.', still: true };
    case 'elsewhere':
      return { title: 'This place is open in another tab', text: 'A place in a room can be in one tab at a time.', act: 'Take it back', still: true };
    case 'ended':
      if (now.replays) return { title: 'The replay is over', text: 'It was made again as it was, up to its end.', act: 'Watch again', still: true };
      return { title: 'This world has ended', text: 'Nobody was in the room for a while.', act: 'Start a new one', still: true };
    case 'full': {
      if (link.code === 'not_ready') return { title: 'The server is warming up', text: `Its model is loading. ${soon}` };
      if (link.queue_place > 0) {
        return { title: 'The server is full', text: `You are number ${link.queue_place} in line. The room opens by itself when it is your turn.` };
      }
      return { title: 'The server is full', text: `All it can carry is taken. ${soon}`, act: 'Try now' };
    }
    case 'refused':
      return { title: 'The server said no', text: `${sentence(link.detail)} ${soon}`, act: 'Try now' };
    case 'lost':
      if (link.stopped) return { title: 'The server has stopped', text: `It may be starting again. ${soon}`, act: 'Try now' };
      return link.failures < UNANSWERED_BEFORE_GONE
        ? { title: 'Reconnecting', text: `The connection broke.${held(now.held_s)}` }
        : { title: 'The server does not answer', text: `It may be starting again. ${soon}`, act: 'Try now' };
    case 'live':
      return worldWords(now);
  }
}

/** @param {number | null} held_s */
function held(held_s) {
  if (held_s === null) return '';
  return held_s > 0
    ? ` A server that is still there holds the world for ${held_s} s more.`
    : ' The time for which the server holds the world is over; it may be gone.';
}

/**
 * @param {Situation} now
 * @returns {Words | null}
 */
function worldWords({ world, seen, blocked, drives }) {
  switch (world) {
    case 'opening':
      return { title: 'Opening the world', text: 'The first frame is being dreamed.' };
    case 'held':
      return { title: 'The world is held', text: 'Nobody is at the wheel. It goes on where it was.', still: true };
    case 'closed':
      return { title: 'This world has ended', text: 'Nobody was in the room for a while.', still: true };
    case 'paused':
      return drives
        ? { title: 'Paused', text: '', act: 'Resume', still: true }
        : { title: 'Paused', text: 'Whoever drives can go on.', still: true };
    case 'running':
      if (blocked) return { title: 'Your browser waits for you', text: 'It starts pictures only when asked to. Click, tap or press Enter.', act: 'Play', still: true };
      return seen ? null : { title: 'Waiting for the picture', text: '' };
  }
}

/** @param {string} text */
function sentence(text) {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

export class Notice {
  /** @param {() => void} act */
  constructor(act) {
    this.root = element('notice', HTMLElement);
    this.button = element('notice-act', HTMLButtonElement);
    this.act = act;
    /** @type {Situation} */
    this.now = { link: { phase: 'connecting' }, world: 'opening', seen: false, blocked: false, drives: true, wait_s: 0, held_s: null };
    this.lease_s = 0;
    this.timer = 0;
    this.button.addEventListener('click', (event) => {
      event.stopPropagation();
      act();
    });
    // The picture waits for a tap: anywhere on it will do.
    this.root.addEventListener('click', () => {
      if (this.now.blocked && !this.button.hidden) act();
    });
    addEventListener('keydown', (event) => {
      const free = event.target === document.body || event.target === null || event.target instanceof HTMLVideoElement;
      if (event.key === 'Enter' && free && !this.root.hidden && !this.button.hidden) act();
    });
  }

  /** @param {Partial<Situation>} news */
  update(news = {}) {
    Object.assign(this.now, news);
    const { link } = this.now;
    const now_ms = performance.now();
    const until_ms = 'until_ms' in link ? link.until_ms : 0;
    this.now.wait_s = Math.max(0, Math.ceil((until_ms - now_ms) / 1000));
    this.now.held_s = link.phase === 'lost' && this.lease_s > 0 && link.since_ms > 0
      ? Math.max(0, Math.ceil(this.lease_s - (now_ms - link.since_ms) / 1000)) : null;
    clearTimeout(this.timer);
    if (until_ms > now_ms || this.now.held_s) this.timer = setTimeout(() => this.update(), 500);
    this.#show(words(this.now));
  }

  /** @param {Words | null} now */
  #show(now) {
    const had = this.root.contains(document.activeElement);
    if (now === null && !this.root.hidden) speak('');
    this.root.hidden = now === null;
    if (now === null) {
      if (had) element('picture', HTMLVideoElement).focus({ preventScroll: true });
      return;
    }
    this.root.classList.toggle('still', now.still === true);
    this.root.classList.toggle('taps', this.now.blocked && now.act !== undefined);
    if (element('notice-title', HTMLElement).textContent !== now.title) speak(`${now.title}. ${now.text}`);
    say(element('notice-title', HTMLElement), now.title);
    say(element('notice-text', HTMLElement), now.text);
    this.button.hidden = now.act === undefined;
    say(this.button, now.act ?? '');
  }
}
