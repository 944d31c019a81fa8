/**
 * One WebRTC connection to a room, from the offer to its end. Made by `openPeer`, used once, never repaired.
 * Knows nothing of retries, of the page, or of what messages mean, except that `welcome` comes first and `pong` is a sign of life.
 */

import { read } from './messages.js';

/** @typedef {import('./messages.js').ClientMessage} ClientMessage */
/** @typedef {import('./messages.js').ServerMessage} ServerMessage */
/** @typedef {import('./messages.js').Welcome} Welcome */
/**
 * `base`: the address that the server's paths begin from, with a slash at its end.
 * @typedef {{
 *   base: string, room: string, token: string | null, person: string | null, role: import('./messages.js').Role | null,
 *   access: string | null, consent: boolean, card: string | null, drivers?: string | null, signal?: AbortSignal,
 * }} Wish `card`, `drivers`: the world of a room that is not open yet, and how several people drive it. `access`: the token that opens the room, where the server asks for one. `consent`: what is done may train models
 */
/** @typedef {'control' | 'input' | 'receipts'} ChannelName */
/**
 * @typedef {{
 *   message: (message: ServerMessage) => void, track: (track: MediaStreamTrack) => void, closing: () => void,
 * }} PeerEvents
 */
/**
 * A connection, whoever made it. `check`: the network may be another one. `joins`: its receipts carry the RTP timestamps of the pictures. `pc`: for figures.
 * @typedef {{
 *   token: string, joins: boolean, pc: RTCPeerConnection | null, ended: Promise<string>,
 *   send: (name: ChannelName, message: ClientMessage) => boolean, close: (reason: string) => void, check: () => void,
 * }} OpenPeer
 */
/** How a connection comes about; rejects with a Refusal, or an Error when nobody is there.
 * @typedef {(wish: Wish, on: PeerEvents) => Promise<OpenPeer>} Way */

const PLAYABLE = /^video\/(h264|vp8)$/i;
export const OPEN_TIMEOUT_MS = 8000;
const PING_MS = 1000;
const SILENCE_MS = 4000;
/** So long a server may take to answer after the network changed. */
const CHECK_MS = 500;

/** The server said no, in words. */
export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} detail
   * @param {number} retry_after_s
   * @param {number} queue_place
   */
  constructor(status, code, detail, retry_after_s, queue_place) {
    super(detail);
    this.status = status;
    this.code = code;
    this.retry_after_s = retry_after_s;
    this.queue_place = queue_place;
  }
}

export class Peer {
  /**
   * @param {(message: ServerMessage) => void} onMessage
   * @param {() => void} onClosing called at the end of a connection that was welcomed, while its last picture can still be taken
   */
  constructor(onMessage, onClosing) {
    this.onClosing = onClosing;
    this.welcomed = false;
    this.pc = new RTCPeerConnection({ iceServers: [] });
    const lossy = { ordered: false, maxRetransmits: 0 };
    /** @type {Record<ChannelName, RTCDataChannel>} */
    this.channels = {
      control: this.pc.createDataChannel('control'),
      input: this.pc.createDataChannel('input', lossy),
      receipts: this.pc.createDataChannel('receipts', lossy),
    };
    this.token = '';
    this.joins = true;
    this.heard_ms = performance.now();
    this.pings = 0;
    this.closed = false;
    /** @type {(reason: string) => void} */
    this.end = () => {};
    /** Resolves with the reason when the connection is over. @type {Promise<string>} */
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
    /** @type {(welcome: Welcome) => void} */
    let arrive = () => {};
    /** @type {Promise<Welcome>} */
    this.welcome = new Promise((resolve) => {
      arrive = resolve;
    });
    for (const channel of Object.values(this.channels)) {
      channel.onmessage = (event) => {
        this.heard_ms = performance.now();
        const message = read(event.data);
        if (message === null) return;
        if (message.type === 'welcome') {
          this.welcomed = true;
          arrive(message);
        }
        if (message.type === 'receipts') message.items.forEach(onMessage);
        else onMessage(message);
      };
    }
    this.channels.control.onclose = () => this.close('the server closed the connection');
    this.pc.onconnectionstatechange = () => this.#watchState();
    this.watchdog = setInterval(() => this.#watchSilence(), PING_MS);
  }

  /**
   * Whether it left; on a lossy channel that is all one can know.
   * @param {ChannelName} name
   * @param {ClientMessage} message
   */
  send(name, message) {
    const channel = this.channels[name];
    if (channel.readyState !== 'open') return false;
    channel.send(JSON.stringify(message));
    return true;
  }

  /** @param {string} reason */
  close(reason) {
    if (this.closed) return;
    this.closed = true;
    clearInterval(this.watchdog);
    if (this.welcomed) this.onClosing();
    this.pc.close();
    this.end(reason);
  }

  #watchState() {
    const state = this.pc.connectionState;
    if (state === 'failed' || state === 'closed') this.close(`connection ${state}`);
    if (state === 'disconnected') this.check();
  }

  /** The network may be another one: unless the server is heard at once, this connection is over. */
  check() {
    if (this.closed || !this.welcomed) return;
    const asked_ms = performance.now();
    this.#ping(asked_ms);
    setTimeout(() => {
      if (this.heard_ms < asked_ms) this.close('the network changed');
    }, CHECK_MS);
  }

