/**
 * Has the line gone dead? Nobody may say so: an address that was given to somebody else, a router that forgot us.
 *
 *   last word   .2   .4 ask   .6 count, ask   .8 ask   1.0 ask   1.2 s: nothing counted since? over
 *
 * Counted in looks and not in time, so that a page that slept or was busy blames nobody. Pure.
 */

/** How often somebody should look. */
export const LOOK_MS = 200;
const ASKING = 2;
const COUNTING = 3;
/** A server that is heard on the path and says nothing for so many looks is none. */
const MUTE = 20;

export class Silence {
  constructor() {
    /** Looks since the last word. */
    this.looks = 0;
    this.counted = -1;
  }

  /** The server said something. */
  heard() {
    this.looks = 0;
  }

  /** The network may be another one: half a second from now is long enough. */
  suspect() {
    this.looks = Math.max(this.looks, COUNTING - 1);
  }

  /**
   * One look; whether the server should be asked, or the connection is over.
   * @param {() => Promise<number>} received how much came so far, by whatever datagrams
   * @returns {Promise<'well' | 'ask' | 'over'>}
   */
  async look(received) {
    this.looks += 1;
    if (this.looks >= MUTE) return 'over';
    if (this.looks % COUNTING === 0) {
      const count = await received();
      if (this.looks > COUNTING && count === this.counted) return 'over';
      this.counted = count;
    }
    return this.looks >= ASKING ? 'ask' : 'well';
  }
}
