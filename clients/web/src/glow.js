/** The room takes light from the picture: the video drawn into sixteen by ten pixels twice a second, stretched by CSS. */

const EVERY_MS = 500;

/**
 * @param {HTMLVideoElement} video
 * @param {HTMLCanvasElement} canvas
 */
export function glow(video, canvas) {
  const brush = canvas.getContext('2d');
  if (!brush || matchMedia('(prefers-reduced-motion: reduce)').matches) return;
  setInterval(() => {
    if (document.hidden || video.videoWidth === 0 || video.paused) return;
    brush.globalAlpha = 0.5;
    brush.drawImage(video, 0, 0, canvas.width, canvas.height);
  }, EVERY_MS);
}
