/**
 * The head-up display: how long from key to picture, where that time went, and how the stream is.
 * Shows dashes for what it does not know.
 */

import { element, make, say } from './dom.js';
import { PARTS } from './latency.js';
import { COLOURS, drawPlot } from './plot.js';
import { figures, readStats } from './stats.js';

/** @typedef {import('./latency.js').Latency} Latency */
/** @typedef {import('./stats.js').Reading} Reading */

const OPEN_KEY = 'worldroom:hud';

export class Hud {
  /** @param {Latency} latency */
  constructor(latency) {
    this.latency = latency;
    this.root = element('hud', HTMLElement);
    this.plot = element('plot', HTMLCanvasElement);
    this.toggle = element('hud-toggle', HTMLButtonElement);
    /** @type {Reading | null} */
    this.before = null;
    this.drawn = 0;
    this.values = PARTS.map(() => make('dd', { text: '–' }));
    element('legend', HTMLElement).replaceChildren(...PARTS.map((part, i) => legendRow(part, this.values[i])));
    this.toggle.addEventListener('click', () => this.open(this.root.classList.contains('small')));
    const wanted = localStorage.getItem(OPEN_KEY);
    this.open(wanted === null ? innerWidth > 760 && innerHeight > 520 : wanted === 'open', false);
  }

  /**
   * @param {boolean} open
   * @param {boolean} [remember]
   */
  open(open, remember = true) {
    this.root.classList.toggle('small', !open);
    this.toggle.setAttribute('aria-expanded', String(open));
    if (remember) localStorage.setItem(OPEN_KEY, open ? 'open' : 'small');
    this.drawn = -1;
    this.latencyChanged();
  }

  /** Redraw the latency figures; cheap when nothing is new. */
  latencyChanged() {
    const last = this.latency.samples.at(-1)?.seq ?? 0;
    if (last === this.drawn) return;
    this.drawn = last;
    const { n, median, parts } = this.latency.summary();
    if (n === 0) return;
    this.root.classList.add('measured');
    say(element('m2p', HTMLElement), median.toFixed(0));
    say(element('m2p-p95', HTMLElement), this.latency.summary().p95.toFixed(0));
    this.values.forEach((value, i) => say(value, shortMs(parts[i] ?? 0)));
    if (!this.root.classList.contains('small')) drawPlot(this.plot, this.latency.samples);
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
  return make('div', {}, [swatch, make('dt', { text: part }), ...(value ? [value] : [])]);
}

/** @param {number} ms */
function shortMs(ms) {
  return ms < 9.95 ? ms.toFixed(1) : ms.toFixed(0);
}
