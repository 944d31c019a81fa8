/** What waits for its chunk, said under the prompt box: everybody's, as the server tells it. */

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
    /** The next one first. @type {Waiting[]} */
    this.all = [];
    /** Own ones, by the ids of their messages. @type {Set<number>} */
    this.own = new Set();
  }

  /** @param {Waiting[]} prompts */
  tell(prompts) {
    this.all = prompts;
    this.show();
  }

  /** @param {number} id of a message whose prompt waits */
  add(id) {
    this.own.add(id);
  }

  /** It began, or never will; returns whether it waited. @param {number} id */
  drop(id) {
    return this.own.delete(id);
  }

  /** Time has passed. */
  show() {
    this.line.hidden = this.all.length === 0;
    say(this.line, this.all.length === 0 ? '' : `Then ${this.all.map((prompt) => waits(prompt, this.chunks)).join(' · ')}`);
  }
}
