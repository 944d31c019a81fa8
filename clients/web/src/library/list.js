/** Sessions page by page, the newest first; some may be selected and exported. */

import { element, make, say } from '../page/dom.js';
import { ago } from '../lobby/lists.js';
import { about, lastFilm } from './words.js';

/** @typedef {import('./words.js').Session} Session */
/** @typedef {import('./words.js').Page} Page */

const PAGE = 24;

export class List {
  /**
   * @param {import('./server.js').Server} server
   * @param {(session: string) => string} addressOf of a session's page
   * @param {{ offset: number, card: string }} at
   */
  constructor(server, addressOf, at) {
    this.server = server;
    this.addressOf = addressOf;
    this.at = at;
    /** @type {Set<string>} */
    this.chosen = new Set();
    this.card = element('card', HTMLSelectElement);
    this.card.addEventListener('change', () => this.go({ offset: 0, card: this.card.value }));
    element('newer', HTMLButtonElement).addEventListener('click', () => this.go({ ...this.at, offset: Math.max(0, this.at.offset - PAGE) }));
    element('older', HTMLButtonElement).addEventListener('click', () => this.go({ ...this.at, offset: this.at.offset + PAGE }));
    element('export', HTMLButtonElement).addEventListener('click', () => void this.#export());
    element('unchoose', HTMLButtonElement).addEventListener('click', () => {
      this.chosen.clear();
      for (const box of document.querySelectorAll('.session input')) if (box instanceof HTMLInputElement) box.checked = false;
      this.#count();
    });
  }

  /** @param {{ offset: number, card: string }} at */
  go(at) {
    this.at = at;
    const url = new URL(location.href);
    at.offset ? url.searchParams.set('offset', String(at.offset)) : url.searchParams.delete('offset');
    at.card ? url.searchParams.set('card', at.card) : url.searchParams.delete('card');
    history.replaceState(null, '', url);
    void this.show().then(() => element('list-title', HTMLElement).scrollIntoView());
  }

  async show() {
    const said = element('list-said', HTMLElement);
    element('list', HTMLElement).hidden = false;
    try {
      const { offset, card } = this.at;
      const page = /** @type {Page} */ (await this.server.json(`?offset=${offset}&limit=${PAGE}${card ? `&card=${encodeURIComponent(card)}` : ''}`));
      this.#draw(page);
    } catch (error) {
      say(said, error instanceof Error ? error.message : String(error));
      said.hidden = false;
    }
  }

  /** @param {Page} page */
  #draw(page) {
    const said = element('list-said', HTMLElement);
    say(said, page.total ? '' : 'No session yet: what is played on this server is listed here.');
    said.hidden = page.total > 0;
    const every = Object.values(page.cards).reduce((sum, count) => sum + count, 0);
    const options = [['', `all (${every})`], ...Object.entries(page.cards).sort().map(([name, count]) => [name, `${name} (${count})`])];
    this.card.replaceChildren(...options.map(([value, text]) => new Option(text, value, false, value === this.at.card)));
    element('sessions', HTMLElement).replaceChildren(...page.sessions.map((session) => this.#tile(session)));
    const last = page.offset + page.sessions.length;
    element('pages', HTMLElement).hidden = page.total <= PAGE && page.offset === 0;
    say(element('range', HTMLElement), page.sessions.length ? `${page.offset + 1} to ${last} of ${page.total}` : `${page.total} in all`);
    element('newer', HTMLButtonElement).disabled = page.offset === 0;
    element('older', HTMLButtonElement).disabled = last >= page.total;
    this.#count();
  }

  /** @param {Session} session */
  #tile(session) {
    const film = lastFilm(session);
    const picture = make('img');
    picture.alt = '';
    picture.loading = 'lazy';
    picture.width = 160;
    picture.height = 96;
    picture.src = 'web/worlds/world.svg';
    if (film) void this.server.address(`/${session.session}/${film.name}.jpg`).then((address) => { picture.src = address; }, () => {});
    const when = new Date(session.opened * 1000);
    const time = make('time', { text: ago(Date.now() - when.getTime()) });
    time.dateTime = when.toISOString();
    time.title = when.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });
    const link = make('a', {}, [picture, make('span', { class: 'title' }, [make('b', { text: session.room }), make('span', { text: session.card })]), make('span', { class: 'about' }, [time, document.createTextNode(` · ${about(session)}`)])]);
    link.href = this.addressOf(session.session);
    const box = make('input');
    box.type = 'checkbox';
    box.checked = this.chosen.has(session.session);
    box.setAttribute('aria-label', `Select ${session.room}, ${time.textContent}`);
    box.addEventListener('change', () => {
      if (box.checked) this.chosen.add(session.session);
      else this.chosen.delete(session.session);
      this.#count();
    });
    return make('li', { class: 'session' }, [link, make('label', { class: 'box' }, [box])]);
  }

  #count() {
    element('chosen', HTMLElement).hidden = this.chosen.size === 0;
    say(element('chosen-count', HTMLElement), `${this.chosen.size} selected`);
  }

  async #export() {
    const button = element('export', HTMLButtonElement);
    const format = element('format', HTMLSelectElement).value;
    const query = [...this.chosen].map((name) => `session=${encodeURIComponent(name)}`).join('&');
    button.disabled = true;
    say(button, 'Exporting…');
    try {
      const link = make('a');
      link.href = URL.createObjectURL(await (await this.server.ask(`/export?${query}&format=${format}`)).blob());
      link.download = `worldroom-${format}.tar`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    } catch (error) {
      const said = element('list-said', HTMLElement);
      say(said, error instanceof Error ? error.message : String(error));
      said.hidden = false;
      said.scrollIntoView({ block: 'nearest' });
    } finally {
      button.disabled = false;
      say(button, 'Export');
    }
  }
}
