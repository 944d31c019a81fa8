/**
 * The video element: takes the track, says which frames were shown (by RTP timestamp) and when.
 * Without requestVideoFrameCallback there is a picture but no latency figure.
 */

/** @typedef {{ rtp: number | undefined, shown_ms: number, receive_ms: number | undefined }} ShownFrame */

export class Picture {
  /**
   * @param {HTMLVideoElement} video
   * @param {{ shown: (frame: ShownFrame) => void, blocked: () => void }} on
   */
  constructor(video, on) {
    this.video = video;
    this.on = on;
    this.tells = 'requestVideoFrameCallback' in video;
    video.addEventListener('loadeddata', () => {
      video.classList.add('playing');
      performance.mark('picture');
    });
    if (this.tells) this.#watch();
  }

  /** Keep the present frame in a canvas under the video: a lost track turns black. @param {HTMLCanvasElement} still */
  freeze(still) {
    const { videoWidth, videoHeight } = this.video;
    if (videoWidth === 0) return;
    still.width = videoWidth;
    still.height = videoHeight;
    still.getContext('2d')?.drawImage(this.video, 0, 0);
  }

  /** @param {MediaStreamTrack} track */
  async show(track) {
    this.video.srcObject = new MediaStream([track]);
    try {
      await this.video.play();
    } catch (error) {
      if (error instanceof DOMException && error.name === 'NotAllowedError') this.on.blocked();
    }
  }

  /** The callback runs when the frame goes to the compositor; `now` of a low-latency stream may precede the frame. */
  #watch() {
    this.video.requestVideoFrameCallback((_, metadata) => {
      this.#watch();
      this.on.shown({
        rtp: metadata.rtpTimestamp,
        shown_ms: performance.now(),
        receive_ms: metadata.receiveTime,
      });
    });
  }
}
