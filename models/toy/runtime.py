"""The toy's steps: integer arithmetic against its slab, and the picture. Rows never see each other.

    slab [slots, ring, C] int64; an entry is read at weight 2 + age, so order and count of what is committed matter.

Knows no loop and no clock: `sleep` is handed in and spends the spec's step cost on the calling thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ..contract.cache import CacheView
from ..contract.loop import StepKind
from .card import CHANNELS, HEIGHT, WIDTH, WINDOW, ToySpec
from .loop import (
    MODULUS,
    SUB,
    CommitRow,
    Committed,
    Decoded,
    DecodeRow,
    Denoised,
    DenoiseRow,
    Latent,
    Ship,
    ToyResult,
    ToyRow,
)
from .markers import BAND, Marker, draw


class ToyRuntime:
    """See the module docstring."""

    def __init__(self, spec: ToySpec, sleep: Callable[[float], None]) -> None:
        self.spec = spec
        self._sleep = sleep
        self._slab: Latent = np.zeros((0, WINDOW + 1, CHANNELS), np.int64)

    def allocate(self, slots: int) -> None:
        self._slab = np.zeros((slots, WINDOW + 1, CHANNELS), np.int64)

    def execute(self, kind: StepKind, rows: Sequence[ToyRow], views: Sequence[CacheView | None]) -> list[ToyResult]:
        if len(rows) != len(views):
            raise ValueError(f"{len(rows)} rows but {len(views)} cache views")
        results = [self._one(kind, row, view) for row, view in zip(rows, views, strict=True)]
        if self.spec.sleeps and self.spec.step_seconds > 0:
            self._sleep(self.spec.step_seconds)
        return results

    def encode_prompt(self, text: str) -> Latent:
        """A hash of the text: equal texts, equal worlds; nothing else is promised."""
        words = np.frombuffer(hashlib.sha256(text.encode("utf-8", "replace")).digest(), "<u4")
        return words.astype(np.int64) % MODULUS

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[ToyRow, CacheView | None]]:
        x_C = np.arange(CHANNELS, dtype=np.int64)
        row: ToyRow
        match kind:
            case StepKind.DENOISE:
                row = DenoiseRow(x_C, x_C, x_C, (0, 0, 0, 0))
            case StepKind.COMMIT:
                row = CommitRow(x_C, (0, 0, 0, 0))
            case StepKind.DECODE:
                ships = (Ship(0, 0, 0, 0),) * self.spec.per_chunk
                row = DecodeRow(x_C, x_C, (), ships, (Marker(0, 0, 0),) * self.spec.per_chunk)
            case _:
                raise ValueError(f"the toy has no step '{kind}'")
        return [(row, CacheView(slot, tuple(range(WINDOW)), WINDOW)) for slot in range(count)]

    def read_entry(self, slot: int, entry: int) -> bytes:
        data: bytes = self._slab[slot, entry].tobytes()
        return data

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        if len(data) != CHANNELS * 8:
            raise ValueError(f"a cache entry of toy has {CHANNELS * 8} bytes, got {len(data)}")
        self._slab[slot, entry] = np.frombuffer(data, np.int64)

    def _one(self, kind: StepKind, row: ToyRow, view: CacheView | None) -> ToyResult:
        match row:
            case DenoiseRow() if kind is StepKind.DENOISE:
                return Denoised(self._denoise(row, _needed(view)))
            case CommitRow() if kind is StepKind.COMMIT:
                view = _needed(view)
                self._slab[view.slot, view.staged] = self._entry(row, view)
                return Committed()
            case DecodeRow() if kind is StepKind.DECODE:
                return Decoded(_picture(row))
            case DenoiseRow() | CommitRow() | DecodeRow():
                raise ValueError(f"a {type(row).__name__} cannot run in a '{kind}' step")
            case _:
                assert_never(row)

    def _denoise(self, row: DenoiseRow, view: CacheView) -> Latent:
        prompt_and_history_C = row.prompt_C * 5 + row.last_C * 11
        steering_C = _steering(row.controls)
        return (row.x_C * 48271 + self._context(view) * 3 + prompt_and_history_C + steering_C) % MODULUS

    def _entry(self, row: CommitRow, view: CacheView) -> Latent:
        return (row.x_C * 69621 + self._context(view) * 13 + _steering(row.controls)) % MODULUS

    def _context(self, view: CacheView) -> Latent:
        """Newest entry has age 0. The count is added, so an entry of zeros is seen as well."""
        total = np.full(CHANNELS, len(view.committed), np.int64)
        for age, entry in enumerate(reversed(view.committed)):
            total += self._slab[view.slot, entry] * (2 + age)
        return total % MODULUS


def _needed(view: CacheView | None) -> CacheView:
    if view is None:
        raise ValueError("this step reads the cache and was given no view")
    return view


def _steering(controls: tuple[int, ...]) -> Latent:
    return np.array([sum(value * (31 + 7 * i + c) for i, value in enumerate(controls)) for c in range(CHANNELS)])


# ---- the picture ---------------------------------------------------------------------------------------------------


def _picture(row: DecodeRow) -> NDArray[np.uint8]:
    """[F, HEIGHT, WIDTH, 3]: a sky in the prompt's hue, stars, a fading trail, the ship, and the marker band."""
    sky_H1C = _sky(int(row.prompt_C[0]) % 360)
    frames = np.empty((len(row.path), HEIGHT, WIDTH, 3), np.uint8)
    for i, ship in enumerate(row.path):
        frame = frames[i]
        frame[:] = sky_H1C
        _stars(frame, row.x_C)
        tail = (*row.trail, *row.path[:i])[-12:]
        for age, ghost in enumerate(reversed(tail)):
            _disc(frame, ghost, 2 if age < 4 else 1, (255 - 12 * age, 210 - 12 * age, 120 - 8 * age))
        _disc(frame, ship, 4, (255, 255, 255))
        _disc(frame, ship, 2, (255, 120, 40))
        draw(frame, row.markers[i])
    return frames


@lru_cache(maxsize=8)
def _sky(hue: int) -> NDArray[np.uint8]:
    """Vertical gradient of one hue in degrees, deep above and light below: [HEIGHT, 1, 3]."""
    rgb = np.clip(np.abs((hue / 60.0 + np.array([0.0, 4.0, 2.0])) % 6.0 - 3.0) - 1.0, 0.0, 1.0)
    height_H1 = np.linspace(0.0, 1.0, HEIGHT)[:, None]
    light = 0.15 + 0.6 * height_H1
    return ((rgb * 0.7 + 0.15) * light * 255.0)[:, None, :].astype(np.uint8)


def _stars(frame_HWC: NDArray[np.uint8], x_C: Latent) -> None:
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
