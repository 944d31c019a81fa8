/** Chunks as people count time: which one is on the screen, how many frames one has, and how far away another is. Pure. */

const REMEMBERED = 9;

export class ChunkClock {
  constructor() {
    this.fps = 24;
    /** The chunk on the screen; -1 = none yet. */
    this.now = -1;
    /** First frames of the last chunks. @type {[chunk: number, frame: number][]} */
    this.starts = [];
  }

  /** A frame is shown. @param {{ chunk: number, frame: number }} receipt */
  seen({ chunk, frame }) {
    if (chunk === this.now) return;
    // A chunk that was met halfway has no known beginning, and a rewound world counts anew.
    if (this.now < 0 || chunk < this.now) this.starts = [];
    else this.starts = [...this.starts, /** @type {[number, number]} */ ([chunk, frame])].slice(-REMEMBERED);
    this.now = chunk;
  }

  /** Of one chunk, as the last ones had; one until two have begun. */
  get frames() {
    const [first, last] = [this.starts[0], this.starts.at(-1)];
    return first && last && last[0] > first[0] ? Math.max(1, (last[1] - first[1]) / (last[0] - first[0])) : 1;
  }

  /** The chunk that is on the screen in so many seconds of the world. @param {number} seconds */
  chunkIn(seconds) {
    return Math.max(0, this.now) + Math.max(1, Math.round((seconds * this.fps) / this.frames));
  }

  /** Seconds of the world until that chunk is on the screen. @param {number} chunk */
  secondsTo(chunk) {
    return Math.max(0, ((chunk - this.now) * this.frames) / this.fps);
  }
}
