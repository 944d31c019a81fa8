/** The front door: the worlds of this server, the rooms that are live, the rooms where this person was. */

import { element, make, say } from '../page/dom.js';
import { visits } from '../page/visits.js';
import { memory } from '../../sdk/index.js';
import { CONSENT_KEY, NAME_KEY, ago, comeTo, controlWords, pictureOf, places, playAddress, watchable } from './lists.js';
import { padMovesFocus } from './padfocus.js';

/** @typedef {import('./lists.js').Card} Card */
/** @typedef {import('./lists.js').Capacity} Capacity */
/** @typedef {import('./lists.js').RoomView} RoomView */

const EVERY_MS = 5000;
const browser = memory(() => localStorage);
const worlds = element('worlds', HTMLElement);
const drivers = element('drivers', HTMLSelectElement);
let drawn = '';

async function look() {
  try {
    const [cards, capacity, rooms] = await Promise.all([ask('v1/cards'), ask('v1/capacity'), ask('v1/rooms')]);
    show(/** @type {Card[]} */ (cards), /** @type {Capacity[]} */ (capacity), /** @type {RoomView[]} */ (rooms));
  } catch (error) {
    const closed = error instanceof Error && (error.message === '401' || error.message === '403');
    say(element('worlds-none', HTMLElement), closed
      ? 'This server opens by invitation: use the whole address that you were given.'
      : 'The server does not answer. Trying again…');
    element('worlds-none', HTMLElement).hidden = false;
  }
}

/** @param {string} path @returns {Promise<unknown>} */
async function ask(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

/**
 * @param {Card[]} cards
 * @param {Capacity[]} capacity
 * @param {RoomView[]} rooms
 */
function show(cards, capacity, rooms) {
  const none = element('worlds-none', HTMLElement);
  none.hidden = cards.length > 0;
  say(none, 'The models of this server are loading.');
  say(element('places', HTMLElement), places(capacity));
  const now = JSON.stringify([cards, cards.map(({ name }) => places(capacity, name))]);
  if (now !== drawn) worlds.replaceChildren(...cards.map((card) => world(card, capacity)));
  drawn = now;
  const live = watchable(rooms).map((view) => {
    const { address, about, label } = comeTo(view, cards.find(({ name }) => name === view.card)?.title ?? view.card);
    return row(address, view.room, about, label);
  });
  list('live', 'live-list', live);
}

/**
 * @param {Card} card
 * @param {Capacity[]} capacity of all cards, device by device
 */
function world(card, capacity) {
  const picture = make('img');
  picture.alt = '';
  picture.src = pictureOf(card.name);
  picture.width = card.width;
  picture.height = card.height;
  const keys = controlWords(card.controls).map(([key, name]) => make('span', {}, [make('kbd', { text: key }), document.createTextNode(` ${name}`)]));
  const play = make('a', { class: 'solid', text: 'Play' });
  play.href = playAddress(drivers.value, card.name);
  play.dataset.card = card.name;
  play.setAttribute('aria-label', `Play ${card.title}`);
  return make('li', { class: 'world' }, [
    picture,
    make('div', {}, [
      make('h3', { text: card.title }),
      ...(card.about ? [make('p', { text: card.about })] : []),
      make('p', { class: 'keys' }, keys),
    ]),
    make('div', { class: 'foot' }, [make('span', { text: places(capacity, card.name) }), play]),
  ]);
}

/**
 * @param {string} address
 * @param {string} name
 * @param {string} about
 * @param {string} label
 */
function row(address, name, about, label) {
  const link = make('a', {}, [make('span', { text: name }), make('span', { text: about })]);
  link.href = address;
  link.setAttribute('aria-label', label);
  return make('li', {}, [link]);
}

/**
 * @param {string} section
 * @param {string} listed
 * @param {HTMLElement[]} rows
 */
function list(section, listed, rows) {
  element(section, HTMLElement).hidden = rows.length === 0;
  const box = element(listed, HTMLElement);
  if (box.textContent !== rows.map((each) => each.textContent).join('')) box.replaceChildren(...rows);
}

drivers.addEventListener('change', () => {
  for (const play of document.querySelectorAll('a[href^=play]')) {
    if (play instanceof HTMLAnchorElement) play.href = playAddress(drivers.value, play.dataset.card);
  }
});
const name = element('name', HTMLInputElement);
name.value = browser.get(NAME_KEY) ?? '';
name.addEventListener('change', () => browser.set(NAME_KEY, name.value.trim()));
const consent = element('consent', HTMLInputElement);
consent.checked = browser.get(CONSENT_KEY) === 'yes';
consent.addEventListener('change', () => browser.set(CONSENT_KEY, consent.checked ? 'yes' : 'no'));
list('recent', 'recent-list', visits(browser).map(({ room, title, at }) => row(`r/${room}`, room, `${title} · ${ago(Date.now() - at)}`, `Go back to ${room}: ${title}`)));
padMovesFocus();
void look();
setInterval(() => {
  if (!document.hidden) void look();
}, EVERY_MS);
