/**
 * The room takes a little light from the picture: the mean colours of its sides become two gradients of the page.
 * Not a blurred copy behind the video: without a GPU such a layer is blended anew with every frame and costs more than
 * the video itself. A gradient is painted once per change of colour.
 */

const EVERY_MS = 2000;
const NOTICEABLE = 12;
const SIDES = /** @type {const} */ (['--glow-left', '--glow-right']);

/** @param {HTMLVideoElement} video */
export function glow(video) {
  const brush = new OffscreenCanvas(SIDES.length, 1).getContext('2d', { willReadFrequently: true });
  if (!brush || matchMedia('(prefers-reduced-motion: reduce)').matches) return;
  brush.imageSmoothingQuality = 'high';
  /** @type {number[]} */
  let before = [];
  setInterval(() => {
    if (document.hidden || video.videoWidth === 0 || video.paused) return;
    brush.drawImage(video, 0, 0, SIDES.length, 1);
    const now = [...brush.getImageData(0, 0, SIDES.length, 1).data];
    if (now.every((value, i) => Math.abs(value - (before[i] ?? -NOTICEABLE)) < NOTICEABLE)) return;
    before = now;
    SIDES.forEach((side, i) => document.body.style.setProperty(side, now.slice(4 * i, 4 * i + 3).join(' ')));
  }, EVERY_MS);
}
