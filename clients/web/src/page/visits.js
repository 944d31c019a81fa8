/** Rooms this browser was in, newest first, for the lobby. Knows no element. */

const KEY = 'worldroom:visits';
const KEPT = 8;

/** `at` in ms since 1970. @typedef {{ room: string, title: string, at: number }} Visit */

/** @param {import('../../sdk/storage.js').Memory} memory @returns {Visit[]} */
export function visits(memory) {
  try {
    const list = JSON.parse(memory.get(KEY) ?? '[]');
    return Array.isArray(list) ? list.filter(({ room, title }) => typeof room === 'string' && typeof title === 'string') : [];
  } catch {
    return [];
  }
}

/**
 * @param {import('../../sdk/storage.js').Memory} memory
 * @param {{ room: string, title: string }} visit
 */
export function remember(memory, { room, title }) {
  const others = visits(memory).filter((visit) => visit.room !== room);
  memory.set(KEY, JSON.stringify([{ room, title, at: Date.now() }, ...others].slice(0, KEPT)));
}
