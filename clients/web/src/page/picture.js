/**
 * The video element: takes the track, says which frames were shown (by RTP timestamp) and when, and whether the browser
 * lets it play. Without requestVideoFrameCallback there is a picture but no latency figure.
 */

/** @typedef {{ rtp: number | undefined, shown_ms: number, receive_ms: number | undefined }} ShownFrame */

export class Picture {
  /**
   * @param {HTMLVideoElement} video
   * @param {HTMLCanvasElement} still what was seen last, while there is no line
   * @param {{ shown: (frame: ShownFrame) => void, blocked: (is: boolean) => void }} on
   */
  constructor(video, still, on) {
    this.video = video;
    this.still = still;
    this.on = on;
    this.tells = 'requestVideoFrameCallback' in video;
    this.shown_ms = -Infinity;
    video.addEventListener('loadeddata', () => {
      video.classList.add('playing');
      performance.mark('picture');
    });
    if (this.tells) this.#watch();
    else video.addEventListener('timeupdate', () => this.#shown({ rtp: undefined, shown_ms: performance.now(), receive_ms: undefined }));
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden && video.srcObject && video.paused) void this.play();
    });
  }

  /** Keep the present frame in a canvas under the video: a lost track turns black. */
  freeze() {
    const { videoWidth, videoHeight } = this.video;
    this.video.classList.remove('playing');
    if (videoWidth === 0 || this.shown_ms === -Infinity) return;
    this.still.width = videoWidth;
    this.still.height = videoHeight;
    this.still.getContext('2d')?.drawImage(this.video, 0, 0);
    this.shown_ms = -Infinity;
  }

  /** @param {MediaStreamTrack} track */
  async show(track) {
    this.video.srcObject = new MediaStream([track]);
    await this.play();
  }

  async play() {
    try {
      await this.video.play();
      this.on.blocked(false);
    } catch (error) {
      if (error instanceof DOMException && error.name === 'NotAllowedError') this.on.blocked(true);
    }
  }

  /** The callback runs when the frame goes to the compositor; `now` of a low-latency stream may precede the frame. */
  #watch() {
    this.video.requestVideoFrameCallback((_, metadata) => {
      this.#watch();
      this.#shown({ rtp: metadata.rtpTimestamp, shown_ms: performance.now(), receive_ms: metadata.receiveTime });
    });
  }

  /** @param {ShownFrame} frame */
  #shown(frame) {
    this.shown_ms = frame.shown_ms;
    this.on.shown(frame);
  }
}
