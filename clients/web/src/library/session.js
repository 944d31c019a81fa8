/** One session: a film of it with everything that happened under it, two of its futures side by side, its end. */

import { element, make, say } from '../page/dom.js';
import { Refused } from './server.js';
import { about, clock, kind, shownFilms, words } from './words.js';

/** @typedef {import('./words.js').Detail} Detail */
/** @typedef {import('./words.js').Film} Film */
/** @typedef {import('./words.js').Mark} Mark */
/** @typedef {import('./words.js').Span} Span */
/** @typedef {import('./words.js').Timeline} Timeline */

/** A half second of the film each. */
const SLOT_S = 0.5;
const TICKS = 90_000;

export class SessionView {
  /**
   * @param {import('./server.js').Server} server
   * @param {string} name
   */
  constructor(server, name) {
    this.server = server;
    this.name = name;
    this.video = element('video', HTMLVideoElement);
    this.other = element('other', HTMLVideoElement);
    /** @type {Timeline} */
    this.timeline = { seconds: 0, marks: [], forks: [] };
    /** What the left picture plays: a part of the film, while two futures are compared. @type {[Span, Span] | null} */
    this.compared = null;
    /** Whether the session is deleted although others go on from it. */
    this.force = false;
    this.video.addEventListener('timeupdate', () => this.#moved());
    this.video.addEventListener('play', () => this.compared && void this.other.play().catch(() => {}));
    this.video.addEventListener('pause', () => this.other.pause());
    this.video.addEventListener('seeked', () => this.#meet());
    element('forks', HTMLSelectElement).addEventListener('change', (event) => this.#compare(Number(/** @type {HTMLSelectElement} */ (event.target).value)));
    element('film', HTMLSelectElement).addEventListener('change', (event) => void this.#play(/** @type {HTMLSelectElement} */ (event.target).value));
    element('onward', HTMLButtonElement).addEventListener('click', () => void this.#goOn());
    element('replay', HTMLButtonElement).addEventListener('click', () => void this.#replay());
    const sure = element('sure', HTMLDialogElement);
    const usual = element('sure-why', HTMLElement).textContent ?? '';
    element('delete', HTMLButtonElement).addEventListener('click', () => this.#ask(usual, false));
    element('sure-no', HTMLButtonElement).addEventListener('click', () => sure.close());
    element('sure-yes', HTMLButtonElement).addEventListener('click', () => {
      sure.close();
      void this.#delete(this.force);
    });
  }

  async show() {
    element('session', HTMLElement).hidden = false;
    try {
      this.detail = /** @type {Detail} */ (await this.server.json(`/${encodeURIComponent(this.name)}`));
    } catch (error) {
      this.#say(error);
      element('screens', HTMLElement).hidden = element('acts', HTMLElement).hidden = true;
      element('film-pick', HTMLElement).hidden = element('events-title', HTMLElement).hidden = true;
      say(element('session-title', HTMLElement), 'Not here');
      return;
    }
    const { session } = this.detail;
    say(element('session-title', HTMLElement), `${session.room} · ${session.card}`);
    document.title = `${session.room} · Library · Worldroom`;
    const when = new Date(session.opened * 1000).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });
    this.#say(`${when} · ${about(session)} · ${this.detail.chunks} chunks`);
    const films = shownFilms(session);
    element('film-pick', HTMLElement).hidden = films.length < 2;
    element('screens', HTMLElement).hidden = films.length === 0;
    element('film', HTMLSelectElement).replaceChildren(...films.map(({ name, ticks }) => new Option(`${name} (${clock(ticks / TICKS)})`, name)));
    const film = films.at(-1);
    if (film) {
      element('film', HTMLSelectElement).value = film.name;
      await this.#play(film.name);
    } else {
      this.#list(this.detail.marks);
    }
  }

  /** @param {string} name of a film */
  async #play(name) {
    const film = this.detail?.session.films.find((each) => each.name === name);
    if (!film) return;
    this.#compare(-1);
    const path = `/${encodeURIComponent(this.name)}/${name}`;
    try {
      const [timeline, address, notes] = await Promise.all([this.server.json(`${path}.timeline`), this.server.address(`${path}.mp4`), this.server.address(`${path}.jsonl`)]);
      this.timeline = /** @type {Timeline} */ (timeline);
      this.video.src = this.other.src = address;
      this.#link('download', address, `${this.name}-${name}.mp4`);
      this.#link('notes', notes, `${this.name}-${name}.jsonl`);
    } catch (error) {
      this.#say(error);
      return;
    }
    element('line', HTMLElement).hidden = false;
    this.#draw(film);
    this.#list(this.timeline.marks);
    const { forks } = this.timeline;
    element('forks-pick', HTMLElement).hidden = forks.length === 0;
    element('forks', HTMLSelectElement).replaceChildren(
      new Option('nothing', '-1'),
      ...forks.map(({ left, right }, number) => new Option(`futures ${left.branch} and ${right.branch}, at ${clock(left.at)}`, String(number))),
    );
  }

  /** @param {Film} film */
  #draw(film) {
    const { marks, seconds } = this.timeline;
    const shown = marks.filter((mark) => mark.at !== null && words(mark) !== null);
    element('marks', HTMLElement).replaceChildren(...shown.map((mark) => {
      const dot = make('span', { class: `dot ${kind(mark)}` });
      dot.style.left = `${(100 * (mark.at ?? 0)) / Math.max(seconds, 0.01)}%`;
      dot.title = `${clock(mark.at ?? 0)} ${words(mark)}`;
      return dot;
    }));
    const canvas = element('activity', HTMLCanvasElement);
    const brush = canvas.getContext('2d');
    if (!brush) return;
    brush.clearRect(0, 0, canvas.width, canvas.height);
    brush.fillStyle = getComputedStyle(canvas).color;
    const most = Math.max(1, ...film.activity);
    const width = (canvas.width * SLOT_S) / Math.max(seconds, SLOT_S);
    film.activity.forEach((pressed, slot) => {
      const height = (canvas.height * pressed) / most;
      brush.fillRect(slot * width, canvas.height - height, Math.max(1, width - 1), height);
    });
  }

  /** With the film's times; a session without one has its own. @param {Mark[]} marks */
  #list(marks) {
    const filmed = marks.some(({ at }) => at !== null);
    const rows = marks.filter((mark) => words(mark) !== null).map((mark) => {
      const at = mark.at;
      const text = [make('span', { class: 'when', text: at !== null ? clock(at) : filmed ? '–' : clock(mark.seconds) }), make('span', { class: `dot ${kind(mark)}` }), make('span', { text: words(mark) ?? '' })];
      if (at === null) return make('li', {}, [make('span', { class: 'event' }, text)]);
      const button = make('button', { class: 'event' }, text);
      button.type = 'button';
      button.addEventListener('click', () => {
        this.#compare(-1);
        this.video.currentTime = at;
        this.video.scrollIntoView({ block: 'nearest' });
      });
      return make('li', {}, [button]);
    });
    element('events', HTMLElement).replaceChildren(...rows);
  }

  /** Both futures from where they part, or the whole film. @param {number} number of the fork, -1 = none */
  #compare(number) {
    const fork = this.timeline.forks[number];
    this.compared = fork ? [fork.left, fork.right] : null;
    element('forks', HTMLSelectElement).value = String(fork ? number : -1);
    element('screens', HTMLElement).classList.toggle('two', Boolean(fork));
    element('right', HTMLElement).hidden = element('left-words', HTMLElement).hidden = !fork;
    if (!fork) {
      this.other.pause();
      return;
    }
    say(element('left-words', HTMLElement), `Future ${fork.left.branch}`);
    say(element('right-words', HTMLElement), `Future ${fork.right.branch}`);
    this.video.currentTime = fork.left.at;
    this.other.currentTime = fork.right.at;
    void this.video.play().catch(() => {});
  }

  /** The right picture is as far into its future as the left one is into its own. */
  #meet() {
    if (!this.compared) return;
    const [left, right] = this.compared;
    this.other.currentTime = Math.min(right.until, right.at + Math.max(0, this.video.currentTime - left.at));
  }

