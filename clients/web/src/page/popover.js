/** Panels that a button opens: the browser's popovers, or plain boxes where it has none. Escape and a click outside close them. */

const NATIVE = typeof HTMLElement !== 'undefined' && 'popover' in HTMLElement.prototype;

export class Panel {
  /**
   * @param {HTMLElement} box
   * @param {HTMLElement} opener
   * @param {() => void} [opening] fills the box before it is shown
   */
  constructor(box, opener, opening = () => {}) {
    this.box = box;
    this.opener = opener;
    this.opening = opening;
    opener.addEventListener('click', () => this.toggle());
    if (NATIVE) {
      box.addEventListener('toggle', () => this.#changed());
      return;
    }
    addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close();
    });
    addEventListener('pointerdown', (event) => {
      if (event.target instanceof Node && !box.contains(event.target) && !opener.contains(event.target)) this.close();
    });
  }

  get isOpen() {
    return NATIVE ? this.box.matches(':popover-open') : this.box.classList.contains('open');
  }

  toggle() {
    if (this.isOpen) this.close();
    else this.open();
  }

  open() {
    this.opening();
    if (NATIVE) this.box.showPopover();
    else this.box.classList.add('open');
    this.#changed();
    this.box.querySelector('button')?.focus();
  }

  close() {
    if (!this.isOpen) return;
    const inside = this.box.contains(document.activeElement);
    if (NATIVE) this.box.hidePopover();
    else this.box.classList.remove('open');
    this.#changed();
    if (inside) this.opener.focus();
  }

  #changed() {
    this.opener.setAttribute('aria-expanded', String(this.isOpen));
  }
}