  #watchSilence() {
    const now_ms = performance.now();
    if (now_ms - this.heard_ms > SILENCE_MS) {
      this.close('the server went silent');
      return;
    }
    this.#ping(now_ms);
  }

  /** @param {number} now_ms */
  #ping(now_ms) {
    this.pings += 1;
    this.send('control', { type: 'ping', id: this.pings, sent_ms: now_ms });
  }
}

/**
 * Offer, answer, channels open, welcome received. Rejects with a Refusal, or an Error when the server is not there.
 * @param {Wish} wish
 * @param {PeerEvents} on
 * @returns {Promise<Peer>}
 */
export async function openPeer(wish, on) {
  const peer = new Peer(on.message, on.closing);
  peer.heard_ms += OPEN_TIMEOUT_MS - SILENCE_MS;
  try {
    const transceiver = peer.pc.addTransceiver('video', { direction: 'recvonly' });
    preferPlayable(transceiver);
    if ('jitterBufferTarget' in transceiver.receiver) transceiver.receiver.jitterBufferTarget = 0;
    peer.pc.ontrack = (event) => on.track(event.track);
    peer.pc.setConfiguration({ iceServers: await iceServers(wish) });
    await peer.pc.setLocalDescription();
    const answer = await offer(wish, /** @type {RTCSessionDescription} */ (peer.pc.localDescription).sdp);
    peer.token = answer.token;
    await peer.pc.setRemoteDescription({ type: 'answer', sdp: answer.sdp });
    wish.signal?.addEventListener('abort', () => !peer.welcomed && peer.close('given up'));
    await within(OPEN_TIMEOUT_MS, Promise.race([peer.welcome, peer.ended.then(fail)]));
    return peer;
  } catch (error) {
    peer.close('could not connect');
    throw error;
  }
}

/** So long an answer is waited for, unless the wish is given up. @param {Wish} wish */
function patience({ signal }) {
  const late = AbortSignal.timeout(OPEN_TIMEOUT_MS);
  return signal && AbortSignal.any ? AbortSignal.any([signal, late]) : late;
}

/** @param {Wish} wish @returns {Record<string, string>} */
function credentials({ access }) {
  return access ? { Authorization: `Bearer ${access}` } : {};
}

/**
 * STUN and TURN servers that the server tells of; none where it tells of none.
 * @param {Wish} wish
 * @returns {Promise<RTCIceServer[]>}
 */
async function iceServers(wish) {
  const path = `${wish.base}v1/rooms/${encodeURIComponent(wish.room)}/ice`;
  const response = await fetch(path, { headers: credentials(wish), signal: patience(wish) });
  const said = response.ok ? await response.json().catch(() => null) : null;
  return Array.isArray(said?.ice_servers) ? said.ice_servers : [];
}

/**
 * @param {Wish} wish
 * @param {string} sdp
 * @returns {Promise<{ sdp: string, token: string, participant: string }>}
 */
async function offer(wish, sdp) {
  const { token, role, person, consent, card, drivers } = wish;
  const body = { sdp, ...(token && { token }), ...(role && { role }), ...(person && { name: person }), ...(consent && { consent }), ...(card && { card }), ...(drivers && { drivers }) };
  const answer = await ask(wish, 'offer', JSON.stringify(body));
  if (typeof answer?.sdp !== 'string') throw new Error('the answer is none of Worldroom');
  return answer;
}

/**
 * POST something to the room; its answer, or a Refusal.
 * @param {Wish} wish
 * @param {string} path
 * @param {string} body
 * @returns {Promise<any>}
 */
export async function ask(wish, path, body) {
  const response = await fetch(`${wish.base}v1/rooms/${encodeURIComponent(wish.room)}/${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...credentials(wish) },
    body,
    signal: patience(wish),
  });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const said = answer !== null && typeof answer.detail === 'object' && answer.detail !== null ? answer.detail : answer;
  const wait_s = Number(said?.retry_after_s ?? response.headers.get('Retry-After')) || 0;
  const code = String(said?.code ?? said?.reason ?? response.status);
  const detail = typeof said?.detail === 'string' ? said.detail : response.statusText;
  throw new Refusal(response.status, code, detail, wait_s, Number(said?.queue_place) || 0);
}

/** @returns {'ready' | 'no-webrtc' | 'no-codec'} what this browser can do */
export function support() {
  if (typeof RTCPeerConnection === 'undefined') return 'no-webrtc';
  const known = RTCRtpReceiver.getCapabilities?.('video');
  if (known && !known.codecs.some((codec) => PLAYABLE.test(codec.mimeType))) return 'no-codec';
  return 'ready';
}

/**
 * The server sends H.264, or VP8 to who has none; offering only these keeps the offer short.
 * @param {RTCRtpTransceiver} transceiver
 */
function preferPlayable(transceiver) {
  const codecs = RTCRtpReceiver.getCapabilities?.('video')?.codecs ?? [];
  const wanted = codecs.filter((codec) => /video\/(h264|vp8|rtx)$/i.test(codec.mimeType));
  if (wanted.length > 0) transceiver.setCodecPreferences?.(wanted);
}

/**
 * @param {string} reason
 * @returns {never}
 */
export function fail(reason) {
  throw new Error(reason);
}

/**
 * @template T
 * @param {number} limit_ms
 * @param {Promise<T>} work
 * @returns {Promise<T>}
 */
export function within(limit_ms, work) {
  return Promise.race([
    work,
    new Promise((_, reject) => {
      setTimeout(() => reject(new Error(`no answer within ${limit_ms / 1000} s`)), limit_ms);
    }),
  ]);
}
