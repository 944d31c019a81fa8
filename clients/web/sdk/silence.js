/**
 * Has the line gone dead? Nobody may say so: an address that was given to somebody else, a router that forgot us.
 *
 *   last word   .2   .4 ask   .6 ask, count   .8 ask, count   1.0 s still the same: doubt   ..   4 s over
 *
 * A server that is busy is silent, too: in doubt it is asked another way, and only if it answers there and not here this line
 * is dead. Counted in looks and not in time, so that a page that slept or was busy blames nobody. Pure.
 */

/** How often somebody should look. */
export const LOOK_MS = 200;
const ASKING = 2;
const COUNTING = 3;
const OVER = 20;
/** Counts in a row that are the same. */
const STILL = 2;

export class Silence {
  constructor() {
    /** Looks since the last word. */
    this.looks = 0;
    this.counted = -1;
    this.still = 0;
  }

  /** The server said something. */
  heard() {
    this.looks = this.still = 0;
  }

  /** The network may be another one: what is left of a second is long enough. */
  suspect() {
    this.looks = Math.max(this.looks, COUNTING - 1);
  }

  /** Whether nothing at all arrives, although it was asked for. */
  get doubtful() {
    return this.still >= STILL;
  }

  /**
   * One look; whether the server should be asked, or asked another way as well, or the connection is over.
   * @param {() => Promise<number>} received how much came so far, by whatever datagrams
   * @returns {Promise<'well' | 'ask' | 'doubt' | 'over'>}
   */
  async look(received) {
    this.looks += 1;
    if (this.looks >= OVER) return 'over';
    if (this.looks >= COUNTING) {
      const count = await received();
      this.still = count === this.counted ? this.still + 1 : 0;
      this.counted = count;
    }
    if (this.doubtful) return 'doubt';
    return this.looks >= ASKING ? 'ask' : 'well';
  }
}
