/**
 * The way into a room through a LiveKit server, with livekit-client, which the application brings along:
 *
 *   import * as livekit from 'livekit-client'
 *   const room = connect('https://host/r/cup', { way: throughLiveKit(livekit) })
 *
 * Everything else of the SDK is as over a direct connection, but that receipts are not joined to pictures: LiveKit's server
 * does not keep RTP timestamps.
 */

import { read } from './messages.js';
import { OPEN_TIMEOUT_MS, ask, fail, within } from './signalling.js';

/** @typedef {import('./peer.js').ChannelName} ChannelName */
/** @typedef {import('./messages.js').ClientMessage} ClientMessage */
/** What is used of livekit-client: its `Room` and the names of its events. @typedef {{ Room: new (options?: any) => any }} LiveKitClient */

const PREFIX = 'worldroom.';
const CHANNELS = ['control', 'input', 'receipts'];

/**
 * @param {LiveKitClient} livekit the module `livekit-client`
 * @param {Record<string, unknown>} [options] of its `Room`
 * @returns {import('./peer.js').Way}
 */
export function throughLiveKit(livekit, options = {}) {
  return async (wish, on) => {
    const pass = await ask(wish, 'livekit', '');
    if (typeof pass.url !== 'string') throw new Error('the answer is none of Worldroom');
    const peer = new LiveKitPeer(new livekit.Room(options), pass.host, on);
    try {
      await within(OPEN_TIMEOUT_MS, peer.room.connect(pass.url, pass.token));
      await within(OPEN_TIMEOUT_MS, Promise.race([peer.welcome, peer.ended.then(fail)]));
      return peer;
    } catch (error) {
      peer.close('could not connect');
      throw error;
    }
  };
}

/** One connection to a LiveKit room, as a `Peer` is one to the server. livekit-client repairs it by itself. */
class LiveKitPeer {
  /**
   * @param {any} room
   * @param {string} host whose video is the world
   * @param {import('./peer.js').PeerEvents} on
   */
  constructor(room, host, on) {
    this.room = room;
    this.host = host;
    this.on = on;
    /** There is no one connection whose figures these would be. @type {RTCPeerConnection | null} */
    this.pc = null;
    /** The identity takes the seat; there is no token of it. */
    this.token = '';
    this.joins = false;
    this.welcomed = false;
    this.closed = false;
    /** @type {(reason: string) => void} */
    this.end = () => {};
    /** @type {Promise<string>} */
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
    /** @type {() => void} */
    this.arrived = () => {};
    /** @type {Promise<void>} */
    this.welcome = new Promise((resolve) => {
      this.arrived = resolve;
    });
    room.on('dataReceived', (/** @type {Uint8Array} */ data, /** @type {any} */ from, /** @type {any} */ _, /** @type {string} */ topic) => {
      if (from?.identity === host && CHANNELS.includes(topic?.slice(PREFIX.length))) this.#hear(new TextDecoder().decode(data));
    });
    room.on('trackSubscribed', (/** @type {any} */ track, /** @type {any} */ __, /** @type {any} */ from) => {
      if (from.identity !== host || track.kind !== 'video') return;
      track.setPlayoutDelay?.(0);
      on.track(track.mediaStreamTrack);
    });
    room.on('disconnected', () => this.close('LiveKit closed the connection'));
  }

  /**
   * @param {ChannelName} name
   * @param {ClientMessage} message
   */
  send(name, message) {
    if (this.closed || this.room.state !== 'connected') return false;
    const data = new TextEncoder().encode(JSON.stringify(message));
    const how = { reliable: name === 'control', topic: PREFIX + name, destinationIdentities: [this.host] };
    this.room.localParticipant.publishData(data, how).catch(() => {}); // while livekit-client connects anew
    return true;
  }

  /** livekit-client looks at the network itself. */
  check() {}

  /** @param {string} reason */
  close(reason) {
    if (this.closed) return;
    this.closed = true;
    if (this.welcomed) this.on.closing();
    void this.room.disconnect();
    this.end(reason);
  }

  /** @param {string} text */
  #hear(text) {
    const message = read(text);
    if (message === null) return;
    if (message.type === 'welcome') {
      this.welcomed = true;
      this.arrived();
    }
    if (message.type === 'problem' && !this.welcomed) {
      this.on.message(message);
      this.end(message.detail); // it is asked for again, and then perhaps there is a place
    } else if (message.type === 'receipts') message.items.forEach(this.on.message);
    else this.on.message(message);
  }
}
