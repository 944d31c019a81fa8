/**
 * Looking around by pointer, for worlds that take it: a click locks the mouse to the picture until Escape, a finger drags.
 * Where the lock is refused (a foreign frame) a held mouse button drags as a finger does.
 */

/**
 * @param {HTMLElement} surface
 * @param {{ looks: () => boolean, look: (dx: number, dy: number) => void, locked: (on: boolean) => void }} to
 *   motion in widths and heights of the surface
 */
export function listenToLook(surface, { looks, look, locked }) {
  /** @type {{ id: number, x: number, y: number } | null} */
  let drag = null;
  const moved = (/** @type {number} */ dx, /** @type {number} */ dy) =>
    look(dx / Math.max(1, surface.clientWidth), dy / Math.max(1, surface.clientHeight));

  surface.addEventListener('pointerdown', (event) => {
    if (!looks() || event.button !== 0 || (event.target instanceof Element && event.target.closest('button'))) return;
    drag = { id: event.pointerId, x: event.clientX, y: event.clientY };
    if (event.pointerType !== 'mouse') surface.setPointerCapture(event.pointerId);
    else if (document.pointerLockElement !== surface) void lock(surface);
  });
  surface.addEventListener('pointermove', (event) => {
    if (document.pointerLockElement === surface) return moved(event.movementX, event.movementY);
    if (drag === null || event.pointerId !== drag.id) return undefined;
    moved(event.clientX - drag.x, event.clientY - drag.y);
    drag = { id: event.pointerId, x: event.clientX, y: event.clientY };
    return undefined;
  });
  for (const end of /** @type {const} */ (['pointerup', 'pointercancel'])) {
    surface.addEventListener(end, () => {
      drag = null;
    });
  }
  document.addEventListener('pointerlockchange', () => {
    drag = null;
    locked(document.pointerLockElement === surface);
  });
}

/** @param {HTMLElement} surface */
async function lock(surface) {
  try {
    await /** @type {any} */ (surface.requestPointerLock?.({ unadjustedMovement: true }));
  } catch {
    try {
      await surface.requestPointerLock?.();
    } catch {
      return; // dragging is left
    }
  }
}
