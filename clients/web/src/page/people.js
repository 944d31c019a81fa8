/** Who is here, who drives, and the wheel: ask for it, give it, let go of it, take an absent driver's. Knows no connection. */

import { element, make, say } from './dom.js';
import { badge, drivers, rule, take, yours } from './places.js';
import { Panel } from './popover.js';
import { speak, toast } from './toast.js';

/** @typedef {import('../../sdk/world.js').World} World */
/** What the wheel's button says and does now. @typedef {{ text: string, does: boolean, asks?: boolean }} WheelAct */

const UNKNOWN = '?';

export class People {
  /** @param {{ wheel: (to?: string) => void, refuse: (to: string) => void }} does `to` = a participant, none = ask, take or let go */
  constructor(does) {
    this.does = does;
    this.button = element('wheel', HTMLButtonElement);
    this.panel = new Panel(element('people-panel', HTMLElement), element('people', HTMLElement));
    /** @type {World | null} */
    this.world = null;
    this.timer = 0;
    /** What this page did at the wheel, '' = nothing. */
    this.does_now = '';
    this.button.addEventListener('click', () => this.#ask());
  }

  /** @param {World} world */
  show(world) {
    this.world = world;
    this.#changedHands();
    this.draw();
  }

  /** A new connection: the first that is told of the wheel is no change. */
  begin() {
    this.does_now = UNKNOWN;
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
    if (wheelAct(world, performance.now())?.asks) {
      toast(`${world.nameOf(world.driver) ?? 'Whoever drives'} was asked for ${world.shared ? 'a place' : 'the wheel'}`);
    }
    this.does.wheel();
    this.draw();
  }

  #changedHands() {
    const { world } = this;
    if (world === null || world.places.length === 0) return;
    const before = this.does_now;
    this.does_now = world.mine === null ? '' : yours(world, world.mine);
    if (before === this.does_now || (before === UNKNOWN && !(world.shared && world.mine))) return;
    if (world.mine !== null) {
      const says = world.shared ? this.does_now : 'You have the wheel';
      toast(says);
      speak(says);
      return;
    }
    const name = world.shared ? null : world.nameOf(world.driver);
    toast(name === null ? 'You have let go of the wheel' : `${name} has the wheel now`);
  }

  /**
   * @param {World} world
   * @param {import('../../sdk/messages.js').Person} person
   */
  #row(world, { participant, name }) {
    const row = make('li', {}, [make('span', { class: 'who', text: participant === world.me ? `${name} (you)` : name })]);
    const place = world.places.find(({ holder }) => holder === participant);
    if (place) row.append(make('span', { class: 'badge', text: badge(world, place) }));
    else if (world.asking.includes(participant)) row.append(make('span', { class: 'badge', text: 'asks for the wheel' }));
    const swaps = place !== undefined && badge(world, place) !== (world.mine && badge(world, world.mine));
    if (world.drives && participant !== world.me && (place === undefined || swaps)) {
      const [label, text] = swaps ? [`Exchange places with ${name}`, 'Exchange places'] : world.shared ? [`Give ${name} your place`, 'Give your place'] : [`Give ${name} the wheel`, 'Give the wheel'];
      row.append(this.#button(label, text, participant));
    }
    return row;
  }

  /**
   * @param {World} world
   * @param {WheelAct | null} act
   */
  #acts(world, act) {
    const buttons = [];
    const lets_go = world.shared ? 'Only watch' : 'Let go of the wheel';
    if (world.drives && world.people.length > 1) buttons.push(this.#button(lets_go, lets_go));
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
  const free = world.places.find(({ holder }) => holder === null);
  if (free) return { text: take(world, free), does: true };
  if (world.wheel_at_ms !== null) {
    const wait_s = Math.max(0, Math.ceil((world.wheel_at_ms - now_ms) / 1000));
    const takes = world.shared ? 'Take a place' : 'Take the wheel';
    return wait_s > 0 ? { text: `${takes} in ${wait_s} s`, does: false } : { text: takes, does: true };
  }
  if (world.nameOf(world.driver) === null) return { text: 'The driver is away', does: false };
  const what = world.shared ? 'a place' : 'the wheel';
  return world.asking.includes(world.me) ? { text: `Asked for ${what}`, does: false } : { text: `Ask for ${what}`, does: true, asks: true };
}

/** @param {World} world */
export function summary(world) {
  const others = world.spectators - (world.drives ? 0 : 1);
  const watching = others > 0 ? `${others} ${world.drives ? '' : 'more '}watching` : '';
  const others_drive = world.places.filter(({ holder }) => holder !== null && holder !== world.me).length;
  const wheel = world.mine ? yours(world, world.mine) : drivers(world);
  const beside = world.mine && others_drive > 0 ? `with ${others_drive} more` : '';
  return [[wheel, beside].filter(Boolean).join(' '), watching].filter(Boolean).join(' · ');
}

/**
 * @param {World} world
 * @param {number} now_ms
 */
function wheelLine(world, now_ms) {
  if (world.wheel_at_ms === null) return [rule(world), world.places.every(({ holder }) => holder === null) ? 'Nobody holds the wheel.' : ''].filter(Boolean).join(' ');
  const wait_s = Math.max(0, Math.ceil((world.wheel_at_ms - now_ms) / 1000));
  return wait_s > 0 ? `Who drove is away. The wheel is free in ${wait_s} s.` : 'Who drove is away. Anybody may take the wheel.';
}
