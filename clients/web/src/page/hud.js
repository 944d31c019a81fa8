/**
 * The head-up display: how long from key to picture, where that time went, and how the stream is.
 * Shows dashes for what it does not know.
 */

import { element, make, say } from './dom.js';
import { PARTS } from '../../sdk/latency.js';
import { figures, readStats } from '../../sdk/stats.js';
import { COLOURS, drawPlot } from './plot.js';

/** @typedef {import('../../sdk/latency.js').Latency} Latency */
/** @typedef {import('../../sdk/stats.js').Reading} Reading */

const OPEN_KEY = 'worldroom:hud';
const LATENCY_EVERY_MS = 250;
const STATS_EVERY_MS = 1000;

export class Hud {
  /**
   * @param {Latency} latency
   * @param {() => Promise<Iterable<[string, unknown]> | null>} stats
   * @param {import('../../sdk/storage.js').Memory} memory remembers whether it was asked for
   */
  constructor(latency, stats, memory) {
    this.latency = latency;
    this.read = stats;
    this.memory = memory;
    this.root = element('hud', HTMLElement);
    this.plot = element('plot', HTMLCanvasElement);
    this.toggle = element('hud-toggle', HTMLButtonElement);
    /** @type {Reading | null} */
    this.before = null;
    this.drawn = -1;
    /** @type {number[]} */
    this.timers = [];
    this.values = PARTS.map(() => make('dd', { text: '–' }));
    element('legend', HTMLElement).replaceChildren(...PARTS.map((part, i) => legendRow(part, this.values[i])));
    this.toggle.addEventListener('click', () => this.open(this.root.hidden));
    this.open(memory.get(OPEN_KEY) === 'open', false);
  }

  /**
   * Nothing is read or drawn while it is closed.
   * @param {boolean} open
   * @param {boolean} [remember]
   */
  open(open, remember = true) {
    this.root.hidden = !open;
    this.toggle.setAttribute('aria-pressed', String(open));
    if (remember) this.memory.set(OPEN_KEY, open ? 'open' : 'closed');
    for (const timer of this.timers.splice(0)) clearInterval(timer);
    this.before = null;
    if (!open) return;
    this.drawn = -1;
    this.latencyChanged();
    const look = async () => this.stats(await this.read());
    void look();
    this.timers = [setInterval(() => this.latencyChanged(), LATENCY_EVERY_MS), setInterval(look, STATS_EVERY_MS)];
  }

  /** Redraw the latency figures; cheap when nothing is new. */
  latencyChanged() {
    const last = this.latency.samples.at(-1)?.seq ?? 0;
    if (last === this.drawn) return;
    this.drawn = last;
    const { n, median, p95, parts } = this.latency.summary();
    if (n === 0) return;
    this.root.classList.add('measured');
    say(element('m2p', HTMLElement), median.toFixed(0));
    say(element('m2p-p95', HTMLElement), p95.toFixed(0));
    this.values.forEach((value, i) => say(value, shortMs(parts[i] ?? 0)));
    drawPlot(this.plot, this.latency.samples);
  }

  /** @param {Iterable<[string, unknown]> | null} report from getStats, null while not connected */
  stats(report) {
    if (report === null) {
      this.before = null;
      return;
    }
    const now = readStats(report, performance.now());
    const { fps, kbps, buffer_ms, rtt_ms } = figures(this.before ?? now, now);
    this.before = now;
    say(element('fps', HTMLElement), fps === undefined ? '–' : fps.toFixed(0));
    say(element('bitrate', HTMLElement), kbps === undefined ? '–' : `${(kbps / 1000).toFixed(1)} Mb/s`);
    say(element('buffer', HTMLElement), buffer_ms === undefined ? '–' : `${buffer_ms.toFixed(1)} ms`);
    say(element('rtt', HTMLElement), rtt_ms === undefined ? '–' : `${rtt_ms.toFixed(1)} ms`);
  }
}

/**
 * @param {typeof PARTS[number]} part
 * @param {HTMLElement | undefined} value
 */
function legendRow(part, value) {
  const swatch = make('i');
  swatch.style.background = COLOURS[part];
  return make('div', {}, [make('dt', {}, [swatch, document.createTextNode(part)]), ...(value ? [value] : [])]);
}

/** @param {number} ms */
function shortMs(ms) {
  return ms < 9.95 ? ms.toFixed(1) : ms.toFixed(0);
}
