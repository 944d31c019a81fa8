"""What tests of rows of the road's cards share: slabs full of numbers, where rows lie, and the bits of a result."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.loop import StepKind

Work = Sequence[tuple[Any, CacheView]]


class Runtime(Protocol):
    def allocate(self, slots: int) -> None: ...

    def write_entry(self, slot: int, entry: int, data: bytes) -> None: ...

    def read_entry(self, slot: int, entry: int) -> bytes: ...

    def execute(self, kind: StepKind, rows: Sequence[Any], views: Sequence[CacheView | None]) -> Sequence[Any]: ...


RuntimeT = TypeVar("RuntimeT", bound=Runtime)


def full(made: RuntimeT, rows: int, ring: int, entry_bytes: int) -> RuntimeT:
    """With as many slots as rows, each full of keys and values of its own."""
    made.allocate(rows)
    rng = np.random.default_rng(1)
    for slot in range(rows):
        for entry in range(ring):
            made.write_entry(slot, entry, rng.standard_normal(entry_bytes // 4, np.float32).tobytes())
    return made


def view_of(slot: int, ring: int, rng: np.random.Generator) -> CacheView:
    """A row's entries, anywhere in the ring; how long its world is follows from its slot."""
    places = [int(place) for place in rng.permutation(ring)]
    return CacheView(slot, tuple(places[: slot * 7 % ring]), places[-1])


def bits(result: msgspec.Struct) -> bytes:
    """Of all arrays of a result."""
    arrays: list[NDArray[np.generic]] = list(msgspec.structs.astuple(result))
    return b"".join(array.tobytes() for array in arrays)


def each_alone(made: Runtime, kind: StepKind, work: Work) -> tuple[list[bytes], list[bytes]]:
    """Bits of the results, and of the staged entries, of rows that run one by one."""
    results = [bits(made.execute(kind, [row], [view])[0]) for row, view in work]
    return results, [made.read_entry(view.slot, view.staged) for _, view in work]


def all_together(made: Runtime, kind: StepKind, work: Work) -> tuple[list[bytes], list[bytes]]:
    """The same of rows that run in one pass."""
    results = [bits(one) for one in made.execute(kind, [row for row, _ in work], [view for _, view in work])]
    return results, [made.read_entry(view.slot, view.staged) for _, view in work]
