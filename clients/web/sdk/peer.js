/**
 * One WebRTC connection to a room, from the offer to its end. Made by `openPeer`, used once, never repaired.
 * Knows nothing of retries, of the page, or of what messages mean, except that `welcome` comes first and `pong` is a sign of life.
 */

import { read } from './messages.js';
import { LOOK_MS, Silence } from './silence.js';
import { OPEN_TIMEOUT_MS, askIce, askOffer, fail, within } from './signalling.js';

/** @typedef {import('./messages.js').ClientMessage} ClientMessage */
/** @typedef {import('./messages.js').ServerMessage} ServerMessage */
/** @typedef {import('./messages.js').Welcome} Welcome */
/** @typedef {import('./signalling.js').Wish} Wish */
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
/** A ping in so many looks, so that both sides are heard in a world that stands still. */
const PING_LOOKS = 5;

export class Peer {
  /**
   * @param {(message: ServerMessage) => void} onMessage
   * @param {() => void} onClosing called at the end of a connection that was welcomed, while its last picture can still be taken
   * @param {() => Promise<unknown>} reach resolves when the server answers, another way than here
   */
  constructor(onMessage, onClosing, reach) {
    this.onClosing = onClosing;
    this.reach = reach;
    this.doubting = false;
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
    this.silence = new Silence();
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
        this.silence.heard();
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
    let looks = 0;
    this.watchdog = setInterval(() => {
      if (!this.welcomed) return;
      if (looks++ % PING_LOOKS === 0) this.#ping();
      void this.#look();
    }, LOOK_MS);
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
    this.silence.suspect();
    void this.#look();
  }

  async #look() {
    const found = await this.silence.look(() => received(this.pc));
    if (this.closed || found === 'well') return;
    if (found === 'over') return this.close('the server went silent');
    this.#ping();
    if (found === 'doubt' && !this.doubting) void this.#doubt();
  }

  /** A server that answers another way and is not heard here has another path now. */
  async #doubt() {
    this.doubting = true;
    const answers = await this.reach().then(() => true, () => false);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS)); // for what a busy server sends here as well
    this.doubting = false;
    if (answers && this.silence.doubtful) this.close('the server is not heard here');
  }

  #ping() {
    this.pings += 1;
    this.send('control', { type: 'ping', id: this.pings, sent_ms: performance.now() });
  }
}

/** Bytes of all datagrams that came, pictures and acknowledgements with them. @param {RTCPeerConnection} pc */
async function received(pc) {
  let bytes = 0;
  for (const stat of (await pc.getStats()).values()) if (stat.type === 'candidate-pair') bytes += stat.bytesReceived ?? 0;
  return bytes;
}

/**
 * Offer, answer, channels open, welcome received. Rejects with a Refusal, or an Error when the server is not there.
 * @param {Wish} wish
 * @param {PeerEvents} on
 * @returns {Promise<Peer>}
 */
export async function openPeer(wish, on) {
  const peer = new Peer(on.message, on.closing, () => askIce(wish));
  try {
    const transceiver = peer.pc.addTransceiver('video', { direction: 'recvonly' });
    preferPlayable(transceiver);
    if ('jitterBufferTarget' in transceiver.receiver) transceiver.receiver.jitterBufferTarget = 0;
    peer.pc.ontrack = (event) => on.track(event.track);
    peer.pc.setConfiguration({ iceServers: await askIce(wish) });
    await peer.pc.setLocalDescription();
    const answer = await askOffer(wish, /** @type {RTCSessionDescription} */ (peer.pc.localDescription).sdp);
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
