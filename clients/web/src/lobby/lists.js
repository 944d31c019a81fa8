/** What the lobby says about worlds and rooms. Pure. */

export const NAME_KEY = 'worldroom:name';
/** 'yes' where this person lets what they do be used to train models. */
export const CONSENT_KEY = 'worldroom:consent';

/**
 * @typedef {{
 *   name: string, title: string, width: number, height: number, controls: { name: string, keys: string[] }[],
 *   about?: string,
 * }} Card
 */
/**
 * Shares are of a device's time, the most that is given of it is the same for all of its cards.
 * @typedef {{
 *   card: string, device: string, sessions: number, asleep: number, sessions_max: number, waiting: number,
 *   share_used: number, share_max: number, price_us: number, chunk_us: number,
 * }} Capacity
 */
/** @typedef {{ room: string, card: string, state: string, viewers: number, driver: boolean, drivers?: string, places_free?: number }} RoomView */

/** @type {Record<string, string>} */
const GLYPHS = { ArrowLeft: '←', ArrowRight: '→', ArrowUp: '↑', ArrowDown: '↓', Space: '␣', ShiftLeft: '⇧', PageUp: '⇞', PageDown: '⇟' };

/** Worlds of which the page has a picture of their own. */
const PICTURED = new Map([['drive', 'drive.jpg']]);

/** @param {string} card */
export function pictureOf(card) {
  return `web/worlds/${PICTURED.get(card) ?? 'world.svg'}`;
}

/**
 * How many more find a place, at most: cards of one device have places of their own and share its time, so the cheapest
 * come first. An empty device takes one, whatever it costs.
 * @param {Capacity[]} device all cards of one device
 * @param {string} [card] of this one alone
 */
function free(device, card) {
  const used = device.reduce((sum, each) => sum + each.share_used, 0);
  const share = (/** @type {Capacity} */ each) => (each.chunk_us > 0 ? each.price_us / each.chunk_us : 0);
  let left = Math.max(0, (device[0]?.share_max ?? 0) - used);
  let count = 0;
  const asked = device.filter((each) => card === undefined || each.card === card);
  for (const each of asked.sort((a, b) => share(a) - share(b))) {
    const empty = Math.max(0, each.sessions_max - awake(each));
    const fit = share(each) > 0 ? Math.floor(left / share(each) + 1e-9) : empty;
    const more = Math.min(empty, used === 0 && count === 0 ? Math.max(1, fit) : fit);
    left -= more * share(each);
    count += more;
  }
  return count;
}

/** @param {Capacity} each */
function awake({ sessions, asleep }) {
  return sessions - asleep;
}

/** @param {Capacity[]} capacity of all cards @param {string} [card] what is said of this one alone */
export function places(capacity, card) {
  const devices = [...new Set(capacity.map(({ device }) => device))].map((name) => capacity.filter(({ device }) => device === name));
  const left = devices.reduce((sum, device) => sum + free(device, card), 0);
  const asked = capacity.filter((each) => card === undefined || each.card === card);
  const most = left + asked.reduce((sum, each) => sum + awake(each), 0);
  const lines = new Map(asked.map((each) => [each.device, each.waiting])); // one line for all cards of a device
  const waiting = [...lines.values()].reduce((sum, each) => sum + each, 0);
  if (asked.length === 0) return '';
  if (left > 0) return `${left} of ${most} places free`;
  const taken = most === 1 ? 'The only place is taken' : `All ${most} places taken`;
  return waiting > 0 ? `${taken}, ${waiting} in line` : `${taken}: you stand in line`;
}

/** The key and the name of each control. @param {Card['controls']} controls @returns {[string, string][]} */
export function controlWords(controls) {
  return controls.map(({ name, keys }) => {
    const key = keys.find((each) => each.startsWith('Arrow')) ?? keys[0] ?? '';
    return [GLYPHS[key] ?? key.replace(/^(Key|Digit)/, ''), name];
  });
}

/** Rooms with somebody in them, the fullest first. @param {RoomView[]} rooms */
export function watchable(rooms) {
  return rooms.filter(({ viewers, state }) => viewers > 0 && state !== 'closed').sort((a, b) => b.viewers - a.viewers);
}

/** Where the play button leads. @param {string} drivers how several people drive, '' = one at a time @param {string} [card] */
export function playAddress(drivers, card) {
  const said = new URLSearchParams({ ...(card && { card }), ...(drivers && { drivers }) }).toString();
  return said ? `play?${said}` : 'play';
}

/** A room as somebody may come to it: to drive with the others, or to watch. @param {RoomView} room @param {string} title */
export function comeTo({ room, viewers, drivers = 'turns', places_free = 0 }, title) {
  const joins = drivers !== 'turns' && places_free > 0;
  const about = [title, `${viewers} in`, ...(joins ? [`${places_free} more may ${drivers.startsWith('vote') ? 'vote' : 'drive'}`] : [])];
  return {
    address: joins ? `r/${room}` : `r/${room}?watch`,
    about: about.join(' · '),
    label: `${joins ? 'Join' : 'Watch'} ${room}: ${about.join(', ')}`,
  };
}

/** @param {number} ms */
export function ago(ms) {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ago` : `${Math.floor(hours / 24)} d ago`;
}
