/**
 * The one large message over the picture: what is wrong, in plain words, and what the page does about it.
 * `words` is pure; `Notice` puts it on the screen and counts down.
 */

import { element, say } from './dom.js';

/** @typedef {import('./room.js').Link} Link */
/** @typedef {import('./messages.js').WorldState} WorldState */
/** @typedef {{ title: string, text: string, act?: string, still?: boolean }} Words */

const UNANSWERED_BEFORE_GONE = 3;

/**
 * @param {Link} link
 * @param {WorldState} world
 * @param {boolean} seen whether a picture has been shown on this connection
 * @param {number} wait_s seconds to the next attempt
 * @returns {Words | null} null = nothing stands between the person and the picture
 */
export function words(link, world, seen, wait_s) {
  const soon = wait_s > 0 ? `Trying again in ${wait_s} s.` : 'Trying again…';
  switch (link.phase) {
    case 'connecting':
      return { title: 'Opening the room', text: 'Finding the server and the way to it.' };
    case 'no-webrtc':
      return { title: 'This browser has no WebRTC', text: 'A recent Chrome, Edge, Firefox or Safari can show the world.', still: true };
    case 'no-h264':
      return { title: 'This browser cannot play H.264', text: 'The stream is H.264 video. Chrome, Edge and Safari can play it; Firefox after its OpenH264 plugin is enabled.', still: true };
    case 'elsewhere':
      return { title: 'This place is open in another tab', text: 'A place in a room can be in one tab at a time.', act: 'Take it back', still: true };
    case 'ended':
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
        ? { title: 'Reconnecting', text: 'The connection broke. Your world is kept and goes on where it was.' }
        : { title: 'The server does not answer', text: `It may be starting again. ${soon}`, act: 'Try now' };
    case 'live':
      return worldWords(world, seen);
  }
}

/**
 * @param {WorldState} world
 * @param {boolean} seen
 * @returns {Words | null}
 */
function worldWords(world, seen) {
  switch (world) {
    case 'opening':
      return { title: 'Opening the world', text: 'The first frame is being dreamed.' };
    case 'held':
      return { title: 'The world is held', text: 'Nobody is at the wheel. It goes on where it was.', still: true };
    case 'closed':
      return { title: 'This world has ended', text: 'Nobody was in the room for a while.', still: true };
    case 'paused':
      return { title: 'Paused', text: '', act: 'Resume', still: true };
    case 'running':
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
    this.button.addEventListener('click', act);
    /** @type {Link} */
    this.link = { phase: 'connecting' };
    /** @type {WorldState} */
    this.world = 'opening';
    this.seen = false;
  }

  update() {
    const until_ms = 'until_ms' in this.link ? this.link.until_ms : 0;
    const wait_s = Math.max(0, Math.ceil((until_ms - performance.now()) / 1000));
    const now = words(this.link, this.world, this.seen, wait_s);
    this.root.hidden = now === null;
    if (now === null) return;
    this.root.classList.toggle('still', now.still === true);
    say(element('notice-title', HTMLElement), now.title);
    say(element('notice-text', HTMLElement), now.text);
    this.button.hidden = now.act === undefined;
    say(this.button, now.act ?? '');
  }
}
