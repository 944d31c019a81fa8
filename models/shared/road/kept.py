"""Kept frames of worlds of the road on one device, and what every runtime of theirs does alike.

    slab K, V [slots, L temporal blocks, N tokens, H heads, S ring entries, D head width]

A row reads its committed entries oldest first, right-aligned, wherever they lie in the ring: a frame is then seen at
the same place whether it was committed in this pass or before, and neither ring positions nor slots can change a bit of
a result. Rows of a batch run together, whatever their ages, and have the bits they have alone (how: blocks.py and
autoencoder.py). Knows no loop and no clock.

    fused     [ pad .. pad | oldest .. newest committed | the frame committed in this pass ]      ring + 1 keys
    denoise   [ pad .. pad | oldest ..                                    newest committed ]      ring + 1 keys
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...contract.cache import CacheView, place
from ...contract.loaded import Copied
from ...contract.loop import StepKind
from ...weights import load_module
from ..slab_bytes import from_bytes, to_bytes
from ..steps import misplaced
from .autoencoder import DriveAutoencoder, to_frames
from .chunk import Decoded, DecodeRow, Latent
from .sizes import RoadSizes

Entries = tuple[int, ...]
LookOf = Callable[[str], NDArray[np.float32]]
Network = TypeVar("Network", bound=nn.Module)
STORED = (torch.float16, torch.float32)  # in the files; all computing is in float32
_KEPT = 31 * 2**20
"""Bytes. Once glibc was given back a block of this size (32 MiB is the most it learns from) it keeps up to twice as
many for the next step; else it asks the kernel for new pages in every step, which cost more than what is put there."""


class KeptFrames:
    """The slab, the autoencoder's decoder and the text encoder. Subclasses have the transformer's steps."""

    def __init__(self, shape: RoadSizes, autoencoder: DriveAutoencoder, look_of: LookOf) -> None:
        self._shape, self._autoencoder, self._look_of = shape, autoencoder, look_of
        self._k, self._v = self._slab(0), self._slab(0)

    def allocate(self, slots: int) -> None:
        self._k, self._v = self._slab(slots), self._slab(slots)
        torch.empty(_KEPT, dtype=torch.uint8)  # given back at once

    def encode_prompt(self, text: str) -> NDArray[np.float32]:
        return self._look_of(text)

    def read_entry(self, slot: int, entry: int) -> Copied:
        """K, then V, as they lie in the slab."""
        return to_bytes(*self._entry(slot, entry))

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        from_bytes(data, *self._entry(slot, entry))

    def _entry(self, slot: int, entry: int) -> tuple[Tensor, Tensor]:
        return self._k[slot, :, :, :, entry], self._v[slot, :, :, :, entry]

    def _slab(self, slots: int) -> Tensor:
        s = self._shape
        return torch.zeros((slots, s.temporal, s.tokens, s.heads, s.entries, s.head_width))

    def _stage(self, views: Sequence[CacheView], k_BLNHD: Tensor, v_BLNHD: Tensor) -> Tensor:
        """Keep each row's new frame; which rows are not sound [B]. Numbers that are not finite are never stored: an
        entry that is masked out must still be harmless."""
        bad_B = ~(k_BLNHD + v_BLNHD).isfinite().flatten(1).all(1)
        kept = [fresh.masked_fill(bad_B.view(-1, *[1] * (fresh.ndim - 1)), 0.0) for fresh in (k_BLNHD, v_BLNHD)]
        for row, view in enumerate(views):
            k_LNHD, v_LNHD = self._entry(*place(view.slot, view.staged, self._shape.entries))
            k_LNHD[:], v_LNHD[:] = kept[0][row], kept[1][row]
        return bad_B

    def _read(self, views: Sequence[CacheView], staged: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Each row's entries, oldest first, behind as many empty ones as fill ring + 1 keys; the newest has age 1.

        K and V [B, L, N, H, S, D] and ages [B, S]; with `staged` the frame of this pass is the newest. A layer's keys
        lie together, so that their products are alike in any batch. Entries that lie in a row are copied at once.
        """
        s, keys, ages = self._shape, self._shape.entries + 1, []
        k, v = torch.empty(2, s.temporal, len(views), s.tokens, s.heads, keys, s.head_width)
        for row, view in enumerate(views):
            entries = (*view.committed, view.staged) if staged else view.committed
            empty = keys - len(entries)
            for kept in (k[:, row], v[:, row]):
                kept[..., :empty, :] = 0.0
            at = empty
            for slot, first, count in _runs([place(view.slot, entry, s.entries) for entry in entries]):
                k[:, row, ..., at : at + count, :] = self._k[slot, ..., first : first + count, :]
                v[:, row, ..., at : at + count, :] = self._v[slot, ..., first : first + count, :]
                at += count
            ages.append([*[0] * empty, *range(len(entries), 0, -1)])
        return k.transpose(0, 1), v.transpose(0, 1), torch.tensor(ages)

    def _decode(self, rows: Sequence[DecodeRow]) -> list[Decoded]:
        picture_B3HW = self._autoencoder.decode(stacked([row.x_PC for row in rows]))
        return [Decoded(frame_HWC) for frame_HWC in to_frames(picture_B3HW).numpy()]


def _runs(places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """(slot, first entry, count) of entries that follow each other in a slot; a fork's lie in several."""
    begun = 0
    for i, (slot, entry) in enumerate(places):
        if i + 1 == len(places) or places[i + 1] != (slot, entry + 1):
            yield slot, places[begun][1], i + 1 - begun
            begun = i + 1


def load_both(folder: Path, transformer: Network) -> tuple[Network, DriveAutoencoder]:
    """The networks of a card's folder, ready for inference; raises `WeightsError`."""
    autoencoder = DriveAutoencoder()
    load_module(folder / "transformer.safetensors", transformer, STORED)
    load_module(folder / "autoencoder.safetensors", autoencoder, STORED)
    return transformer.eval().requires_grad_(False), autoencoder.eval().requires_grad_(False)


def decoded(kind: StepKind, rows: Sequence[object]) -> list[DecodeRow]:
    """The rows, all of which are to be decoded; raises ValueError."""
    fitting = [row for row in rows if isinstance(row, DecodeRow)]
    for row in rows:
        if not isinstance(row, DecodeRow):
            raise misplaced(kind, row)
    return fitting


def stacked(arrays: Sequence[Latent]) -> Tensor:
    return torch.from_numpy(np.array(arrays))
