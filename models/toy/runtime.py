"""The toy's steps: integer arithmetic against its slab, the picture, the narrator's words. Rows never see each other.

    slab [slots, ring, C] int64; an entry is read at weight 2 + age, so order and count of what is committed matter.

Knows no loop and no clock: `sleep` is handed in and spends the spec's step cost on the calling thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import assert_never

import numpy as np

from ..contract.cache import CacheView, place
from ..contract.loop import Committed, StepKind
from ..shared.steps import misplaced, needed, paired
from .card import CHANNELS, WINDOW, ToySpec
from .loop import (
    MODULUS,
    CommitRow,
    Decoded,
    DecodeRow,
    Denoised,
    DenoiseRow,
    Latent,
    Ship,
    ToyResult,
    ToyRow,
)
from .markers import Marker
from .narrator import Token, TokenRow, token
from .pictures import picture

RING = WINDOW + 1
AnyRow = ToyRow | TokenRow
AnyResult = ToyResult | Token


class ToyRuntime:
    """See the module docstring."""

    def __init__(self, spec: ToySpec, sleep: Callable[[float], None]) -> None:
        self.spec = spec
        self._sleep = sleep
        self._slab: Latent = np.zeros((0, RING, CHANNELS), np.int64)

    def allocate(self, slots: int) -> None:
        self._slab = np.zeros((slots, RING, CHANNELS), np.int64)

    def execute(self, kind: StepKind, rows: Sequence[AnyRow], views: Sequence[CacheView | None]) -> list[AnyResult]:
        results = [self._one(kind, row, view) for row, view in paired(rows, views)]
        if self.spec.sleeps and self.spec.step_seconds > 0:
            self._sleep(self.spec.step_seconds)
        return results

    def encode_prompt(self, text: str) -> Latent:
        """A hash of the text: equal texts, equal worlds; nothing else is promised."""
        words = np.frombuffer(hashlib.sha256(text.encode("utf-8", "replace")).digest(), "<u4")
        return words.astype(np.int64) % MODULUS

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[AnyRow, CacheView | None]]:
        x_C = np.arange(CHANNELS, dtype=np.int64)
        row: AnyRow
        match kind:
            case StepKind.DENOISE:
                row = DenoiseRow(x_C, x_C, x_C, (0, 0, 0, 0))
            case StepKind.COMMIT:
                row = CommitRow(x_C, (0, 0, 0, 0))
            case StepKind.DECODE:
                ships = (Ship(0, 0, 0, 0),) * self.spec.per_chunk
                row = DecodeRow(x_C, x_C, (), ships, (Marker(0, 0, 0),) * self.spec.per_chunk)
            case StepKind.TOKEN:
                row = TokenRow(x_C, 0, (), 0)
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

    def _one(self, kind: StepKind, row: AnyRow, view: CacheView | None) -> AnyResult:
        match row:
            case DenoiseRow() if kind is StepKind.DENOISE:
                return Denoised(self._denoise(row, needed(view)))
            case CommitRow() if kind is StepKind.COMMIT:
                view = needed(view)
                self._slab[place(view.slot, view.staged, RING)] = self._entry(row, view)
                return Committed()
            case DecodeRow() if kind is StepKind.DECODE:
                return Decoded(picture(row))
            case TokenRow() if kind is StepKind.TOKEN:
                return token(row)
            case DenoiseRow() | CommitRow() | DecodeRow() | TokenRow():
                raise misplaced(kind, row)
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
            total += self._slab[place(view.slot, entry, RING)] * (2 + age)
        return total % MODULUS


def _steering(controls: tuple[int, ...]) -> Latent:
    return np.array([sum(value * (31 + 7 * i + c) for i, value in enumerate(controls)) for c in range(CHANNELS)])
