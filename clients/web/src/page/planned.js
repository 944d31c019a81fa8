/** What waits for its chunk, said under the prompt box: of this page's own prompts, which the server answers. */

import { element, say } from './dom.js';
import { mixed } from './shares.js';

/** @typedef {{ text: string, weight?: number, others?: import('../../sdk/messages.js').WeighedText[], at: number }} Waiting */

/** @param {Waiting} prompt @param {import('./chunks.js').ChunkClock} chunks */
export function waits(prompt, chunks) {
  return `at chunk ${prompt.at}, in ${Math.ceil(chunks.secondsTo(prompt.at))} s: ${mixed(prompt)}`;
}

export class Planned {
  /** @param {import('./chunks.js').ChunkClock} chunks */
  constructor(chunks) {
    this.chunks = chunks;
    this.line = element('planned', HTMLElement);
    /** By the id of their message. @type {Map<number, Waiting>} */
    this.waiting = new Map();
  }

  /** @param {number} id @param {Waiting} prompt */
  add(id, prompt) {
    this.waiting.set(id, prompt);
    this.show();
  }

  /** It began, or never will; returns whether it waited. @param {number} id */
  drop(id) {
    const waited = this.waiting.delete(id);
    if (waited) this.show();
    return waited;
  }

  /** Time has passed. */
  show() {
    const next = [...this.waiting.values()].sort((one, other) => one.at - other.at);
    this.line.hidden = next.length === 0;
    say(this.line, next.length === 0 ? '' : `Then ${next.map((prompt) => waits(prompt, this.chunks)).join(' · ')}`);
  }
}
