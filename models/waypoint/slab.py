"""Keys and values of all sessions' frames: local layers in the engine's ring, global layers in a ring of their own.

    near   [slots, local + 1, local layers, 2, T, G, D]               entries as the view says
    far    [slots, span / dilation + 1, global layers, 2, T, G, D]    frame f stands at (f / dilation) mod its length

The place a new frame takes in `far` is never among those the frame may read, and which ones it may read follows from
its number alone: a cancelled chunk leaves nothing behind. Attention reads entries where they lie; a commit pass writes
its own layer by layer.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ...kernels.chunk_attention import AttendedPast
from ...kernels.qk_norm_rope import Staged
from ..contract.cache import CacheView
from ..shared.reach import Reach
from .card import WaypointSpec


class Slab:
    """See the module docstring."""

    def __init__(self, spec: WaypointSpec, slots: int, dtype: torch.dtype, device: torch.device) -> None:
        self.spec = spec
        far, frame = len(spec.global_layers), (2, spec.tokens, spec.kv_heads, spec.head_width)
        self.near = torch.zeros(slots, spec.local + 1, spec.layers - far, *frame, dtype=dtype, device=device)
        self.far = torch.zeros(slots, spec.distant + 1, far, *frame, dtype=dtype, device=device)


class Window:
    """What frame number `frame` of one row sees, oldest first; `writes`: its keys and values are kept."""

    def __init__(self, slab: Slab, view: CacheView, frame: int, writes: bool) -> None:
        s = self._spec = slab.spec
        newest = -(-frame // s.dilation)  # kept frames before this one
        ring = s.distant + 1
        distant = [kept % ring for kept in range(max(0, newest - s.distant), newest)]
        kept = writes and frame % s.dilation == 0
        self._near = _Ring(slab.near, view.slot, view.committed, view.staged if writes else None)
        self._far = _Ring(slab.far, view.slot, distant, newest % ring if kept else None)

    def reach(self, layer: int) -> Reach:
        far = layer // self._spec.global_every  # global layers before this one
        return self._far.reach(far) if self._spec.is_global(layer) else self._near.reach(layer - far)


class _Ring:
    """Entries of one slot that are seen, and the one that is written, in a pool [slots, ring, layers, ..]."""

    def __init__(self, pool: Tensor, slot: int, seen: Sequence[int], written: int | None) -> None:
        self._pool, ring, tokens = pool.flatten(0, 1), pool.shape[1], pool.shape[4]
        seen_written = [slot * ring + entry for entry in (*seen, *([] if written is None else [written]))]
        table = torch.tensor([seen_written, [tokens] * len(seen_written)], dtype=torch.int32).to(pool.device)
        self._seen = table[:, None, : len(seen)] if seen else None
        self._written = None if written is None else table[0, len(seen) :]

    def reach(self, layer: int) -> Reach:
        pool = self._pool[:, layer]
        past = None if self._seen is None else AttendedPast(pool, self._seen[0], self._seen[1])
        return Reach(past, None if self._written is None else Staged(pool, self._written, False))
