/**
 * `<worldroom-player room="https://host/r/cup" token="...">`: a room in any page. The one file of the SDK that knows a DOM.
 *
 *   attributes   room (address), token, name, card and drivers (of a room that is not open yet), watch (never drives)
 *   events       link, welcome, frame, problem: as of the SDK's Room, in `detail`
 *   player.room  the SDK's Room
 *
 * It takes keys while it has the focus, and gives them up with it.
 */

import { connect } from './index.js';

const STYLE = `
  :host { display: block; position: relative; aspect-ratio: 16 / 9; background: #101418; color: #e8ecf0; font: 14px system-ui, sans-serif }
  :host(:focus-visible) { outline: 3px solid #4aa3ff; outline-offset: 2px }
  video { width: 100%; height: 100%; object-fit: contain; display: block }
  p { position: absolute; inset: auto 0 0 0; margin: 0; padding: 8px 12px; background: #101418cc }
  p:empty { display: none }
`;
const WORDS = /** @type {Record<string, string>} */ ({
  connecting: 'Connecting …',
  lost: 'The line is lost; trying again …',
  full: 'No place yet; waiting …',
  refused: 'The server refuses this page',
  elsewhere: 'This seat is open elsewhere',
  ended: 'The world has ended',
  'no-webrtc': 'This browser has no WebRTC',
  'no-codec': 'This browser cannot show the video',
});
const TOLD = /** @type {const} */ (['link', 'welcome', 'frame', 'problem']);

export class WorldroomPlayer extends HTMLElement {
  static observedAttributes = ['room', 'token', 'name', 'card', 'drivers', 'watch'];

  constructor() {
    super();
    /** @type {import('./room.js').Room | null} */
    this.room = null;
    const shadow = this.attachShadow({ mode: 'open' });
    const style = document.createElement('style');
    style.textContent = STYLE;
    this.video = document.createElement('video');
    Object.assign(this.video, { autoplay: true, muted: true, playsInline: true });
    this.said = document.createElement('p');
    this.said.setAttribute('role', 'status');
    shadow.append(style, this.video, this.said);
    this.addEventListener('keydown', (event) => this.#key(event, true));
    this.addEventListener('keyup', (event) => this.#key(event, false));
    this.addEventListener('blur', () => this.room?.releaseAll());
    this.addEventListener('pointerdown', () => this.focus());
  }

  connectedCallback() {
    if (!this.hasAttribute('tabindex')) this.tabIndex = 0;
    if (!this.hasAttribute('role')) this.setAttribute('role', 'application');
    if (!this.hasAttribute('aria-label')) this.setAttribute('aria-label', 'A world: keys steer it while it has the focus');
    this.#open();
  }

  disconnectedCallback() {
    this.#close();
  }

  attributeChangedCallback() {
    if (this.room !== null) this.#open();
  }

  #open() {
    this.#close();
    const address = this.getAttribute('room');
    if (!this.isConnected || !address) return;
    const room = connect(new URL(address, document.baseURI), {
      token: this.getAttribute('token'),
      person: this.getAttribute('name'),
      card: this.getAttribute('card'),
      drivers: this.getAttribute('drivers'),
      role: this.hasAttribute('watch') ? 'spectator' : null,
    });
    this.room = room;
    room.on('track', (track) => {
      this.video.srcObject = new MediaStream([track]);
      this.#watch(room);
    });
    room.on('link', (link) => {
      this.said.textContent = WORDS[link.phase] ?? '';
    });
    for (const name of TOLD) room.on(name, (/** @type {unknown} */ detail) => this.dispatchEvent(new CustomEvent(name, { detail })));
  }

  #close() {
    this.room?.stop('the player is closed');
    this.room = null;
    this.video.srcObject = null;
  }

  /** Frames are told to the room for as long as it is this player's. @param {import('./room.js').Room} room */
  #watch(room) {
    if (this.room !== room || !('requestVideoFrameCallback' in this.video)) return;
    this.video.requestVideoFrameCallback((_, { rtpTimestamp, receiveTime }) => {
      room.shown({ rtp: rtpTimestamp, shown_ms: performance.now(), receive_ms: receiveTime });
      this.#watch(room);
    });
  }

  /**
   * @param {KeyboardEvent} event
   * @param {boolean} down
   */
  #key(event, down) {
    const taken = this.room?.world.welcome?.controls.some((control) => control.keys.includes(event.code)) ?? false;
    if (!taken || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (down) this.room?.press(event.code, { source: 'player', at_ms: event.timeStamp });
    else this.room?.release(event.code, { source: 'player', at_ms: event.timeStamp });
  }
}

if (!customElements.get('worldroom-player')) customElements.define('worldroom-player', WorldroomPlayer);
