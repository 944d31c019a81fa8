"""The picture that every sender sends: stripes that move, and blocks that say when it was made.

Also read in the environment of a peer, which has numpy and no more of ours than files like this one.
"""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....models.toy.markers import BAND, BLOCK, COLUMNS, Marker, draw

UNIT_WIDTH, UNIT_HEIGHT = COLUMNS * BLOCK, 96
SPEED = 3
"""Pixels a frame."""


@dataclass(frozen=True, slots=True)
class PictureSpec:
    """`scale` times 160 x 96 pixels, `fps` a second, coded in `kbps`."""

    scale: int
    fps: int
    kbps: int


def now_us() -> int:
    """Microseconds on the clock that all processes of a machine share."""
    return time.monotonic_ns() // 1000


class MovingPicture:
    """`next()` is one picture, RGB, stamped with the moment in which its making began."""

    def __init__(self, spec: PictureSpec) -> None:
        self._scale = spec.scale
        self._width, height = UNIT_WIDTH * spec.scale, UNIT_HEIGHT * spec.scale
        rows, columns = np.mgrid[:height, : 2 * self._width]
        wave = 2 * np.pi / self._width * columns
        planes = [127 + 60 * np.sin(turns * wave) + 60 * np.sin(rows / (11 + turns)) for turns in (3, 5, 8)]
        self._strip_HWC = np.stack(planes, axis=-1).astype(np.uint8)
        self._band_HWC = np.zeros((BAND, UNIT_WIDTH, 3), np.uint8)
        self._number = 0

    def next(self) -> NDArray[np.uint8]:
        made = now_us()
        left = self._number * SPEED % self._width
        picture_HWC = self._strip_HWC[:, left : left + self._width].copy()
        draw(self._band_HWC, Marker(made >> 24, made, self._number))
        large = self._band_HWC.repeat(self._scale, axis=0).repeat(self._scale, axis=1)
        picture_HWC[: large.shape[0]] = large
        self._number += 1
        return picture_HWC


def age_us(high: int, low: int, now: int) -> int:
    """How long ago a picture with that stamp was made; `high` and `low` are the stamp's two numbers of 24 bits."""
    return (now - ((high << 24) | low)) % 2**48
