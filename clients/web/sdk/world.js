/** What a page knows of the room and its world: written by the server's messages alone. Pure: time is an argument. */

import { rtpSince } from './latency.js';

/** @typedef {import('./messages.js').Person} Person */
/** @typedef {import('./messages.js').ServerMessage} ServerMessage */
/** @typedef {import('./messages.js').Welcome} Welcome */

export class World {
  constructor() {
    /** @type {Welcome | null} */
    this.welcome = null;
    /** @type {import('./messages.js').WorldState} */
    this.state = 'opening';
    this.epoch = 0;
    this.drives = true;
    /** Who holds the wheel, here or away; the first of several. @type {string | null} */
    this.driver = null;
    /** All places at the wheel. @type {import('./messages.js').PlaceView[]} */
    this.places = [];
    /** @type {Person[]} */
    this.people = [];
    this.spectators = 0;
    /** Participants who asked for the wheel. @type {string[]} */
    this.asking = [];
    /** When an absent driver's wheel is anybody's, on this page's clock; null = nobody is away at the wheel. @type {number | null} */
    this.wheel_at_ms = null;
    /** @type {{ version: number, text: string, understood: string[], missed: string[], weight: number, others: import('./messages.js').WeighedText[] }} */
    this.prompt = unexplained('');
    /** @type {import('./messages.js').AdapterChoice[]} adapters that the world is made with */
    this.stack = [];
    /** The newest frame seen: its receipt. @type {import('./messages.js').Receipt | null} */
    this.onScreen = null;
    /** Whether this connection met another world than the one before. */
    this.fresh = false;
  }

  /** This page's participant id. */
  get me() {
    return this.welcome?.participant ?? '';
  }

  /** The place that this page holds. */
  get mine() {
    return this.places.find(({ holder }) => holder !== null && holder === this.me) ?? null;
  }

  /** Whether several people drive at once, by the room's rule or as players. */
  get shared() {
    return this.places.length > 1;
  }

  /** @param {string | null} participant */
  nameOf(participant) {
    return this.people.find((person) => person.participant === participant)?.name ?? null;
  }

  /**
   * Take a message; returns whether it changed what is known.
   * @param {ServerMessage} message
   * @param {number} now_ms
   */
  take(message, now_ms) {
    switch (message.type) {
      case 'welcome':
        this.fresh = this.welcome !== null && this.welcome.session !== message.session;
        this.welcome = message;
        this.state = message.state;
        this.epoch = message.epoch;
        this.drives = message.role === 'driver';
        this.driver = this.drives ? message.participant : null;
        this.places = [];
        this.people = [];
        this.asking = [];
        this.wheel_at_ms = null;
        this.onScreen = null;
        if (this.prompt.text !== message.prompt) this.prompt = unexplained(message.prompt);
        this.stack = message.stack ?? [];
        return true;
      case 'statechanged':
        this.state = message.state;
        this.epoch = message.epoch;
        return true;
      case 'promptchanged': {
        const { version, text, understood = [], missed = [], weight = 1, others = [] } = message;
        this.prompt = { version, text, understood, missed, weight, others };
        return true;
      }
      case 'adapterschanged':
        this.stack = message.stack;
        return true;
      case 'participants':
        this.drives = message.you === 'driver';
        this.driver = message.driver;
        this.places = message.places ?? [{ holder: message.driver, player: 0, controls: (this.welcome?.controls ?? []).map((_, index) => index) }];
        this.people = message.people;
        this.spectators = message.spectators;
        this.asking = message.asking ?? [];
        this.wheel_at_ms = typeof message.wheel_in_s === 'number' ? now_ms + 1000 * message.wheel_in_s : null;
        return true;
      default:
        return false;
    }
  }

  /** A frame is both shown and explained. Returns whether it is the newest. @param {import('./messages.js').Receipt} receipt */
  seen(receipt) {
    if (this.onScreen !== null && rtpSince(receipt.rtp, this.onScreen.rtp) <= 0) return false;
    this.onScreen = receipt;
    return true;
  }
}

/** A prompt of which the text alone is known. @param {string} text @returns {World['prompt']} */
function unexplained(text) {
  return { version: 0, text, understood: [], missed: [], weight: 1, others: [] };
}
