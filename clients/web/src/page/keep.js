/** Keeping and sharing: the picture as a PNG, the last 30 seconds as a film, the room's address. */

import { element, say } from './dom.js';
import { Panel } from './popover.js';
import { toast } from './toast.js';

export class Keep {
  /**
   * @param {HTMLVideoElement} video
   * @param {{
   *   name: () => string, clip: () => Promise<Blob>, film: (running: boolean) => Promise<void>, address: () => string,
   *   drives: () => boolean,
   * }} of
   */
  constructor(video, of) {
    this.video = video;
    this.of = of;
    this.filming = false;
    this.panel = new Panel(element('keep-panel', HTMLElement), element('keep', HTMLElement), () => this.#filmed(this.filming));
    this.sheet = element('share-sheet', HTMLDialogElement);
    this.link = element('share-link', HTMLInputElement);
    element('keep-picture', HTMLButtonElement).addEventListener('click', () => void this.picture());
    element('keep-clip', HTMLButtonElement).addEventListener('click', () => void this.clip());
    element('keep-film', HTMLButtonElement).addEventListener('click', () => void this.film());
    for (const id of ['keep-link', 'share']) element(id, HTMLButtonElement).addEventListener('click', () => this.share());
    element('share-copy', HTMLButtonElement).addEventListener('click', () => void this.#copy());
    this.link.addEventListener('focus', () => this.link.select());
  }

  async picture() {
    this.panel.close();
    const canvas = document.createElement('canvas');
    canvas.width = this.video.videoWidth;
    canvas.height = this.video.videoHeight;
    canvas.getContext('2d')?.drawImage(this.video, 0, 0);
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
    if (blob instanceof Blob && canvas.width > 0) save(blob, `${this.of.name()}.png`);
    else toast('There is no picture yet');
  }

  async clip() {
    this.panel.close();
    const button = element('keep', HTMLButtonElement);
    button.classList.add('busy');
    try {
      save(await this.of.clip(), `${this.of.name()}.mp4`);
    } catch (error) {
      toast(error instanceof Error ? error.message : 'The film could not be made');
    } finally {
      button.classList.remove('busy');
    }
  }

  /** The server films the room from now on, or ends the film; both are in its library. */
  async film() {
    this.panel.close();
    try {
      await this.of.film(!this.filming);
      this.#filmed(!this.filming);
      toast(this.filming ? 'The room is filmed from now on' : 'The film is in the library');
    } catch (error) {
      this.#filmed(false);
      toast(error instanceof Error ? error.message : 'The room could not be filmed');
    }
  }

  /** @param {boolean} filming */
  #filmed(filming) {
    const button = element('keep-film', HTMLButtonElement);
    this.filming = filming;
    button.hidden = !this.of.drives();
    button.setAttribute('aria-pressed', String(filming));
    say(button, filming ? 'Stop filming the room' : 'Film the room');
  }

  share() {
    this.panel.close();
    this.link.value = this.of.address();
    say(element('share-words', HTMLElement), this.of.drives()
      ? 'Whoever opens it watches you drive, and can ask for the wheel.'
      : 'Whoever opens it watches with you, and can ask for the wheel.');
    say(element('share-said', HTMLElement), '');
    this.sheet.showModal();
    this.link.select();
  }

  async #copy() {
    const said = element('share-said', HTMLElement);
    try {
      await navigator.clipboard.writeText(this.link.value);
      say(said, 'Copied.');
    } catch {
      // Plain http has no clipboard for pages: the address is selected, and old browsers copy what is selected.
      this.link.select();
      say(said, document.execCommand('copy') ? 'Copied.' : 'Selected: copy it with Ctrl+C or the menu of your browser.');
    }
  }
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
