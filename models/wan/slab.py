"""The chunk-KV of all sessions, and how a pass reads its past: entries of it, or chunks that are not in it yet.

    values [slots, ring, layers, 2, tokens of a chunk, heads, head width]         2: keys, values
    scales [slots, ring, layers, 2, tokens of a chunk, heads]                     where values are 8-bit integers

Entries are read where they lie, in whichever slot (`cache.place`): worlds that were one share what they had in common.

`turns(entries)` gives the rotation of keys that are kept plain, None where they are kept rotated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...kernels.chunk_attention import AttendedPast, chunk_attention
from ...kernels.qk_norm_rope import Staged
from ...kernels.upload import upload
from ..contract.cache import place
from ..contract.loaded import Copied
from ..shared.slab_bytes import Make, from_bytes, to_bytes
from ..shared.video.rope import Rotation, rotate

Turns = Callable[[int], Rotation | None]
LARGEST = 127


@dataclass(frozen=True, slots=True)
class Writes:
    """Entries that one pass writes, one a row, layer by layer: values [entries, layers, 2, tokens, heads, head width].

    `plain`: keys are kept as they are, to be rotated when they are read.
    """

    values: Tensor
    entries_B: Tensor
    plain: bool

    def staged(self, layer: int) -> Staged:
        return Staged(self.values[:, layer], self.entries_B, self.plain)


class Slab:
    """`sizes`: those of `values`. With `narrow` a token's keys of one head are integers times one scale."""

    def __init__(
        self, sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device, narrow: bool, make: Make = torch.zeros
    ) -> None:
        self._dtype = dtype
        self.values = make(sizes, dtype=torch.int8 if narrow else dtype, device=device)
        self.scales = make(sizes[:-1], dtype=torch.float32, device=device) if narrow else None

    @property
    def _ring(self) -> int:
        return self.values.shape[1]

    def read(self, slot: int, entries: tuple[int, ...], layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values [tokens of all entries, heads, head width], oldest first, as they are kept."""
        at = [slot * self._ring + entry for entry in entries]
        seen = self.values.flatten(0, 1)[at, layer].transpose(0, 1).flatten(1, 2)
        if self.scales is not None:
            scales = self.scales.flatten(0, 1)[at, layer].transpose(0, 1).flatten(1, 2)
            seen = (seen.float() * scales[..., None]).to(self._dtype)
        k, v = seen
        return k, v

    def layer(self, layer: int) -> tuple[Tensor, Tensor | None]:
        """Values [slots x ring, 2, tokens, heads, head width] and scales of one layer, where they lie."""
        scales = None if self.scales is None else self.scales.flatten(0, 1)[:, layer]
        return self.values.flatten(0, 1)[:, layer], scales

    def tables(self, sees: Sequence[tuple[int, tuple[int, ...]]], most: int) -> tuple[Tensor, Tensor]:
        """Entries of `layer` that rows see, and their tokens [rows, most]; a shorter row is filled up with none."""
        if most == 0:  # a slab that was never allocated has no sizes
            empty = torch.zeros((len(sees), 0), dtype=torch.int32, device=self.values.device)
            return empty, empty
        tokens = self.values.shape[4]
        entries = [[slot * self._ring + at for at in seen] + [-1] * (most - len(seen)) for slot, seen in sees]
        lengths = [[tokens] * len(seen) + [0] * (most - len(seen)) for _, seen in sees]
        table = upload(torch.tensor([entries, lengths], dtype=torch.int32), self.values.device)
        return table[0], table[1]

    def write(self, slot: int, entry: int, fresh: Tensor) -> None:
        """One chunk's keys and values [layers, 2, tokens, heads, head width] into one entry."""
        tokens, (slot, entry) = fresh.shape[2], place(slot, entry, self._ring)
        for layer, both in enumerate(fresh):  # one after the other: wide copies of all layers would not fit
            if self.scales is not None:
                scales = both.float().abs().amax(-1).clamp_min(1e-12) / LARGEST
                self.scales[slot, entry, layer, :, :tokens] = scales
                both = (both.float() / scales[..., None]).round().to(torch.int8)
            self.values[slot, entry, layer, :, :tokens] = both

    def writes(self, to: Sequence[tuple[int, int]], plain: bool) -> Writes:
        """Where a pass writes itself: slot and entry of each row. Only where values are not narrow."""
        entries = [slot * self._ring + entry for slot, entry in to]
        table_B = upload(torch.tensor(entries, dtype=torch.int32), self.values.device)
        return Writes(self.values.flatten(0, 1), table_B, plain)

    def entry(self, slot: int, entry: int) -> tuple[Tensor, ...]:
        """All that one entry holds."""
        at = place(slot, entry, self._ring)
        return (self.values[at],) if self.scales is None else (self.values[at], self.scales[at])

    def read_entry(self, slot: int, entry: int) -> Copied:
        return to_bytes(*self.entry(slot, entry))

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        """Raises ValueError on data of another length."""
        from_bytes(data, *self.entry(slot, entry))


class SlabPast:
    """Entries read where they lie; `sees` per row: slot, and entries oldest first."""

    def __init__(self, slab: Slab, tables: tuple[Tensor, Tensor], turns: Turns) -> None:
        """`tables`: entries and their tokens [rows, most], as `Slab.tables` gives them."""
        self._slab, self.tables, self._most = slab, tables, tables[0].shape[1]
        turn = turns(self._most) if self._most else None
        self._turn = None if turn is None else (turn.cos_T1P[:, 0], turn.sin_T1P[:, 0])

    @classmethod
    def of(cls, slab: Slab, sees: Sequence[tuple[int, tuple[int, ...]]], turns: Turns) -> "SlabPast":
        return cls(slab, slab.tables(sees, max(len(entries) for _, entries in sees)), turns)

    def attend(self, layer: int, q_BTND: Tensor, k_BTND: Tensor, v_BTND: Tensor) -> Tensor:
        if not self._most:
            return chunk_attention(q_BTND, None, (k_BTND, v_BTND))
        values, scales = self._slab.layer(layer)
        return chunk_attention(q_BTND, AttendedPast(values, *self.tables, self._turn, scales), (k_BTND, v_BTND))


class RebuiltPast:
    """The sink's entries, then rebuilt chunks [layers, 2, tokens, heads, head width] as they are kept. One row."""

    def __init__(self, slab: Slab, slot: int, sink: tuple[int, ...], rebuilt: Sequence[Tensor], turns: Turns) -> None:
        self._slab, self._slot, self._sink, self._rebuilt = slab, slot, sink, rebuilt
        self._turn = turns(len(sink) + len(rebuilt))

    def attend(self, layer: int, q_BTND: Tensor, k_BTND: Tensor, v_BTND: Tensor) -> Tensor:
        parts = [(chunk[layer, 0], chunk[layer, 1]) for chunk in self._rebuilt]
        if self._sink:
            parts.insert(0, self._slab.read(self._slot, self._sink, layer))
        if parts:
            k, v = torch.cat([k for k, _ in parts]), torch.cat([v for _, v in parts])
            k = k if self._turn is None else rotate(k, self._turn)
            k_BTND, v_BTND = torch.cat((k, k_BTND[0]))[None], torch.cat((v, v_BTND[0]))[None]
        return chunk_attention(q_BTND, None, (k_BTND, v_BTND))
