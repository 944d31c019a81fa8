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
/** @typedef {{ card: string, device: string, sessions: number, sessions_max: number, waiting: number }} Capacity */
/** @typedef {{ room: string, card: string, state: string, viewers: number, driver: boolean }} RoomView */

/** @type {Record<string, string>} */
const GLYPHS = { ArrowLeft: '←', ArrowRight: '→', ArrowUp: '↑', ArrowDown: '↓', Space: '␣', ShiftLeft: '⇧', PageUp: '⇞', PageDown: '⇟' };

/** Worlds of which the page has a picture of their own. */
const PICTURED = new Map([['drive', 'drive.jpg']]);

/** @param {string} card */
export function pictureOf(card) {
  return `web/worlds/${PICTURED.get(card) ?? 'world.svg'}`;
}

/** @param {Capacity[]} capacity */
export function places(capacity) {
  const most = capacity.reduce((sum, each) => sum + each.sessions_max, 0);
  const free = Math.max(0, most - capacity.reduce((sum, each) => sum + each.sessions, 0));
  const lines = new Map(capacity.map((each) => [each.device, each.waiting])); // one line for all cards of a device
  const waiting = [...lines.values()].reduce((sum, each) => sum + each, 0);
  if (most === 0) return '';
  if (free > 0) return `${free} of ${most} places free`;
  return waiting > 0 ? `All ${most} places taken, ${waiting} in line` : `All ${most} places taken: you stand in line`;
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

/** @param {number} ms */
export function ago(ms) {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ago` : `${Math.floor(hours / 24)} d ago`;
}