  #moved() {
    const now = this.video.currentTime;
    element('now', HTMLElement).style.left = `${(100 * now) / Math.max(this.timeline.seconds, 0.01)}%`;
    if (!this.compared) return;
    const [left, right] = this.compared;
    if (now >= left.until || now - left.at >= right.until - right.at) this.video.pause();
    if (now < left.at - SLOT_S || now > left.until + SLOT_S) this.#compare(-1);
  }

  /** A new room whose world goes on from what the film shows, or from the end where there is no film. */
  async #goOn() {
    await this.#enter('onward', 'rooms', this.#shows() ? this.#moment() : {});
  }

  /** A new room that shows the session again: from what the film shows, from the beginning where it was not played. */
  async #replay() {
    const within = this.#shows() && this.video.currentTime > 0 && !this.video.ended;
    await this.#enter('replay', 'replay', within ? this.#moment() : {});
  }

  /**
   * @param {string} id of the button
   * @param {string} what is made of the session
   * @param {object} from
   */
  async #enter(id, what, from) {
    const button = element(id, HTMLButtonElement);
    button.disabled = true;
    try {
      const planned = await (await this.server.ask(`/${encodeURIComponent(this.name)}/${what}`, 'POST', from)).json();
      location.assign(`r/${encodeURIComponent(planned.room)}${location.hash}`);
    } catch (error) {
      this.#say(error);
    }
    button.disabled = false;
  }

  #moment() {
    return { film: element('film', HTMLSelectElement).value, seconds: this.video.currentTime };
  }

  /** Whether a film is there to point at a moment with. */
  #shows() {
    return !element('screens', HTMLElement).hidden;
  }

  /** @param {string} why @param {boolean} force whether other sessions go on from it */
  #ask(why, force) {
    this.force = force;
    element('sure-why', HTMLElement).textContent = why;
    element('sure', HTMLDialogElement).showModal();
  }

  /** @param {boolean} force */
  async #delete(force) {
    try {
      const removed = await (await this.server.ask(`/${encodeURIComponent(this.name)}${force ? '?force=1' : ''}`, 'DELETE')).json();
      this.video.removeAttribute('src');
      this.other.removeAttribute('src');
      element('screens', HTMLElement).hidden = element('line', HTMLElement).hidden = element('acts', HTMLElement).hidden = true;
      element('events-title', HTMLElement).hidden = true;
      element('events', HTMLElement).replaceChildren();
      this.#say(`Deleted: ${removed.entries} entries of its journal, ${removed.films} films (${Math.round(removed.film_bytes / 1000)} kB).`);
    } catch (error) {
      if (error instanceof Refused && error.code === 'has_children') this.#ask(error.message, true);
      else this.#say(error);
    }
  }

  /**
   * @param {string} id
   * @param {string} address
   * @param {string} name
   */
  #link(id, address, name) {
    const link = element(id, HTMLAnchorElement);
    link.href = address;
    link.download = name;
    link.hidden = false;
  }

  /** @param {unknown} what */
  #say(what) {
    say(element('session-said', HTMLElement), what instanceof Error ? what.message : String(what));
  }
}
