/** Who is here, who drives, and the wheel: ask for it, give it, let go of it, take an absent driver's. Knows no connection. */

import { element, make, say } from './dom.js';
import { Panel } from './popover.js';
import { speak, toast } from './toast.js';

/** @typedef {import('../../sdk/world.js').World} World */
/** What the wheel's button says and does now. @typedef {{ text: string, does: boolean, wait_s: number }} WheelAct */

export class People {
  /** @param {{ wheel: (to?: string) => void, refuse: (to: string) => void }} does `to` = a participant, none = ask, take or let go */
  constructor(does) {
    this.does = does;
    this.button = element('wheel', HTMLButtonElement);
    this.panel = new Panel(element('people-panel', HTMLElement), element('people', HTMLElement));
    /** @type {World | null} */
    this.world = null;
    this.timer = 0;
    this.driver = /** @type {string | null} */ (null);
    this.button.addEventListener('click', () => this.#ask());
  }

  /** @param {World} world */
  show(world) {
    const drove = this.driver === world.me;
    this.world = world;
    this.#changedHands(drove);
    this.driver = world.driver;
    this.draw();
  }

  /** A new connection: what changed since the last one is told by the welcome. @param {string | null} driver */
  begin(driver) {
    this.driver = driver;
  }

  draw() {
    const { world } = this;
    if (world === null) return;
    const now_ms = performance.now();
    const act = wheelAct(world, now_ms);
    say(element('people-text', HTMLElement), summary(world));
    element('people', HTMLElement).title = world.people.map(({ participant, name }) => (participant === world.me ? `${name} (you)` : name)).join(', ');
    this.button.hidden = act === null;
    this.button.disabled = act?.does === false;
    say(element('wheel-text', HTMLElement), act?.text ?? '');
    const rows = world.people.map((person) => this.#row(world, person));
    element('people-list', HTMLElement).replaceChildren(...rows);
    say(element('wheel-line', HTMLElement), wheelLine(world, now_ms));
    this.#acts(world, act);
    this.#asks(world);
    clearTimeout(this.timer);
    if (world.wheel_at_ms !== null && world.wheel_at_ms > now_ms) this.timer = setTimeout(() => this.draw(), 250);
  }

  // ---- inside -------------------------------------------------------------------------------------------------------

  #ask() {
    const { world } = this;
    if (world === null) return;
    if (!world.drives && world.driver !== null && (world.wheel_at_ms === null || world.wheel_at_ms > performance.now())) {
      toast(`${world.nameOf(world.driver) ?? 'Whoever drives'} was asked for the wheel`);
    }
    this.does.wheel();
    this.draw();
  }

  /** @param {boolean} drove */
  #changedHands(drove) {
    const { world } = this;
    if (world === null || world.driver === this.driver) return;
    if (world.drives && !drove) {
      toast('You have the wheel');
      speak('You have the wheel');
      } else if (drove && !world.drives) {
      const name = world.nameOf(world.driver);
      toast(name === null ? 'You have let go of the wheel' : `${name} has the wheel now`);
    }
  }

  /**
   * @param {World} world
   * @param {import('../../sdk/messages.js').Person} person
   */
  #row(world, { participant, name }) {
    const row = make('li', {}, [make('span', { class: 'who', text: participant === world.me ? `${name} (you)` : name })]);
    if (participant === world.driver) row.append(make('span', { class: 'badge', text: 'drives' }));
    else if (world.asking.includes(participant)) row.append(make('span', { class: 'badge', text: 'asks for the wheel' }));
    if (world.drives && participant !== world.me) row.append(this.#button(`Give ${name} the wheel`, 'Give the wheel', participant));
    return row;
  }

  /**
   * @param {World} world
   * @param {WheelAct | null} act
   */
  #acts(world, act) {
    const buttons = [];
    if (world.drives && world.people.length > 1) buttons.push(this.#button('Let go of the wheel', 'Let go of the wheel'));
    if (act) {
      const button = make('button', { text: act.text });
      button.type = 'button';
      button.disabled = !act.does;
      button.addEventListener('click', () => this.#ask());
      buttons.push(button);
    }
    element('wheel-acts', HTMLElement).replaceChildren(...buttons);
  }

  /** Who asked stands before the driver until there is an answer. @param {World} world */
  #asks(world) {
    const open = world.drives ? world.asking : [];
    const root = element('asks', HTMLElement);
    if (root.dataset.open === open.join()) return;
    root.dataset.open = open.join();
    root.replaceChildren(...open.map((participant) => {
      const name = world.nameOf(participant) ?? 'Somebody';
      const wait = make('button', { text: 'Not now' });
      wait.type = 'button';
      wait.addEventListener('click', () => this.does.refuse(participant));
      return make('div', {}, [make('span', { text: `${name} asks for the wheel` }), this.#button(`Give ${name} the wheel`, 'Give it', participant), wait]);
    }));
  }

  /**
   * @param {string} label
   * @param {string} text
   * @param {string} [to]
   */
  #button(label, text, to) {
    const button = make('button', { text });
    button.type = 'button';
    if (label !== text) button.setAttribute('aria-label', label);
    button.addEventListener('click', () => {
      this.panel.close();
      this.does.wheel(to);
    });
    return button;
  }
}

/**
 * What somebody without the wheel can do about it; null for who drives.
 * @param {World} world
 * @param {number} now_ms
 * @returns {WheelAct | null}
 */
export function wheelAct(world, now_ms) {
  if (world.drives || world.welcome === null) return null;
  if (world.driver === null) return { text: 'Take the wheel', does: true, wait_s: 0 };
  if (world.wheel_at_ms !== null) {
    const wait_s = Math.max(0, Math.ceil((world.wheel_at_ms - now_ms) / 1000));
    return wait_s > 0 ? { text: `Take the wheel in ${wait_s} s`, does: false, wait_s } : { text: 'Take the wheel', does: true, wait_s };
  }
  if (world.nameOf(world.driver) === null) return { text: 'The driver is away', does: false, wait_s: 0 };
  return world.asking.includes(world.me) ? { text: 'Asked for the wheel', does: false, wait_s: 0 } : { text: 'Ask for the wheel', does: true, wait_s: 0 };
}

/** @param {World} world */
export function summary(world) {
  const others = world.spectators - (world.drives ? 0 : 1);
  const watching = others > 0 ? `${others} ${world.drives ? '' : 'more '}watching` : '';
  const name = world.nameOf(world.driver);
  const wheel = world.drives ? 'You drive' : world.driver === null ? 'Nobody drives' : name === null ? 'The driver is away' : `${name} drives`;
  return [wheel, watching].filter(Boolean).join(' · ');
}

/**
 * @param {World} world
 * @param {number} now_ms
 */
function wheelLine(world, now_ms) {
  if (world.wheel_at_ms === null) return world.driver === null ? 'Nobody holds the wheel.' : '';
  const wait_s = Math.max(0, Math.ceil((world.wheel_at_ms - now_ms) / 1000));
  return wait_s > 0 ? `Who drove is away. The wheel is free in ${wait_s} s.` : 'Who drove is away. Anybody may take the wheel.';
}
