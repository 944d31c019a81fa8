"""The chunk-KV of all sessions, and how a pass reads its past: entries of it, or chunks that are not in it yet.

    values [slots, ring, layers, 2, tokens of a chunk, heads, head width]         2: keys, values
    scales [slots, ring, layers, 2, tokens of a chunk, heads]                     where values are 8-bit integers

`turns(entries)` gives the rotation of keys that are kept plain, None where they are kept rotated.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..shared.slab_bytes import from_bytes, to_bytes
from ..shared.video.rope import Rotation, rotate
from .transformer import KV

Turns = Callable[[int], Rotation | None]
LARGEST = 127


class Slab:
    """`sizes`: those of `values`. With `narrow` a token's keys of one head are integers times one scale."""

    def __init__(self, sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device, narrow: bool) -> None:
        self._dtype = dtype
        self.values = torch.zeros(sizes, dtype=torch.int8 if narrow else dtype, device=device)
        self.scales = torch.zeros(sizes[:-1], dtype=torch.float32, device=device) if narrow else None

    def read(self, slot: int, entries: tuple[int, ...], layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values [tokens of all entries, heads, head width], oldest first, as they are kept."""
        seen = self.values[slot, list(entries), layer].transpose(0, 1).flatten(1, 2)
        if self.scales is not None:
            scales = self.scales[slot, list(entries), layer].transpose(0, 1).flatten(1, 2)
            seen = (seen.float() * scales[..., None]).to(self._dtype)
        k, v = seen
        return k, v

    def write(self, slot: int, entry: int, fresh: Sequence[KV]) -> None:
        """One chunk's keys and values of every layer into one entry."""
        for layer, kv in enumerate(fresh):
            both, tokens = torch.stack((kv.k_TND, kv.v_TND)), len(kv.k_TND)
            if self.scales is not None:
                scales = both.float().abs().amax(-1).clamp_min(1e-12) / LARGEST
                self.scales[slot, entry, layer, :, :tokens] = scales
                both = (both.float() / scales[..., None]).round().to(torch.int8)
            self.values[slot, entry, layer, :, :tokens] = both

    def entry(self, slot: int, entry: int) -> tuple[Tensor, ...]:
        """All that one entry holds."""
        values = self.values[slot, entry]
        return (values,) if self.scales is None else (values, self.scales[slot, entry])

    def read_entry(self, slot: int, entry: int) -> bytes:
        return to_bytes(*self.entry(slot, entry))

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        """Raises ValueError on data of another length."""
        from_bytes(data, *self.entry(slot, entry))


class SlabPast:
    """Entries gathered when a layer reads them; `sees` per row: slot, and entries oldest first."""

    def __init__(self, slab: Slab, sees: Sequence[tuple[int, tuple[int, ...]]], turns: Turns) -> None:
        self._slab, self._sees = slab, sees
        self._turns = [turns(len(entries)) if entries else None for _, entries in sees]

    def read(self, layer: int, row: int) -> KV | None:
        slot, entries = self._sees[row]
        if not entries:
            return None
        k, v = self._slab.read(slot, entries, layer)
        turn = self._turns[row]
        return KV(k if turn is None else rotate(k, turn), v)


class RebuiltPast:
    """The sink's entries, then rebuilt chunks [layer]. One row."""

    def __init__(
        self, slab: Slab, slot: int, sink: tuple[int, ...], rebuilt: Sequence[Sequence[KV]], turns: Turns
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
