"""Which simulated worlds labels speak of: the nearest that could be, whatever a network has made of them.

`settled` is the inverse of `private` (data.py) on labels of a world that stands, and a projection on all others: phases
go to their circle, half objects become whole ones or none, bends and speeds stay within what the simulator knows.

Legend: B worlds, S sides, O objects of a side, C places of marks, G places an object may be found at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...models.drive import memory
from ...models.drive.innovations import CURVATURE
from ..drive.remember import marks
from ..drive.simulator.panorama import PERIOD
from ..drive.simulator.road import ENTRY, FOCAL, OBJECT_ENTRY
from ..drive.simulator.world import LIMIT, PLACES, TOP_SPEED, World, first_world
from .dice import Array, Luck

GONE = -1e9  # where an empty place's object stands
WHOLE = 0.5  # share of a mark from which on it is an object
NEAREST = 5.0  # metres between two objects of one side, at least
STEEPEST, LARGEST_DRIVE = 0.36, 3.5
FINE = 0.05  # metres of the table of bends
_FOUND_G = np.arange(0.1, OBJECT_ENTRY + 0.1, 0.2)
_MARK_GC = marks(_FOUND_G[:, None], np.ones((len(_FOUND_G), 1), np.int8))
_UNIT_GC = _MARK_GC / np.linalg.norm(_MARK_GC, axis=1, keepdims=True)
_AHEAD = np.arange(0, ENTRY + 1 + FINE, FINE)


def _between(knots: tuple[int, ...], at_A: NDArray[np.float64]) -> Array:
    """Matrix [A, knots] of a smooth curve through values at the knots (cubic Hermite, tangents by differences)."""
    x, values = np.array(knots, np.float64), np.eye(len(knots))
    tangents = np.gradient(values, x, axis=0)
    low = np.clip(np.searchsorted(x, at_A, "right") - 1, 0, len(x) - 2)
    wide = (x[low + 1] - x[low])[:, None]
    t = (at_A[:, None] - x[low][:, None]) / wide
    first = (1 + 2 * t) * (1 - t) ** 2 * values[low] + t * (1 - t) ** 2 * wide * tangents[low]
    then = t**2 * (3 - 2 * t) * values[low + 1] + t**2 * (t - 1) * wide * tangents[low + 1]
    return (first + then).astype(np.float32)


_BENDS_AK = _between(memory.BEND_METRES, _AHEAD)


def settled(labels_BM: Array, rng: np.random.Generator) -> tuple[World, Luck]:
    """Worlds that stand as labels [B, 99] say, and their luck; looks are any."""
    known, n = memory.MEMORY_TOKENS * memory.CHANNELS, len(labels_BM)
    car, *sides = labels_BM[:, :known].reshape(n, memory.MEMORY_TOKENS, -1).swapaxes(0, 1)
    world = first_world(rng, n)
    _set_car(world, car)
    _set_bends(world, car[:, memory.BENDS])
    for side, marked in enumerate(sides):
        ahead_BO, kind_BO = _objects(marked)
        there = np.isfinite(ahead_BO)
        world.object_BSO[:, side] = np.where(there, world.distance_B[:, None] + ahead_BO, GONE)
        world.kind_BSO[:, side] = kind_BO
    drive, kinds = labels_BM[:, known], labels_BM[:, known + 1 :]
    kind_B2 = np.where(kinds < 0, -1, 1).astype(np.int64)
    return world, Luck(rng, np.clip(drive, -LARGEST_DRIVE, LARGEST_DRIVE).astype(np.float64), kind_B2)


def _set_car(world: World, car_BC: Array) -> None:
    fast = memory.SPEED_MIDDLE + memory.SPEED_UNIT * car_BC[:, 0]
    slow = 4 * (car_BC[:, 1] + 1)  # finer, up to 8 m/s
    world.speed_B = np.clip(np.where(fast < 7, slow, fast), 0, TOP_SPEED).astype(np.float32)
    world.offset_B = np.clip(memory.OFFSET_UNIT * car_BC[:, memory.OFFSET], -LIMIT, LIMIT).astype(np.float32)
    world.heading_B = np.clip(memory.HEADING_UNIT * car_BC[:, memory.HEADING], -STEEPEST, STEEPEST).astype(np.float32)
    world.lean_B = np.clip(car_BC[:, 4] / 1.5, -1, 1).astype(np.float32)
    world.braking_B = car_BC[:, 5] > 0.5
    world.distance_B = 1000 * memory.STRIPE + memory.STRIPE * _turn(car_BC[:, memory.STRIPES], (1, 2))
    world.yaw_B = PERIOD / FOCAL * _turn(car_BC[:, memory.SKYLINE], (1, 2, 4))


def _turn(waves_BW: Array, orders: tuple[int, ...]) -> NDArray[np.float64]:
    """Which share of a turn [B] waves speak of, sine and cosine of each order; the finer ones say it more exactly."""
    found = np.zeros(len(waves_BW))
    for i, order in enumerate(orders):
        angle = np.arctan2(waves_BW[:, 2 * i], waves_BW[:, 2 * i + 1]).astype(np.float64)
        off = (angle - order * found + np.pi) % (2 * np.pi) - np.pi
        found += off / order * (1.0 if i == 0 else 0.5)
    return found / (2 * np.pi) % 1.0


def _set_bends(world: World, bends_BK: Array) -> None:
    """The road's tape: cell j lies as far ahead as j less the part of a metre that is driven."""
    curvature = np.clip(bends_BK * memory.BEND_UNIT, -CURVATURE, CURVATURE)
    ahead = np.arange(ENTRY + 2) - (world.distance_B - np.floor(world.distance_B))[:, None]
    table = _BENDS_AK[np.clip(np.rint(ahead / FINE).astype(np.int64), 0, len(_BENDS_AK) - 1)]
    world.tape_BC = np.einsum("bck,bk->bc", table, curvature).astype(np.float32)
    world.head_B = curvature[:, -1].astype(np.float32)


def _objects(marks_BC: Array) -> tuple[Array, NDArray[np.int8]]:
    """Metres ahead (infinity for none) and kinds [B, O] of what a side's marks are made of, the plainest first."""
    left, n = marks_BC.copy(), len(marks_BC)
    ahead, kind = np.full((n, PLACES), np.inf, np.float32), np.ones((n, PLACES), np.int8)
    free, rows = np.ones((n, len(_FOUND_G)), np.bool_), np.arange(n)
    for place in range(PLACES):
        fit = np.where(free, left @ _UNIT_GC.T, 0.0)
        best = np.abs(fit).argmax(1)
        share = fit[rows, best] / np.linalg.norm(_MARK_GC[best], axis=1)
        whole = np.abs(share) > WHOLE
        ahead[:, place] = np.where(whole, _FOUND_G[best], np.inf)
        kind[:, place] = np.where(share < 0, -1, 1)
        left -= np.where(whole, share, 0.0)[:, None] * _MARK_GC[best]
        free &= ~whole[:, None] | (np.abs(_FOUND_G[None] - _FOUND_G[best][:, None]) >= NEAREST)
    return ahead, kind
