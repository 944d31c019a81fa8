"""How a pass reads its past: entries of the slab, or chunks that have been rebuilt and are not in it yet.

    slab [slots, ring, layers, 2, tokens of a chunk, heads, head width]         2: keys, values
`turns(entries)` gives the rotation of keys that are kept plain, None where they are kept rotated.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..shared.video.rope import Rotation, rotate
from .transformer import KV

Turns = Callable[[int], Rotation | None]


class SlabPast:
    """Entries gathered when a layer reads them; `sees` per row: slot, and entries oldest first."""

    def __init__(self, slab: Tensor, sees: Sequence[tuple[int, tuple[int, ...]]], turns: Turns) -> None:
        self._slab, self._sees = slab, sees
        self._turns = [turns(len(entries)) if entries else None for _, entries in sees]

    def read(self, layer: int, row: int) -> KV | None:
        slot, entries = self._sees[row]
        if not entries:
            return None
        k, v = self._slab[slot, list(entries), layer].transpose(0, 1).flatten(1, 2)
        turn = self._turns[row]
        return KV(k if turn is None else rotate(k, turn), v)


class RebuiltPast:
    """The sink's entries, then rebuilt chunks [layer]. One row."""

    def __init__(
        self, slab: Tensor, slot: int, sink: tuple[int, ...], rebuilt: Sequence[Sequence[KV]], turns: Turns
    ) -> None:
        self._sink = SlabPast(slab, [(slot, sink)], lambda entries: None)
        self._rebuilt = rebuilt
        self._turn = turns(len(sink) + len(rebuilt))

    def read(self, layer: int, row: int) -> KV | None:
        sink = self._sink.read(layer, row)
        parts = [kv for kv in (sink, *(chunk[layer] for chunk in self._rebuilt)) if kv is not None]
        if not parts:
            return None
        k, v = torch.cat([kv.k_TND for kv in parts]), torch.cat([kv.v_TND for kv in parts])
        return KV(k if self._turn is None else rotate(k, self._turn), v)


def write(slab: Tensor, slot: int, entry: int, fresh: Sequence[KV]) -> None:
    """One chunk's keys and values of every layer into one entry."""
    for layer, kv in enumerate(fresh):
        tokens = len(kv.k_TND)
        slab[slot, entry, layer, 0, :tokens] = kv.k_TND
        slab[slot, entry, layer, 1, :tokens] = kv.v_TND
