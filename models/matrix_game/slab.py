"""Keys and values of all sessions' chunks: three slabs, one ring; an entry holds a chunk's tokens, mouse and keys.

    main      [slots, ring, layers, 2, F, S, heads, width]             2: keys, values, rotated by their own frame
    mouse     [slots, ring, action layers, 2, F, S, heads, width]
    keyboard  [slots, ring, action layers, 2, F, heads, width]

Of the one committed chunk only the last `spec.past` latent frames are seen. Nothing is gathered: attention reads them
where they lie, and a commit pass writes the staged entry layer by layer.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ...kernels.chunk_attention import AttendedPast
from ...kernels.qk_norm_rope import Staged
from ...kernels.upload import upload
from ..contract.cache import CacheView
from ..shared.reach import Reach
from ..shared.slab_bytes import Make
from .spec import RING, MatrixGameSpec


class Slab:
    """See the module docstring."""

    def __init__(
        self, spec: MatrixGameSpec, slots: int, dtype: torch.dtype, device: torch.device, make: Make = torch.zeros
    ) -> None:
        self.past = spec.past
        action = (spec.action_heads, spec.action_width // spec.action_heads)
        sizes = (
            (spec.layers, 2, spec.chunk, spec.tokens, spec.heads, spec.dim // spec.heads),
            (spec.action_layers if spec.mouse else 0, 2, spec.chunk, spec.tokens, *action),
            (spec.action_layers, 2, spec.chunk, *action),
        )
        self.main, self.mouse, self.keyboard = (
            make((slots, RING, *entry), dtype=dtype, device=device) for entry in sizes
        )

    def entry(self, slot: int, entry: int) -> tuple[Tensor, Tensor, Tensor]:
        """All that one entry holds."""
        return self.main[slot, entry], self.mouse[slot, entry], self.keyboard[slot, entry]


class Window:
    """What rows see of the slab in one pass; `writes`: fresh keys and values go into the staged entries."""

    def __init__(self, slab: Slab, views: Sequence[CacheView], writes: bool) -> None:
        self._slab, tokens, device = slab, slab.past * slab.main.shape[5], slab.main.device
        written = [view.slot * RING + view.staged for view in views]
        self._written = upload(torch.tensor(written, dtype=torch.int32), device) if writes else None
        last = [[view.slot * RING + view.committed[-1] if view.committed else -1] for view in views]
        lengths = [[[size if view.committed else 0] for view in views] for size in (tokens, slab.past)]
        seen = any(view.committed for view in views)  # entries, their tokens, their frames
        self._seen = upload(torch.tensor([last, *lengths], dtype=torch.int32), device) if seen else None

    def main(self, layer: int) -> Reach:
        """Every token sees all tokens: slab [entries, 2, frames x S, N, D]."""
        kept = self._slab.main.flatten(0, 1)[:, layer]
        return self._reach(kept.flatten(2, 3), kept[:, :, -self._slab.past :].flatten(2, 3), 1)

    def mouse(self, layer: int) -> Reach:
        """Every token sees itself over time: its tokens are heads, slab [entries, 2, frames, S x N, D]."""
        kept = self._slab.mouse.flatten(0, 1)[:, layer]
        return self._reach(kept.flatten(2, 3), kept[:, :, -self._slab.past :].flatten(3, 4), 2)

    def keyboard(self, layer: int) -> Reach:
        """One key a frame: slab [entries, 2, frames, N, D]."""
        kept = self._slab.keyboard.flatten(0, 1)[:, layer]
        return self._reach(kept, kept[:, :, -self._slab.past :], 2)

    def _reach(self, entries: Tensor, past: Tensor, lengths: int) -> Reach:
        return Reach(
            None if self._seen is None else AttendedPast(past, self._seen[0], self._seen[lengths]),
            None if self._written is None else Staged(entries, self._written, False),
        )
