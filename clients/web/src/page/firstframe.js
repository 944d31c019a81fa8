/**
 * Begin the world from a picture or the end of a video: chosen with the button, or dropped on the picture.
 * A picture is turned upright, cut and scaled here, so that little is sent; a video is sent as it is.
 */

import { element } from './dom.js';
import { toast } from './toast.js';

/** @typedef {{ width: number, height: number }} Size */

const PICTURES = ['image/png', 'image/jpeg', 'image/webp'];
const VIDEOS = ['video/mp4', 'video/webm'];
const VIDEO_BYTES_MAX = 32 * 1024 * 1024;

/**
 * The part of a picture that covers a shape, as drawImage takes it: x, y, width, height.
 * @param {Size} picture
 * @param {Size} shape
 * @returns {[number, number, number, number]}
 */
export function covering(picture, shape) {
  const width = Math.min(picture.width, (picture.height * shape.width) / shape.height);
  const height = Math.min(picture.height, (picture.width * shape.height) / shape.width);
  return [(picture.width - width) / 2, (picture.height - height) / 2, width, height];
}

/** A recording of a browser says its codecs too: `video/webm;codecs=vp9`. @param {{ type: string }} file */
export function mediaType({ type }) {
  return (type.split(';')[0] ?? '').trim().toLowerCase();
}

/**
 * Why a file cannot be a first frame, or null.
 * @param {{ type: string, size: number }} file
 */
export function objection(file) {
  const type = mediaType(file);
  if (PICTURES.includes(type)) return null;
  if (!VIDEOS.includes(type)) return 'A world begins from a PNG, JPEG or WebP picture, or an MP4 or WebM video';
  return file.size > VIDEO_BYTES_MAX ? 'The video is larger than 32 MB: send the end of it' : null;
}

export class FirstFrame {
  /** @param {(file: Blob) => Promise<string | null>} send resolves to what went wrong, or null */
  constructor(send) {
    this.send = send;
    /** @type {Size | null} */
    this.size = null;
    this.able = false;
    this.button = element('first-frame', HTMLButtonElement);
    this.input = element('first-frame-file', HTMLInputElement);
    this.input.accept = [...PICTURES, ...VIDEOS].join(',');
    this.button.addEventListener('click', () => this.input.click());
    this.input.addEventListener('change', () => {
      const file = this.input.files?.[0];
      this.input.value = '';
      if (file) void this.#begin(file);
    });
    const frame = element('frame', HTMLElement);
    frame.addEventListener('dragover', (event) => {
      if (this.#takes()) event.preventDefault();
    });
    frame.addEventListener('drop', (event) => {
      const file = event.dataTransfer?.files[0];
      if (!file || !this.#takes()) return;
      event.preventDefault();
      void this.#begin(file);
    });
  }

  /** @param {Size | null} size null = this world begins from words alone */
  offer(size) {
    this.size = size;
    this.button.hidden = size === null;
  }

  /** @param {boolean} able */
  enable(able) {
    this.able = able;
    this.button.disabled = !able;
  }

  #takes() {
    return this.able && this.size !== null;
  }

  /** @param {File} file */
  async #begin(file) {
    if (!this.size) return;
    const problem = objection(file);
    if (problem) return toast(problem);
    this.button.classList.add('busy');
    try {
      const body = PICTURES.includes(mediaType(file)) ? await fitted(file, this.size) : file;
      toast((await this.send(body)) ?? 'The world begins from your picture');
    } catch {
      toast('This picture cannot be read');
    } finally {
      this.button.classList.remove('busy');
    }
  }
}

/**
 * @param {Blob} file
 * @param {Size} size
 */
async function fitted(file, size) {
  const picture = await createImageBitmap(file);
  const canvas = new OffscreenCanvas(size.width, size.height);
  const brush = canvas.getContext('2d');
  if (!brush) throw new Error('no canvas');
  brush.imageSmoothingQuality = 'high';
  brush.drawImage(picture, ...covering(picture, size), 0, 0, size.width, size.height);
  picture.close();
  return canvas.convertToBlob({ type: 'image/png' });
}
