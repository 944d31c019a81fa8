"""The toy's pictures: a sky in the prompt's hue, stars that are the latent's, a ship with its trail, a second ship."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from .card import CHANNELS, HEIGHT, WIDTH
from .loop import SUB, DecodeRow, Latent, Ship
from .markers import BAND, draw


def picture(row: DecodeRow) -> NDArray[np.uint8]:
    """[F, HEIGHT, WIDTH, 3]: a sky in the prompt's hue, stars, a fading trail, the ship, and the marker band."""
    sky_H1C = sky(int(row.prompt_C[0]) % 360)
    frames = np.empty((len(row.path), HEIGHT, WIDTH, 3), np.uint8)
    for i, ship in enumerate(row.path):
        frame = frames[i]
        frame[:] = sky_H1C
        stars(frame, row.x_C)
        tail = (*row.trail, *row.path[:i])[-12:]
        for age, ghost in enumerate(reversed(tail)):
            _disc(frame, ghost, 2 if age < 4 else 1, (255 - 12 * age, 210 - 12 * age, 120 - 8 * age))
        _disc(frame, ship, 4, (255, 255, 255))
        _disc(frame, ship, 2, (255, 120, 40))
        for other in row.second[i : i + 1]:
            _disc(frame, other, 4, (20, 20, 40))
            _disc(frame, other, 2, (120, 220, 255))
        draw(frame, row.markers[i])
    return frames


@lru_cache(maxsize=8)
def sky(hue: int) -> NDArray[np.uint8]:
    """Vertical gradient of one hue in degrees, deep above and light below: [HEIGHT, 1, 3]."""
    rgb = np.clip(np.abs((hue / 60.0 + np.array([0.0, 4.0, 2.0])) % 6.0 - 3.0) - 1.0, 0.0, 1.0)
    height_H1 = np.linspace(0.0, 1.0, HEIGHT)[:, None]
    light = 0.15 + 0.6 * height_H1
    return ((rgb * 0.7 + 0.15) * light * 255.0)[:, None, :].astype(np.uint8)


def stars(frame_HWC: NDArray[np.uint8], x_C: Latent) -> None:
    """Eight twinkling pixels whose places are fixed and whose light is the latent's."""
    columns = (np.arange(CHANNELS) * 37 + 11) % WIDTH
    rows = BAND + (np.arange(CHANNELS) * 23 + 5) % (HEIGHT - BAND)
    frame_HWC[rows, columns] = (128 + x_C % 128).astype(np.uint8)[:, None]


def _disc(frame_HWC: NDArray[np.uint8], ship: Ship, radius: int, colour: tuple[int, int, int]) -> None:
    """A filled circle, cut at the edges of the play field."""
    x, y = ship.x // SUB, BAND + ship.y // SUB
    top, bottom = max(y - radius, BAND), min(y + radius + 1, HEIGHT)
    left, right = max(x - radius, 0), min(x + radius + 1, WIDTH)
    inside = _round(radius)[top - y + radius : bottom - y + radius, left - x + radius : right - x + radius]
    frame_HWC[top:bottom, left:right][inside] = colour


@cache
def _round(radius: int) -> NDArray[np.bool_]:
    """Which pixels around a centre are in the circle: [2 radius + 1, 2 radius + 1]."""
    squares = np.arange(-radius, radius + 1) ** 2
    inside: NDArray[np.bool_] = squares[:, None] + squares[None, :] <= radius * radius + 1
    return inside
