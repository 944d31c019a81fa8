/**
 * Where a card's controls lie: two clusters for two thumbs, from 1 to 16 controls. Pure: knows no element.
 *
 *   only directions            directions and more          move, look and more
 *     [^]                      [^]          [.][.][.]        [^]          [^]    [.]
 *   [<][v][>]                [<][v][>]      [.][.][.]      [<][v][>]    [<][v][>][.]
 *   cross                    left           right          left         right
 */

/** @typedef {import('../../sdk/messages.js').ControlView} ControlView */
/** @typedef {'left' | 'right' | 'up' | 'down'} Direction */
/** @typedef {{ index: number, direction: Direction | null }} Slot */
/** `cross`: nothing but directions. @typedef {{ cross: boolean, left: Slot[], right: Slot[] }} Layout */

/** @type {Record<string, Direction>} */
const MOVES = { KeyW: 'up', KeyA: 'left', KeyS: 'down', KeyD: 'right' };
/** @type {Record<string, Direction>} */
const ARROWS = { ArrowUp: 'up', ArrowLeft: 'left', ArrowDown: 'down', ArrowRight: 'right' };

/**
 * The directions of a key family among controls that are still free; a direction belongs to the first control that has it.
 * @param {ControlView[]} controls
 * @param {Record<string, Direction>} family
 * @param {ReadonlySet<number>} taken
 * @returns {Slot[]}
 */
function cross(controls, family, taken) {
  /** @type {Map<Direction, Slot>} */
  const found = new Map();
  controls.forEach(({ keys }, index) => {
    const direction = keys.map((key) => family[key]).find((each) => each !== undefined);
    if (direction && !taken.has(index) && !found.has(direction)) found.set(direction, { index, direction });
  });
  return [...found.values()];
}

/**
 * Which controls move, look, and do the rest.
 * @param {ControlView[]} controls
 */
export function groups(controls) {
  const wasd = cross(controls, MOVES, new Set());
  const move = wasd.length > 0 ? wasd : cross(controls, ARROWS, new Set());
  const moves = new Set(move.map(({ index }) => index));
  const look = cross(controls, ARROWS, moves);
  const taken = new Set([...moves, ...look.map(({ index }) => index)]);
  const rest = controls.flatMap((_, index) => (taken.has(index) ? [] : [{ index, direction: null }]));
  return { move, look, rest };
}

/**
 * @param {ControlView[]} controls
 * @returns {Layout}
 */
export function layout(controls) {
  const { move, look, rest } = groups(controls);
  if (look.length === 0 && rest.length === 0) {
    const sideways = move.filter(({ direction }) => direction === 'left' || direction === 'right');
    return { cross: true, left: sideways, right: move.filter((slot) => !sideways.includes(slot)) };
  }
  if (move.length === 0) {
    const half = Math.ceil(rest.length / 2);
    return { cross: false, left: rest.slice(0, half), right: rest.slice(half) };
  }
  return { cross: false, left: move, right: [...look, ...rest] };
}

/**
 * What the caps under a point are, for fingers that slide: all whose edges are at most `slop` away, so that between two
 * neighbours both are meant.
 * @param {readonly { left: number, top: number, right: number, bottom: number }[]} boxes
 * @param {number} x
 * @param {number} y
 * @param {number} slop
 * @returns {number[]} indices into boxes
 */
export function capsAt(boxes, x, y, slop) {
  const inside = (/** @type {{ left: number, top: number, right: number, bottom: number }} */ box) =>
    x >= box.left - slop && x <= box.right + slop && y >= box.top - slop && y <= box.bottom + slop;
  return boxes.flatMap((box, index) => (inside(box) ? [index] : []));
}
