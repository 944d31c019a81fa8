/** Finding elements of index.html and making new ones, with their types. */

/**
 * The element with this id; its absence is a bug in index.html and said so at once.
 * @template {Element} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function element(id, kind) {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new Error(`index.html has no ${kind.name} with id "${id}"`);
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {{ class?: string, text?: string }} [what]
 * @param {Node[]} [children]
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(tag, what = {}, children = []) {
  const made = document.createElement(tag);
  if (what.class) made.className = what.class;
  if (what.text) made.textContent = what.text;
  made.append(...children);
  return made;
}

/**
 * Set a text only when it differs: the figures change often and most of them stay the same.
 * @param {Element} target
 * @param {string} text
 */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
