/** Words that were written here: a draft that survives everything, and earlier prompts. Knows no element. */

const KEPT = 30;

export class Words {
  /**
   * @param {string} room drafts belong to a room, earlier prompts to the person
   * @param {import('../../sdk/storage.js').Memory} memory
   */
  constructor(room, memory) {
    this.draftKey = `worldroom:draft:${room}`;
    this.memory = memory;
    this.earlier = parsed(memory.get(HISTORY_KEY));
    /** Where arrow up has gone to, from the newest; -1 = the draft. */
    this.at = -1;
    this.draft = memory.get(this.draftKey) ?? '';
  }

  /** @param {string} text */
  typed(text) {
    this.at = -1;
    this.draft = text;
    this.memory.set(this.draftKey, text);
  }

  /** @param {string} text */
  sent(text) {
    this.earlier = [text, ...this.earlier.filter((each) => each !== text)].slice(0, KEPT);
    this.memory.set(HISTORY_KEY, JSON.stringify(this.earlier));
    this.at = -1;
  }

  /**
   * The text one step older (1) or newer (-1); the draft comes after the newest.
   * @param {1 | -1} step
   */
  walk(step) {
    this.at = Math.min(this.earlier.length - 1, Math.max(-1, this.at + step));
    return this.earlier[this.at] ?? this.draft;
  }
}

const HISTORY_KEY = 'worldroom:prompts';

/** @param {string | null} text @returns {string[]} */
function parsed(text) {
  try {
    const list = JSON.parse(text ?? '[]');
    return Array.isArray(list) ? list.filter((each) => typeof each === 'string').slice(0, KEPT) : [];
  } catch {
    return [];
  }
}
