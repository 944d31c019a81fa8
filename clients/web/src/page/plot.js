/**
 * A small stacked plot: one bar per key press, bottom to top in the order of PARTS. The server's share is a cool ramp,
 * the network warm, the display grey, so that one look tells whose the milliseconds are. Rare long bars are cut off.
 */

import { PARTS, percentile } from '../../sdk/latency.js';

/** @typedef {import('../../sdk/latency.js').Sample} Sample */

/** @type {Record<typeof PARTS[number], string>} */
export const COLOURS = {
  hold: '#46519a',
  wait: '#4c6cc6',
  step: '#4c93e6',
  decode: '#4fb8e2',
  encode: '#66d3d3',
  pace: '#aee8cf',
  network: '#ffb86b',
  display: '#8d8a99',
};

const BAR = 5;
const GAP = 2;
const SCALES_MS = [50, 75, 100, 150, 200, 400, 1000, 2000, 5000, 10000];

/**
 * @param {HTMLCanvasElement} canvas
 * @param {readonly Sample[]} samples newest last
 */
export function drawPlot(canvas, samples) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const brush = canvas.getContext('2d');
  if (!brush || width === 0) return;
  const dense = Math.min(2, devicePixelRatio || 1);
  if (canvas.width !== width * dense || canvas.height !== height * dense) {
    canvas.width = width * dense;
    canvas.height = height * dense;
  }
  brush.setTransform(dense, 0, 0, dense, 0, 0);
  brush.clearRect(0, 0, width, height);
  const recent = samples.slice(-Math.floor((width + GAP) / (BAR + GAP)));
  const most = percentile(recent.map((sample) => sample.ms), 90);
  const scale_ms = SCALES_MS.find((each) => each >= most) ?? Math.ceil(most);
  drawGrid(brush, width, height, scale_ms);
  recent.forEach((sample, i) => {
    const x = width - (recent.length - i) * (BAR + GAP) + GAP;
    drawBar(brush, x, height, (height - 2) / scale_ms, sample);
  });
}

/**
 * @param {CanvasRenderingContext2D} brush
 * @param {number} x
 * @param {number} floor
 * @param {number} px_per_ms
 * @param {Sample} sample
 */
function drawBar(brush, x, floor, px_per_ms, sample) {
  let y = floor;
  sample.parts.forEach((ms, i) => {
    const part = PARTS[i];
    const tall = Math.min(ms * px_per_ms, y);
    if (part === undefined || tall <= 0) return;
    brush.fillStyle = COLOURS[part];
    brush.fillRect(x, y - tall, BAR, tall);
    y -= tall;
  });
}

/**
 * @param {CanvasRenderingContext2D} brush
 * @param {number} width
 * @param {number} height
 * @param {number} scale_ms
 */
function drawGrid(brush, width, height, scale_ms) {
  brush.fillStyle = 'rgb(255 255 255 / 0.10)';
  brush.fillRect(0, height - 1, width, 1);
  brush.fillRect(0, Math.round(height / 2), width, 0.5);
  brush.fillStyle = 'rgb(255 255 255 / 0.42)';
  brush.font = '9px ui-sans-serif, sans-serif';
  brush.textBaseline = 'top';
  brush.fillText(`${scale_ms} ms`, 0, 0);
}
