"""The fixed skyline around the car: two silhouettes per biome, stars and lit windows, periodic in yaw.

The period is short (192 columns, the view shows 128), so that most of it is always in view and a
learner can know what comes next when the car turns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .palette import HORIZON, colour

Array = NDArray[np.float32]
PERIOD = 192
SUN_COLUMN = 118  # where in the panorama the sun or moon hangs


def _waves(rng: np.random.Generator, waves: tuple[tuple[int, float], ...], power: float = 1.0) -> Array:
    x = np.arange(PERIOD) / PERIOD * 2 * np.pi
    y = sum((a * np.sin(k * x + rng.uniform(0, 6.28)) for k, a in waves), np.zeros(PERIOD))
    return np.asarray(((y - y.min()) / (y.max() - y.min())) ** power, np.float32)


def _profiles() -> Array:
    """Heights in pixels [biome, layer, column], in the order of BIOMES."""
    r = np.random.default_rng(5)
    mesa = np.clip(_waves(r, ((2, 1), (3, 0.8), (5, 0.5))) * 1.8 - 0.5, 0, 1)
    desert = (4 + 9 * mesa, 1 + 4 * _waves(r, ((2, 1), (5, 0.5))))
    forest = (5 + 10 * _waves(r, ((2, 1), (3, 0.7), (5, 0.4))), 3 + 3 * _waves(r, ((3, 1), (7, 0.6), (13, 0.5))))
    peaks = _waves(r, ((2, 1), (3, 0.7), (7, 0.5), (11, 0.25)), 1.3)
    snow = (6 + 16 * peaks, 2 + 5 * _waves(r, ((2, 1), (5, 0.5))))
    city = (np.repeat(r.uniform(7, 22, PERIOD // 8), 8), np.repeat(r.uniform(2, 11, PERIOD // 12), 12))
    islands = np.clip(_waves(r, ((1, 1), (2, 0.8), (3, 0.5))) * 2 - 0.9, 0, 1)
    coast = (0.5 + 6 * islands, 0.2 + 1.5 * np.clip(_waves(r, ((2, 1), (3, 1))) * 2 - 1, 0, 1))
    return np.asarray([desert, forest, snow, city, coast], np.float32)


def _stars() -> Array:
    r = np.random.default_rng(9)
    sky = np.zeros((HORIZON, PERIOD), np.float32)
    for _ in range(26):
        row, col, bright = r.integers(0, HORIZON - 8), r.integers(PERIOD), r.uniform(0.5, 1)
        sky[row, col] = bright
        sky[row, (col + 1) % PERIOD] = bright * 0.6
        sky[row + 1, col] = bright * 0.5
    return sky


def _windows() -> tuple[Array, Array]:
    """Lit windows, coverage [HORIZON, PERIOD] counted from the horizon up, and colour [PERIOD, 3]."""
    r = np.random.default_rng(3)
    on = (r.random((HORIZON // 4, PERIOD // 4)) < 0.42).repeat(4, 0).repeat(4, 1).astype(np.float32)
    pane = ((np.arange(HORIZON) % 4 < 2)[:, None] & (np.arange(PERIOD) % 4 < 2)[None]).astype(np.float32)
    warm = (r.random(PERIOD // 8) < 0.5).repeat(8)
    tint = np.where(warm[:, None], colour("ffd86a"), colour("39e6ff")).astype(np.float32)
    return on * pane, tint


PROFILES = _profiles()  # [5, 2, PERIOD]
STARS = _stars()  # [HORIZON, PERIOD]
WINDOWS, WINDOW_TINT = _windows()


def scroll(table: Array, column_BW: NDArray[np.float64]) -> Array:
    """Sample a periodic table [..., PERIOD] at fractional columns: [..., B, W], linear in between."""
    low = np.floor(column_BW)
    part = (column_BW - low).astype(np.float32)
    i = low.astype(np.int64) % PERIOD
    return np.asarray(table[..., i] * (1 - part) + table[..., (i + 1) % PERIOD] * part, np.float32)
