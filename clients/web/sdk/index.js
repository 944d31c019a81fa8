/** Worldroom for programs: `connect(address)` gives a room that stays connected until it is stopped. */

import { memory } from './storage.js';
import { Room, SteerError } from './room.js';
import { Seat } from './seat.js';

export { Room, SteerError, Seat, memory };
export { support } from './peer.js';

/**
 * A room's name, the address that its server's paths begin from, and the token that opens it (`#token=...`, which
 * browsers send to nobody).
 * @param {string | URL} address e.g. `https://host/r/blue-otter-12`, also under a path
 */
export function whereIs(address) {
  const url = new URL(address);
  const found = url.pathname.match(/^(.*\/)r\/([\w-]+)\/?$/);
  const access = new URLSearchParams(url.hash.slice(1)).get('token');
  return { base: `${url.origin}${found?.[1] ?? '/'}`, name: found?.[2] ?? 'lobby', query: url.searchParams, access };
}

/**
 * @param {string | URL} address
 * @param {{
 *   person?: string | null, role?: import('./messages.js').Role | null, storage?: () => Storage, token?: string | null,
 *   consent?: boolean, card?: string | null, drivers?: string | null, way?: import('./peer.js').Way,
 * }} [options] `token`: opens the room, where it is not in the address. `storage`: where the seat is remembered across
 *   reloads. `consent`: what is done in the room may be used to train models. `way`: `throughLiveKit(...)`, if not directly.
 *   `card`, `drivers`: the world of a room that is not open yet, and how several people drive it (`turns`, `controls:2`,
 *   `vote:5`), where the address does not say it
 */
export function connect(address, { person = null, role = null, storage, token = null, consent = false, card = null, drivers = null, way } = {}) {
  const { base, name, query, access } = whereIs(address);
  const none = () => {
    throw new Error('nothing is remembered');
  };
  const seat = new Seat(name, memory(storage ?? none), token ?? access);
  const room = new Room({ base, name, seat, person, role, consent, way, card: card ?? query.get('card'), drivers: drivers ?? query.get('drivers') });
  room.start();
  return room;
}
